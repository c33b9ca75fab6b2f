/** Presentation format: records as `dig` prints them, zone-file lines read back (RFC 1035 §5, RFC 3597 §5), whole messages for people. */

import { parseAddress } from './address.js'
import { CLASS, className, classNumber, FLAG, OPTION, opcodeName, rcodeName, TYPE, typeName, typeNumber } from './constants.js'
import { Writer } from './encode.js'
import { WireError } from './errors.js'
import { FIELDS, formatFields, number, parseFields, parseName } from './fields.js'
import type { Message } from './message.js'
import { Name } from './name.js'
import { formatRare, RARE } from './rare.js'
import { decodeRdata, encodeRdata } from './rdata.js'
import type { Edns, RData, RR } from './records.js'
import { parseCharacterString, quote, splitWords } from './strings.js'

/** `name TTL class type data`, tab-separated as `dig` and miekg/dns print it. */
export function formatRecord(rr: RR): string {
  return `${rr.name}\t${rr.ttl}\t${className(rr.class)}\t${typeName(rr.type)}\t${formatRdata(rr.type, rr.data)}`
}

/** The data part of a record. */
export function formatRdata(type: number, data: RData): string {
  switch (data.kind) {
    case 'A':
    case 'AAAA':
      return data.address
    case 'NAME':
      return data.target.toString()
    case 'SOA':
      return `${data.mname} ${data.rname} ${data.serial} ${data.refresh} ${data.retry} ${data.expire} ${data.minimum}`
    case 'MX':
      return `${data.preference} ${data.exchange}`
    case 'SRV':
      return `${data.priority} ${data.weight} ${data.port} ${data.target}`
    case 'TXT':
      return data.strings.map((text) => quote(text)).join(' ')
    case 'OPAQUE': {
      const rare = RARE.has(type) ? formatRare(type, data.octets) : undefined
      if (rare !== undefined) return rare
      const fields = FIELDS.get(type)
      return (fields && formatFields(fields, data.octets)) ?? generic(data.octets)
    }
  }
}

/** RFC 3597 §5. */
const generic = (octets: Buffer): string => `\\# ${octets.length}${octets.length > 0 ? ` ${octets.toString('hex').toUpperCase()}` : ''}`

export interface ZoneDefaults {
  readonly origin?: Name
  readonly ttl?: number
  readonly class?: number
  /** Owner of a line that begins with blanks. */
  readonly owner?: Name
}

/** One record from one line: `[name] [TTL] [class] type data` with TTL and class in either order. Throws WireError 'TEXT'. */
export function parseRecord(line: string, defaults: ZoneDefaults = {}): RR {
  const words = splitWords(line).filter((word) => word !== '(' && word !== ')')
  const origin = defaults.origin ?? Name.root
  const inherits = /^\s/.test(line) && defaults.owner !== undefined
  const first = words[0]
  if (first === undefined) throw new WireError('TEXT', 'empty line')
  const name = inherits ? defaults.owner! : parseName(first, origin)
  let at = inherits ? 0 : 1
  let ttl = defaults.ttl ?? 3600
  let cls = defaults.class ?? CLASS.IN
  for (let seen = 0; seen < 2; seen++) {
    const word = words[at] ?? ''
    const period = parseTtl(word)
    if (period !== undefined) ttl = period
    else if (classNumber(word) !== undefined && (typeNumber(word) === undefined || seen === 0) && !/^(ANY)$/i.test(word))
      cls = classNumber(word)!
    else break
    at++
  }
  const typeWord = words[at] ?? ''
  const type = typeNumber(typeWord)
  if (type === undefined) throw new WireError('TEXT', `unknown type '${typeWord}'`)
  return { name, type, class: cls, ttl, data: parseRdata(type, cls, words.slice(at + 1), origin) }
}

/** Seconds, or BIND's 1w2d3h4m5s; undefined if the word is neither. */
export function parseTtl(word: string): number | undefined {
  if (/^\d{1,10}$/.test(word)) return Number(word) <= 0xffffffff ? Number(word) : undefined
  if (!/^(\d+[wdhms])+$/i.test(word)) return undefined
  const units: Readonly<Record<string, number>> = { w: 604_800, d: 86_400, h: 3600, m: 60, s: 1 }
  let sum = 0
  for (const [, digits, unit] of word.matchAll(/(\d+)([wdhms])/gi)) sum += Number(digits) * units[unit!.toLowerCase()]!
  return sum <= 0xffffffff ? sum : undefined
}

/** Reads the data words of a record. Throws WireError 'TEXT'. */
export function parseRdata(type: number, cls: number, words: readonly string[], origin: Name = Name.root): RData {
  if (words[0] === '\\#') return parseGeneric(type, cls, words)
  const word = (i: number): string => words[i] ?? fail(`${typeName(type)} data is too short`)
  const exactly = (n: number): void => {
    if (words.length !== n) fail(`${typeName(type)} data has ${words.length} fields, not ${n}`)
  }
  const u16 = (i: number): number => number(word(i), 2).readUInt16BE(0)
  switch (type) {
    case TYPE.A:
    case TYPE.AAAA: {
      exactly(1)
      const kind = type === TYPE.A ? 'A' : 'AAAA'
      if (parseAddress(word(0))?.length !== (kind === 'A' ? 4 : 16)) fail(`bad address '${word(0)}'`)
      return decodeRdata(type, CLASS.IN, parseAddress(word(0))!, 0, kind === 'A' ? 4 : 16, 0, 16)
    }
    case TYPE.CNAME:
    case TYPE.NS:
    case TYPE.PTR:
    case TYPE.DNAME:
      exactly(1)
      return { kind: 'NAME', target: parseName(word(0), origin) }
    case TYPE.SOA: {
      exactly(7)
      const time = (i: number): number => parseTtl(word(i)) ?? fail(`bad number '${word(i)}'`)
      return {
        kind: 'SOA',
        mname: parseName(word(0), origin),
        rname: parseName(word(1), origin),
        serial: time(2),
        refresh: time(3),
        retry: time(4),
        expire: time(5),
        minimum: time(6),
      }
    }
    case TYPE.MX:
      exactly(2)
      return { kind: 'MX', preference: u16(0), exchange: parseName(word(1), origin) }
    case TYPE.SRV:
      exactly(4)
      return { kind: 'SRV', priority: u16(0), weight: u16(1), port: u16(2), target: parseName(word(3), origin) }
    case TYPE.TXT:
    case TYPE.SPF: {
      if (words.length === 0) fail('TXT data is empty')
      const strings = words.map(parseCharacterString)
      if (strings.some((text) => text.length > 255)) fail('character string longer than 255 octets')
      return { kind: 'TXT', strings }
    }
  }
  const fields = FIELDS.get(type) ?? fail(`${typeName(type)} has no text form here; write \\# LENGTH HEX`)
  return { kind: 'OPAQUE', octets: parseFields(fields, words, origin) }
}

function parseGeneric(type: number, cls: number, words: readonly string[]): RData {
  const digits = words.slice(2).join('')
  if (!/^[0-9a-f]*$/i.test(digits) || digits.length !== 2 * Number(words[1])) fail('generic data does not have the length it states')
  const octets = Buffer.from(digits, 'hex')
  return decodeRdata(type, cls, octets, 0, octets.length, 0, octets.length)
}

/** The octets of a record's data, uncompressed. */
export function rdataOctets(type: number, data: RData): Buffer {
  const out = new Writer(Buffer.allocUnsafe(65_535), 0, 65_535)
  encodeRdata(type, data, out)
  return Buffer.from(out.buffer.subarray(0, out.at))
}

/** A whole message the way `dig` shows it. */
export function formatMessage(message: Message): string {
  const bits: readonly [number, string][] = [
    [FLAG.QR, 'qr'],
    [FLAG.AA, 'aa'],
    [FLAG.TC, 'tc'],
    [FLAG.RD, 'rd'],
    [FLAG.RA, 'ra'],
    [FLAG.Z, 'z'],
    [FLAG.AD, 'ad'],
    [FLAG.CD, 'cd'],
  ]
  const edns = message.edns
  const lines = [
    `;; ->>HEADER<<- opcode: ${opcodeName(message.opcode)}, status: ${rcodeName(message.rcode)}, id: ${message.id}`,
    `;; flags:${bits.map(([bit, name]) => (message.flags & bit ? ` ${name}` : '')).join('')}; QUERY: ${message.question ? 1 : 0}, ANSWER: ${message.answers.length}, AUTHORITY: ${message.authorities.length}, ADDITIONAL: ${message.additionals.length + (edns ? 1 : 0)}`,
  ]
  if (edns !== undefined) lines.push('', ';; OPT PSEUDOSECTION:', ...formatEdns(edns))
  const question = message.question
  if (question !== undefined)
    lines.push('', ';; QUESTION SECTION:', `;${question.name}\t\t${className(question.class)}\t${typeName(question.type)}`)
  for (const [title, records] of [
    ['ANSWER', message.answers],
    ['AUTHORITY', message.authorities],
    ['ADDITIONAL', message.additionals],
  ] as const)
    if (records.length > 0) lines.push('', `;; ${title} SECTION:`, ...records.map(formatRecord))
  return `${lines.join('\n')}\n`
}

function formatEdns(edns: Edns): string[] {
  const lines = [`; EDNS: version: ${edns.version}, flags:${edns.dnssecOk ? ' do' : ''}; udp: ${edns.size}`]
  for (const { code, data } of edns.options) {
    if (code === OPTION.EDE && data.length >= 2) {
      const text = data.length > 2 ? `: (${data.toString('utf8', 2)})` : ''
      lines.push(`; EDE: ${data.readUInt16BE(0)}${text}`)
    } else if (code === OPTION.COOKIE) lines.push(`; COOKIE: ${data.toString('hex')}`)
    else if (code === OPTION.NSID) lines.push(`; NSID: ${data.toString('hex')} (${quote(data)})`)
    else lines.push(`; OPT=${code}: ${data.toString('hex')}`)
  }
  return lines
}

function fail(message: string): never {
  throw new WireError('TEXT', message)
}
