/**
 * A walk over a message's octets that makes no record: where records, their TTLs and addresses stand. What `cache` keeps and `loadbalance`
 * shuffles without decoding. All offsets count from the start of the message.
 */
import { TYPE } from './constants.js'
import { WireError } from './errors.js'
import { Name } from './name.js'

/** One record as it lies in the message. */
export interface RawRecord {
  readonly section: 1 | 2 | 3
  /** Offset of the owner name. */
  readonly at: number
  readonly type: number
  readonly class: number
  /** Offset of the TTL field. */
  readonly ttlAt: number
  readonly ttl: number
  readonly dataAt: number
  readonly size: number
}

export interface Scan {
  /** Without OPT. */
  readonly records: readonly RawRecord[]
  readonly opt: RawRecord | undefined
  /** No record stands behind the OPT record, so cutting it off leaves every pointer valid. True without OPT. */
  readonly optLast: boolean
  /** The octet behind the last record that is no OPT. */
  readonly end: number
}

/** What a copy of a message needs to know to be patched. */
export interface Layout {
  /** Offsets of the TTL fields of all records but OPT. */
  readonly ttls: readonly number[]
  /** Offsets of the RDATA of the answer's addresses, where changing places means no more than swapping these octets; else empty. */
  readonly addresses: readonly number[]
  readonly addressSize: number
  /** Putting the records in order takes more than swapping addresses. */
  readonly mixed: boolean
  /** Octets without compression, once somebody has counted them; whatever is patched, it is the same. */
  full: number | undefined
}

export const NO_LAYOUT: Layout = { ttls: [], addresses: [], addressSize: 0, mixed: false, full: undefined }

/** Walks all four sections, bounded by `length`. Throws WireError for what cannot be a message; RDATA is not looked into. */
export function scanMessage(bytes: Buffer, offset: number, length: number): Scan {
  const limit = offset + length
  if (length < 12) throw new WireError('SHORT', `message of ${length} octets`)
  let at = offset + 12
  for (let i = bytes.readUInt16BE(offset + 4); i > 0; i--) {
    at = Name.skip(bytes, at, offset, limit) + 4
    if (at > limit) throw new WireError('SHORT', 'question cut off')
  }
  const records: RawRecord[] = []
  let opt: RawRecord | undefined
  let optLast = true
  let end = at - offset
  for (const section of [1, 2, 3] as const) {
    for (let i = bytes.readUInt16BE(offset + 4 + 2 * section); i > 0; i--) {
      const record = rawRecord(bytes, at, offset, limit, section)
      at = offset + record.dataAt + record.size
      if (section === 3 && record.type === TYPE.OPT) {
        if (opt !== undefined) throw new WireError('RDATA', 'more than one OPT record')
        opt = record
      } else {
        if (opt !== undefined) optLast = false
        records.push(record)
        end = at - offset
      }
    }
  }
  return { records, opt, optLast, end }
}

function rawRecord(bytes: Buffer, start: number, offset: number, limit: number, section: 1 | 2 | 3): RawRecord {
  const at = Name.skip(bytes, start, offset, limit)
  if (at + 10 > limit) throw new WireError('SHORT', 'record cut off')
  const size = bytes.readUInt16BE(at + 8)
  if (at + 10 + size > limit) throw new WireError('SHORT', 'record data cut off')
  return {
    section,
    at: start - offset,
    type: bytes.readUInt16BE(at),
    class: bytes.readUInt16BE(at + 2),
    ttlAt: at + 4 - offset,
    ttl: bytes.readUInt32BE(at + 4),
    dataAt: at + 10 - offset,
    size,
  }
}

/** Where the addresses of the answer may change places on the octets alone: one RRset of them, behind all else, nothing to order elsewhere. */
export function layoutOf(scan: Scan, bytes: Buffer, offset: number, length: number): Layout {
  // A cache full of failures keeps one of these for each.
  if (scan.records.length === 0) return NO_LAYOUT
  const ttls = scan.records.map((record) => record.ttlAt)
  const answers = scan.records.filter((record) => record.section === 1)
  const addresses = answers.filter((record) => rank(record.type) === 2)
  const mixed =
    !inOrder(answers) ||
    count(answers, 3) > 1 ||
    [2, 3].some((section) => needsWork(scan.records.filter((record) => record.section === section))) ||
    !oneSet(addresses, bytes, offset, length)
  if (mixed || addresses.length < 2) return { ttls, addresses: [], addressSize: 0, mixed, full: undefined }
  return { ttls, addresses: addresses.map((record) => record.dataAt), addressSize: addresses[0]!.size, mixed: false, full: undefined }
}

/** CNAMEs come first, then all else, then addresses, then MX: the order that clients are given. */
const rank = (type: number): number => (type === TYPE.CNAME ? 0 : type === TYPE.A || type === TYPE.AAAA ? 2 : type === TYPE.MX ? 3 : 1)
const count = (records: readonly RawRecord[], wanted: number): number => records.filter((record) => rank(record.type) === wanted).length
const inOrder = (records: readonly RawRecord[]): boolean => records.every((r, i) => i === 0 || rank(records[i - 1]!.type) <= rank(r.type))
const needsWork = (records: readonly RawRecord[]): boolean =>
  records.length > 1 && (!inOrder(records) || count(records, 2) > 1 || count(records, 3) > 1)

function oneSet(records: readonly RawRecord[], bytes: Buffer, offset: number, length: number): boolean {
  const first = records[0]
  if (first === undefined) return true
  const key = (record: RawRecord): string => Name.read(bytes, offset + record.at, offset, offset + length).key
  return records.every(
    (r) =>
      r === first ||
      (r.type === first.type && r.class === first.class && r.size === first.size && r.ttl === first.ttl && key(r) === key(first)),
  )
}
