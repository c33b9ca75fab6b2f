/**
 * What nearly all replies from elsewhere are: addresses of the name that was asked for, or its denial with one SOA. They are seen through in
 * one walk that makes nothing but what is kept. Whatever is unusual in the least is left to the general way, which has to come to the same.
 */
import { FLAG, type Layout, type Message, Name, OPCODE, type Question, RCODE, TYPE } from '../../src/dns/index.js'

export interface Plain {
  readonly kind: 'positive' | 'denial'
  /** Octet behind the last record that is no OPT, counted from the start of the message. */
  readonly end: number
  readonly hasOpt: boolean
  /** The lowest TTL, all 32 bits. */
  readonly lowest: number
  readonly layout: Layout
}

const HEADER = 12
/** Octets of an OPT record without options. */
const OPT_OCTETS = 11
const IN = 1

const word = (bytes: Buffer, at: number): number => (bytes[at]! << 8) | bytes[at + 1]!
const long = (bytes: Buffer, at: number): number => word(bytes, at) * 0x1_0000 + word(bytes, at + 2)

/** Throws WireError for octets that are no message. undefined: not one of those, or not to this question. */
export function seePlain(reply: Message, question: Question): Plain | undefined {
  const { bytes, offset, length, flags } = reply
  if (bytes === undefined || question.class !== IN || (flags & FLAG.QR) === 0 || ((flags >> 11) & 0xf) !== OPCODE.QUERY) return undefined
  const rcode = flags & 0xf
  const answers = word(bytes, offset + 6)
  const authorities = word(bytes, offset + 8)
  const additionals = word(bytes, offset + 10)
  if (word(bytes, offset + 4) !== 1 || additionals > 1) return undefined
  const start = questionEnd(bytes, offset, length, question)
  if (start === 0) return undefined
  const plain =
    answers > 0 && authorities === 0 && rcode === RCODE.NOERROR
      ? addresses(bytes, offset, start, length, question.type, answers, additionals)
      : answers === 0 && authorities === 1 && (rcode === RCODE.NOERROR || rcode === RCODE.NXDOMAIN)
        ? denial(bytes, offset, start, length, question.type, additionals)
        : undefined
  return plain !== undefined && (additionals === 0 || isBareOpt(bytes, offset, plain.end, length)) ? plain : undefined
}

/** Offset behind the reply's question if it is this one; else 0. */
function questionEnd(bytes: Buffer, offset: number, length: number, { name: { key }, type }: Question): number {
  const end = HEADER + key.length
  if (length < end + 5) return 0
  for (let i = 0, at = offset + HEADER; i < key.length; i++, at++) {
    const octet = bytes[at]!
    const wanted = key.charCodeAt(i)
    // Keys have no upper-case letter.
    if (octet !== wanted && (octet > 0x5a || octet < 0x41 || (octet | 0x20) !== wanted)) return 0
  }
  const at = offset + end
  return bytes[at] === 0 && word(bytes, at + 1) === type && word(bytes, at + 3) === IN ? end + 5 : 0
}

/** An OPT record without options and upper rcode bits, and nothing behind it. */
const isBareOpt = (bytes: Buffer, offset: number, at: number, length: number): boolean =>
  length === at + OPT_OCTETS &&
  bytes[offset + at] === 0 &&
  word(bytes, offset + at + 1) === TYPE.OPT &&
  bytes[offset + at + 5] === 0 &&
  word(bytes, offset + at + 9) === 0

function addresses(
  bytes: Buffer,
  offset: number,
  start: number,
  length: number,
  type: number,
  count: number,
  additionals: number,
): Plain | undefined {
  const size = type === TYPE.A ? 4 : type === TYPE.AAAA ? 16 : 0
  const step = 12 + size
  const end = start + count * step
  if (size === 0 || end > length) return undefined
  const first = long(bytes, offset + start + 6)
  let lowest = first
  let mixed = false
  for (let at = start; at < end; at += step) {
    const from = offset + at
    if (bytes[from] !== 0xc0 || bytes[from + 1] !== HEADER) return undefined
    if (word(bytes, from + 2) !== type || word(bytes, from + 4) !== IN || word(bytes, from + 10) !== size) return undefined
    const ttl = long(bytes, from + 6)
    if (ttl !== first) mixed = true
    if (ttl < lowest) lowest = ttl
  }
  return { kind: 'positive', end, hasOpt: additionals === 1, lowest, layout: layoutFor(start, count, size, mixed) }
}

/** Names of equal length with equally many addresses have one layout: a cache has thousands of the same. Some hundred in practice. */
const layouts = new Map<number, Layout>()
const MOST_SHARED = 16

function layoutFor(start: number, count: number, size: number, mixed: boolean): Layout {
  if (count > MOST_SHARED) return makeLayout(start, count, size, mixed)
  const key = ((start * 32 + count) * 32 + size) * 2 + (mixed ? 1 : 0)
  let layout = layouts.get(key)
  if (layout === undefined) {
    layout = makeLayout(start, count, size, mixed)
    layouts.set(key, layout)
  }
  return layout
}

function makeLayout(start: number, count: number, size: number, mixed: boolean): Layout {
  const ttls = Array.from({ length: count }, (_, i) => start + i * (12 + size) + 6)
  // Records of one set with several TTLs (RFC 2181 §5.2) are not shuffled on their octets.
  if (mixed || count < 2) return { ttls, addresses: NONE, addressSize: 0, mixed, full: undefined }
  return { ttls, addresses: ttls.map((at) => at + 6), addressSize: size, mixed, full: undefined }
}

const NONE: readonly number[] = []

function denial(bytes: Buffer, offset: number, start: number, length: number, type: number, additionals: number): Plain | undefined {
  if (type === TYPE.AXFR || type === TYPE.IXFR) return undefined
  const at = Name.skip(bytes, offset + start, offset, offset + length) - offset
  if (at + 10 > length || word(bytes, offset + at) !== TYPE.SOA) return undefined
  const end = at + 10 + word(bytes, offset + at + 8)
  if (end > length) return undefined
  const layout = { ttls: [at + 4], addresses: NONE, addressSize: 0, mixed: false, full: undefined }
  return { kind: 'denial', end, hasOpt: additionals === 1, lowest: long(bytes, offset + at + 4), layout }
}
