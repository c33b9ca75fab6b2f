/**
 * The RDATA of types without a typed form, described field by field: one table serves printing and reading (RFC numbers beside each type).
 * A record whose octets do not fit its description is printed in RFC 3597's generic form, so nothing is ever lost or guessed.
 */
import { formatAddress4, formatAddress6, parseAddress } from './address.js'
import { TYPE, typeName, typeNumber } from './constants.js'
import { WireError } from './errors.js'
import { Name } from './name.js'
import { parseCharacterString, quote } from './strings.js'
import { formatSvcParams, parseSvcParams } from './svcb.js'

/** Kinds of field. The last ones of the list take all that is left. */
export type Field =
  | 'u8'
  | 'u16'
  | 'u32'
  | 'type'
  | 'time'
  | 'name'
  | 'string'
  | 'a'
  | 'aaaa'
  | 'hex8'
  | 'base32-8'
  | 'eui'
  | 'tag'
  | 'bitmap'
  | 'hex'
  | 'base64'
  | 'strings'
  | 'text'
  | 'svcparams'

export const FIELDS: ReadonlyMap<number, readonly Field[]> = new Map<number, readonly Field[]>([
  [TYPE.HINFO, ['string', 'string']],
  [TYPE.RP, ['name', 'name']], // RFC 1183
  [TYPE.AFSDB, ['u16', 'name']],
  [TYPE.NAPTR, ['u16', 'u16', 'string', 'string', 'string', 'name']], // RFC 3403
  [TYPE.CERT, ['u16', 'u16', 'u8', 'base64']], // RFC 4398
  [TYPE.DS, ['u16', 'u8', 'u8', 'hex']], // RFC 4034
  [TYPE.CDS, ['u16', 'u8', 'u8', 'hex']],
  [TYPE.SSHFP, ['u8', 'u8', 'hex']], // RFC 4255
  [TYPE.RRSIG, ['type', 'u8', 'u8', 'u32', 'time', 'time', 'u16', 'name', 'base64']],
  [TYPE.NSEC, ['name', 'bitmap']],
  [TYPE.DNSKEY, ['u16', 'u8', 'u8', 'base64']],
  [TYPE.CDNSKEY, ['u16', 'u8', 'u8', 'base64']],
  [TYPE.DHCID, ['base64']],
  [TYPE.NSEC3, ['u8', 'u8', 'u16', 'hex8', 'base32-8', 'bitmap']], // RFC 5155
  [TYPE.NSEC3PARAM, ['u8', 'u8', 'u16', 'hex8']],
  [TYPE.TLSA, ['u8', 'u8', 'u8', 'hex']], // RFC 6698
  [TYPE.SMIMEA, ['u8', 'u8', 'u8', 'hex']],
  [TYPE.OPENPGPKEY, ['base64']],
  [TYPE.CSYNC, ['u32', 'u16', 'bitmap']],
  [TYPE.ZONEMD, ['u32', 'u8', 'u8', 'hex']],
  [TYPE.SVCB, ['u16', 'name', 'svcparams']], // RFC 9460
  [TYPE.HTTPS, ['u16', 'name', 'svcparams']],
  [TYPE.EUI48, ['eui']],
  [TYPE.EUI64, ['eui']],
  [TYPE.URI, ['u16', 'u16', 'text']], // RFC 7553
  [TYPE.CAA, ['u8', 'tag', 'text']], // RFC 8659
])

/** Prints octets by their description; undefined if they do not fit it. */
export function formatFields(fields: readonly Field[], octets: Buffer): string | undefined {
  const words: string[] = []
  let at = 0
  try {
    for (const field of fields) {
      const [word, next] = PRINTERS[field](octets, at)
      if (next > octets.length) return undefined
      if (word !== '') words.push(word)
      at = next
    }
  } catch (error) {
    if (error instanceof WireError || error instanceof RangeError) return undefined
    throw error
  }
  return at === octets.length ? words.join(' ') : undefined
}

/** Reads words into octets. Throws WireError 'TEXT' for what does not fit. */
export function parseFields(fields: readonly Field[], words: readonly string[], origin: Name): Buffer {
  const parts: Buffer[] = []
  let at = 0
  for (const field of fields) {
    if (GREEDY.has(field)) {
      parts.push(readRest(field, words.slice(at), origin))
      at = words.length
      break
    }
    const word = words[at++]
    if (word === undefined) throw new WireError('TEXT', `missing ${field}`)
    parts.push(readWord(field, word, origin))
  }
  if (at < words.length) throw new WireError('TEXT', `surplus word '${words[at]}'`)
  return Buffer.concat(parts)
}

const GREEDY: ReadonlySet<Field> = new Set<Field>(['bitmap', 'hex', 'base64', 'strings', 'svcparams'])

type Printer = (octets: Buffer, at: number) => readonly [word: string, next: number]
const rest =
  (print: (octets: Buffer) => string): Printer =>
  (octets, at) => [print(octets.subarray(at)), octets.length]

const PRINTERS: Readonly<Record<Field, Printer>> = {
  u8: (o, at) => [String(o.readUInt8(at)), at + 1],
  u16: (o, at) => [String(o.readUInt16BE(at)), at + 2],
  u32: (o, at) => [String(o.readUInt32BE(at)), at + 4],
  type: (o, at) => [typeName(o.readUInt16BE(at)), at + 2],
  time: (o, at) => [formatTime(o.readUInt32BE(at)), at + 4],
  name: (o, at) => [Name.read(o, at, 0, o.length).toString(), Name.lastEnd],
  string: (o, at) => [quote(o.subarray(at + 1, at + 1 + o.readUInt8(at))), at + 1 + o.readUInt8(at)],
  a: (o, at) => [formatAddress4(o, at), at + 4],
  aaaa: (o, at) => [formatAddress6(o, at), at + 16],
  hex8: (o, at) => [
    o
      .subarray(at + 1, at + 1 + o.readUInt8(at))
      .toString('hex')
      .toUpperCase() || '-',
    at + 1 + o.readUInt8(at),
  ],
  'base32-8': (o, at) => [base32(o.subarray(at + 1, at + 1 + o.readUInt8(at))), at + 1 + o.readUInt8(at)],
  eui: rest((o) => [...o].map((octet) => octet.toString(16).padStart(2, '0')).join('-')),
  tag: (o, at) => [o.toString('latin1', at + 1, at + 1 + o.readUInt8(at)), at + 1 + o.readUInt8(at)],
  bitmap: rest(formatBitmap),
  hex: rest((o) => o.toString('hex').toUpperCase()),
  base64: rest((o) => o.toString('base64')),
  strings: rest((o) => quote(o)),
  text: rest((o) => quote(o)),
  svcparams: rest(formatSvcParams),
}

function readWord(field: Field, word: string, origin: Name): Buffer {
  switch (field) {
    case 'u8':
      return number(word, 1)
    case 'u16':
      return number(word, 2)
    case 'u32':
      return number(word, 4)
    case 'type':
      return number(String(typeNumber(word) ?? fail(`unknown type '${word}'`)), 2)
    case 'time':
      return number(String(parseTime(word)), 4)
    case 'name':
      return parseName(word, origin).wire
    case 'string': {
      const octets = parseCharacterString(word)
      return Buffer.concat([number(String(octets.length), 1), octets])
    }
    case 'a':
    case 'aaaa':
      return parseAddress(word) ?? fail(`bad address '${word}'`)
    case 'hex8': {
      const octets = word === '-' ? Buffer.alloc(0) : hex(word)
      return Buffer.concat([number(String(octets.length), 1), octets])
    }
    case 'base32-8': {
      const octets = unbase32(word)
      return Buffer.concat([number(String(octets.length), 1), octets])
    }
    case 'eui':
      return hex(word.replaceAll('-', ''))
    case 'tag':
      return Buffer.concat([number(String(word.length), 1), Buffer.from(word, 'latin1')])
    default:
      return parseCharacterString(word)
  }
}

function readRest(field: Field, words: readonly string[], origin: Name): Buffer {
  switch (field) {
    case 'bitmap':
      return parseBitmap(words)
    case 'hex':
      return hex(words.join(''))
    case 'base64': {
      const text = words.join('')
      const octets = Buffer.from(text, 'base64')
      if (octets.toString('base64').replace(/=+$/, '') !== text.replace(/=+$/, '')) fail('bad base64')
      return octets
    }
    case 'svcparams':
      return parseSvcParams(words)
    default:
      return Buffer.concat(words.map((word) => readWord('string', word, origin)))
  }
}

/** A name of a zone file: relative ones get the origin, '@' is it. */
export function parseName(text: string, origin: Name): Name {
  if (text === '@') return origin
  const name = Name.parse(text)
  return isAbsolute(text) ? name : name.append(origin)
}

function isAbsolute(text: string): boolean {
  if (!text.endsWith('.')) return false
  let slashes = 0
  for (let i = text.length - 2; i >= 0 && text[i] === '\\'; i--) slashes++
  return slashes % 2 === 0
}

export function number(word: string, octets: 1 | 2 | 4): Buffer {
  const value = Number(word)
  if (!/^\d{1,10}$/.test(word) || value >= 2 ** (8 * octets)) fail(`bad number '${word}'`)
  const out = Buffer.alloc(octets)
  out.writeUIntBE(value, 0, octets)
  return out
}

function hex(text: string): Buffer {
  if (text.length % 2 !== 0 || !/^[0-9a-f]*$/i.test(text)) fail('bad hexadecimal')
  return Buffer.from(text, 'hex')
}

/** RFC 4034 §3.2: YYYYMMDDHHmmSS, UTC, serial arithmetic around now is not needed before 2106. */
function formatTime(seconds: number): string {
  return new Date(seconds * 1000)
    .toISOString()
    .replace(/\.\d+Z$/, '')
    .replace(/\D/g, '')
}
function parseTime(word: string): number {
  const m = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(word)
  if (m === null) return Number(word)
  return (Date.UTC(+m[1]!, +m[2]! - 1, +m[3]!, +m[4]!, +m[5]!, +m[6]!) / 1000) >>> 0
}

/** RFC 4034 §4.1.2. */
function formatBitmap(octets: Buffer): string {
  const words: string[] = []
  for (let at = 0; at < octets.length; ) {
    const window = octets.readUInt8(at)
    const size = octets.readUInt8(at + 1)
    if (size === 0 || size > 32 || at + 2 + size > octets.length) throw new WireError('RDATA', 'bad type bitmap')
    for (let i = 0; i < size * 8; i++) if (octets[at + 2 + (i >> 3)]! & (0x80 >> (i & 7))) words.push(typeName(window * 256 + i))
    at += 2 + size
  }
  return words.join(' ')
}
function parseBitmap(words: readonly string[]): Buffer {
  const types = words.map((word) => typeNumber(word) ?? fail(`unknown type '${word}'`)).sort((a, b) => a - b)
  const windows = new Map<number, Buffer>()
  for (const type of types) {
    const size = ((type & 0xff) >> 3) + 1
    const old = windows.get(type >> 8) ?? Buffer.alloc(0)
    const map = size > old.length ? Buffer.concat([old, Buffer.alloc(size - old.length)]) : old
    map[(type & 0xff) >> 3]! |= 0x80 >> (type & 7)
    windows.set(type >> 8, map)
  }
  return Buffer.concat([...windows].flatMap(([window, map]) => [Buffer.from([window, map.length]), map]))
}

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUV'
/** Base 32 with extended hex alphabet, no padding (RFC 5155 §3.3). */
function base32(octets: Buffer): string {
  let text = ''
  let bits = 0
  let value = 0
  for (const octet of octets) {
    value = ((value << 8) | octet) & 0xfff
    bits += 8
    for (; bits >= 5; bits -= 5) text += ALPHABET[(value >> (bits - 5)) & 31]
  }
  return bits > 0 ? text + ALPHABET[(value << (5 - bits)) & 31] : text
}
function unbase32(text: string): Buffer {
  const out: number[] = []
  let bits = 0
  let value = 0
  for (const letter of text.toUpperCase()) {
    const index = ALPHABET.indexOf(letter)
    if (index < 0) fail('bad base32')
    value = ((value << 5) | index) & 0xfff
    bits += 5
    if (bits >= 8) {
      bits -= 8
      out.push((value >> bits) & 0xff)
    }
  }
  return Buffer.from(out)
}

function fail(message: string): never {
  throw new WireError('TEXT', message)
}
