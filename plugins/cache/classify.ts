/** What kind of reply this is, whether it answers its question, and how long it may be kept (RFC 2308). Reads octets, makes no records. */
import { FLAG, Name, OPCODE, type Question, type RawRecord, RCODE, type Scan, TYPE } from '../../src/dns/index.js'

/**
 * Kinds as CoreDNS tells replies apart. `unbounded` denies without an SOA that would say for how long: passed on, not kept (RFC 2308 §5).
 * `unusable` is what nothing is concluded from: other rcodes, expired signatures, signed transactions.
 */
export type Kind = 'positive' | 'delegation' | 'denial' | 'unbounded' | 'failure' | 'transfer' | 'unusable'

/** A reply's octets with what a scan found in them. */
export interface Scanned {
  readonly bytes: Buffer
  readonly offset: number
  readonly length: number
  readonly flags: number
  readonly scan: Scan
}

/** The 12-bit rcode. */
export const rcodeOf = (reply: Scanned): number => {
  const { opt } = reply.scan
  const high = opt === undefined ? 0 : reply.bytes[reply.offset + opt.ttlAt]!
  return (high << 4) | (reply.flags & 0xf)
}

/** `wallSeconds`: now, seconds since 1970, to tell expired signatures by. */
export function kindOf(reply: Scanned, question: Question, wallSeconds: number): Kind {
  const opcode = (reply.flags >> 11) & 0xf
  if (opcode === OPCODE.UPDATE || opcode === OPCODE.NOTIFY || question.type === TYPE.AXFR || question.type === TYPE.IXFR) return 'transfer'
  const rcode = rcodeOf(reply)
  const { records } = reply.scan
  if (dnssecOk(reply) && records.some((record) => record.type === TYPE.RRSIG && !isValid(reply, record, wallSeconds))) return 'unusable'
  if (records.some((record) => record.type === TYPE.TSIG || record.type === TYPE.SIG)) return 'unusable'
  const soa = records.some((record) => record.section === 2 && record.type === TYPE.SOA)
  if (rcode === RCODE.NXDOMAIN) return soa ? 'denial' : 'unbounded'
  if (rcode === RCODE.SERVFAIL || rcode === RCODE.NOTIMP) return 'failure'
  if (rcode !== RCODE.NOERROR) return 'unusable'
  // A NOERROR reply whose chain of CNAMEs ends short of the wanted type denies it (RFC 2308 §2.2); without an SOA nothing bounds that denial.
  if (hasAnswers(reply)) return answersQuestion(reply, question) ? 'positive' : soa ? 'denial' : 'unbounded'
  if (soa) return 'denial'
  return records.some((record) => record.section === 2 && record.type === TYPE.NS) ? 'delegation' : 'positive'
}

const hasAnswers = (reply: Scanned): boolean => reply.scan.records.some((record) => record.section === 1)

const dnssecOk = (reply: Scanned): boolean => {
  const { opt } = reply.scan
  return opt !== undefined && (reply.bytes[reply.offset + opt.ttlAt + 2]! & 0x80) !== 0
}

/** RFC 4034 §3.1.5: inception and expiration are compared as serial numbers. */
function isValid(reply: Scanned, record: RawRecord, wallSeconds: number): boolean {
  if (record.size < 18) return false
  const at = reply.offset + record.dataAt
  const expiration = reply.bytes.readUInt32BE(at + 8)
  const inception = reply.bytes.readUInt32BE(at + 12)
  return ((expiration - wallSeconds) | 0) >= 0 && ((wallSeconds - inception) | 0) >= 0
}

/**
 * Whether the answer section holds a record of the wanted type at the end of the chain of CNAMEs that begins at the question's name. A chain
 * with two targets at one name (RFC 2181 §10.1) or with a loop has no end, and so no answer.
 */
export function answersQuestion(reply: Scanned, question: Question): boolean {
  const answers = reply.scan.records.filter((record) => record.section === 1 && classFits(record.class, question.class))
  const owners = answers.map((record) => nameAt(reply, record.at))
  if (question.type === TYPE.ANY) return owners.includes(question.name.key)
  const target = (owner: string): string | undefined | null => {
    let found: string | undefined
    for (const [i, record] of answers.entries()) {
      if (record.type !== TYPE.CNAME || owners[i] !== owner) continue
      const to = nameAt(reply, record.dataAt)
      if (found !== undefined && found !== to) return null
      found = to
    }
    return found
  }
  if (question.type === TYPE.CNAME) return typeof target(question.name.key) === 'string'
  const seen = new Set<string>()
  let owner = question.name.key
  for (;;) {
    if (seen.has(owner)) return false
    seen.add(owner)
    const to = target(owner)
    if (to === null) return false
    if (to === undefined) break
    owner = to
  }
  return answers.some((record, i) => record.type === question.type && owners[i] === owner)
}

const classFits = (of: number, wanted: number): boolean => wanted === 255 || of === wanted
const nameAt = (reply: Scanned, at: number): string =>
  Name.read(reply.bytes, reply.offset + at, reply.offset, reply.offset + reply.length).key

/** Seconds that CoreDNS gives replies that say nothing of their own lifetime. */
const SHORT = 5

/**
 * The lowest TTL of all records, at most `maximum`: what every record of the reply gets. All 32 bits count, as RFC 8767 §4 wants it. Of an SOA
 * it is the record's TTL and not its MINIMUM, as in CoreDNS: authoritative servers send the lower of both as that TTL (RFC 2308 §3).
 */
export function lowestTtl(reply: Scanned, kind: Kind, maximum: number): number {
  if ((kind !== 'positive' && kind !== 'denial' && kind !== 'unbounded') || reply.scan.records.length === 0) return SHORT
  let lowest = maximum
  for (const { ttl } of reply.scan.records) if (ttl < lowest) lowest = ttl
  return lowest
}

/** The answer holds for this client's network alone (RFC 7871 §7.3): an ECS option with a scope above 0. */
export function isForOneNetwork(reply: Scanned): boolean {
  const { opt } = reply.scan
  if (opt === undefined) return false
  const at = reply.offset + opt.dataAt
  for (let i = at; i + 4 <= at + opt.size; ) {
    const size = reply.bytes.readUInt16BE(i + 2)
    if (reply.bytes.readUInt16BE(i) === 8 && size >= 4 && i + 8 <= at + opt.size) return reply.bytes[i + 7]! > 0
    i += 4 + size
  }
  return false
}

/** One question, a reply, and the question that was asked. */
export function matches(reply: Scanned, question: Question): boolean {
  const { bytes, offset, length, flags } = reply
  if ((flags & FLAG.QR) === 0 || bytes.readUInt16BE(offset + 4) !== 1) return false
  const name = Name.read(bytes, offset + 12, offset, offset + length)
  const at = Name.lastEnd
  return name.key === question.name.key && bytes.readUInt16BE(at) === question.type && bytes.readUInt16BE(at + 2) === question.class
}
