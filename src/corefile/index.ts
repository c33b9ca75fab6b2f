/** What the rest of the server takes from the Corefile parser. */
export * from './args.js'
export { type AddressTransport, isDomainName, normalizeZone, reverseZones, splitTransport, splitZonePort } from './keys.js'
export { limits } from './lexer.js'
export { type ParseOptions, parseCorefile } from './parse.js'
export { printCorefile, printDirective } from './print.js'
export { quote } from './quote.js'
export * from './tree.js'
