/** Service parameters of SVCB and HTTPS records (RFC 9460 §2.1–2.2, appendix A). */
import { formatAddress4, formatAddress6, parseAddress } from './address.js'
import { WireError } from './errors.js'
import { parseCharacterString, quote } from './strings.js'

const KEYS: readonly string[] = ['mandatory', 'alpn', 'no-default-alpn', 'port', 'ipv4hint', 'ech', 'ipv6hint', 'dohpath', 'ohttp']

const keyName = (key: number): string => KEYS[key] ?? `key${key}`
function keyNumber(text: string): number {
  const known = KEYS.indexOf(text)
  if (known >= 0) return known
  const m = /^key(\d{1,5})$/.exec(text)
  if (m === null || Number(m[1]) > 65_535) throw new WireError('TEXT', `unknown service parameter '${text}'`)
  return Number(m[1])
}

/** Throws WireError or RangeError where the octets break the format. */
export function formatSvcParams(octets: Buffer): string {
  const words: string[] = []
  let last = -1
  for (let at = 0; at < octets.length; ) {
    const key = octets.readUInt16BE(at)
    const size = octets.readUInt16BE(at + 2)
    if (key <= last || at + 4 + size > octets.length) throw new WireError('RDATA', 'bad service parameters')
    const value = octets.subarray(at + 4, at + 4 + size)
    words.push(formatParam(key, value))
    last = key
    at += 4 + size
  }
  return words.join(' ')
}

function formatParam(key: number, value: Buffer): string {
  const name = keyName(key)
  switch (name) {
    case 'mandatory':
      return `${name}="${pairs(value).map(keyName).join(',')}"`
    case 'alpn':
      return `${name}=${quote(
        Buffer.from(
          shortStrings(value)
            .map((s) => s.replace(/[\\,]/g, '\\$&'))
            .join(','),
          'latin1',
        ),
      )}`
    case 'port':
      return `${name}="${value.readUInt16BE(0)}"`
    case 'ipv4hint':
      return `${name}="${pieces(value, 4)
        .map((o) => formatAddress4(o))
        .join(',')}"`
    case 'ipv6hint':
      return `${name}="${pieces(value, 16)
        .map((o) => formatAddress6(o))
        .join(',')}"`
    case 'ech':
      return `${name}="${value.toString('base64')}"`
    default:
      return value.length === 0 ? name : `${name}=${quote(value)}`
  }
}

/** Words such as `alpn="h2,h3"` to octets, ordered by key. Throws WireError 'TEXT'. */
export function parseSvcParams(words: readonly string[]): Buffer {
  const params = new Map<number, Buffer>()
  for (const word of words) {
    const equals = word.indexOf('=')
    const key = keyNumber(equals < 0 ? word : word.slice(0, equals))
    if (params.has(key)) throw new WireError('TEXT', `service parameter '${word}' twice`)
    params.set(key, parseParam(key, equals < 0 ? Buffer.alloc(0) : parseCharacterString(word.slice(equals + 1))))
  }
  const parts: Buffer[] = []
  for (const [key, value] of [...params].sort(([a], [b]) => a - b)) {
    const head = Buffer.alloc(4)
    head.writeUInt16BE(key, 0)
    head.writeUInt16BE(value.length, 2)
    parts.push(head, value)
  }
  return Buffer.concat(parts)
}

function parseParam(key: number, value: Buffer): Buffer {
  const text = value.toString('latin1')
  switch (keyName(key)) {
    case 'mandatory':
      return Buffer.concat(text.split(',').map((word) => u16(keyNumber(word))))
    case 'alpn':
      return Buffer.concat(splitList(text).map((word) => Buffer.concat([Buffer.from([word.length]), Buffer.from(word, 'latin1')])))
    case 'port':
      return u16(Number(text))
    case 'ipv4hint':
    case 'ipv6hint':
      return Buffer.concat(text.split(',').map((word) => parseAddress(word) ?? bad(`address '${word}'`)))
    case 'ech':
      return Buffer.from(text, 'base64')
    default:
      return value
  }
}

/** A comma-separated list with `\,` and `\\` escapes (appendix A.1). */
function splitList(text: string): string[] {
  const words: string[] = []
  let word = ''
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '\\') word += text[++at] ?? ''
    else if (text[at] === ',') {
      words.push(word)
      word = ''
    } else word += text[at]
  }
  words.push(word)
  if (words.some((w) => w.length === 0 || w.length > 255)) bad('list')
  return words
}

function u16(value: number): Buffer {
  if (!Number.isInteger(value) || value < 0 || value > 65_535) bad('number')
  const out = Buffer.alloc(2)
  out.writeUInt16BE(value)
  return out
}
function pieces(value: Buffer, size: number): Buffer[] {
  if (value.length === 0 || value.length % size !== 0) throw new WireError('RDATA', 'bad service parameter')
  return Array.from({ length: value.length / size }, (_, i) => value.subarray(i * size, (i + 1) * size))
}
const pairs = (value: Buffer): number[] => pieces(value, 2).map((o) => o.readUInt16BE(0))
function shortStrings(value: Buffer): string[] {
  const out: string[] = []
  for (let at = 0; at < value.length; at += 1 + value[at]!) {
    if (at + 1 + value[at]! > value.length) throw new WireError('RDATA', 'bad service parameter')
    out.push(value.toString('latin1', at + 1, at + 1 + value[at]!))
  }
  return out
}
function bad(what: string): never {
  throw new WireError('TEXT', `bad ${what} in a service parameter`)
}
