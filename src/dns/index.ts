/** The wire library: names, messages, records, their text forms. Imports nothing else of the project. */
export * from './address.js'
export * from './constants.js'
export * from './encode.js'
export * from './errors.js'
export * from './message.js'
export { Name } from './name.js'
export * from './records.js'
export * from './text.js'
