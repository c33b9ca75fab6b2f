/** From a reply to the octets that a client gets: its own id and question, OPT as it asked for, no more than it takes. */
import { type Edns, encodeMessage, type Message, OPTION, type Question, TYPE, WireError } from '../dns/index.js'
import type { Query } from '../plugins/contract.js'

/** EDNS options of a query that a reply made here repeats, as CoreDNS does. */
const ECHOED: ReadonlySet<number> = new Set([OPTION.NSID, OPTION.EXPIRE, OPTION.COOKIE, OPTION.KEEPALIVE, OPTION.PADDING])
/** The flag bits of an OPT record that survive: DO is its own field, of the rest CoreDNS keeps the upper seven. */
const Z_KEPT = 0x7f00
const DO = 0x8000
/** Octets of an OPT record without options. */
const OPT_HEADER = 11

/** The OPT record for a reply, or undefined: a client that sent none gets none (RFC 6891 §7). */
export function replyEdns(query: Query, reply: Edns | undefined, extendedRcode: number): Edns | undefined {
  const client = query.message.edns
  if (client === undefined) return undefined
  const source = reply ?? client
  return {
    size: query.lowered ?? client.size,
    extendedRcode,
    version: 0,
    dnssecOk: client.dnssecOk || source.dnssecOk,
    z: source.z & Z_KEPT,
    options: reply !== undefined || client.options.length === 0 ? source.options : client.options.filter(({ code }) => ECHOED.has(code)),
  }
}

/** Octets that the client takes. */
export function replyLimit(query: Query): number {
  if (query.proto !== 'udp') return 65_535
  return query.lowered === undefined ? query.size : Math.max(512, Math.min(query.size, query.lowered))
}

/** Writes `reply` as the answer to `query` at `at` of `out` and returns its length. Throws WireError if it cannot be written. */
export function writeReply(query: Query, reply: Message, out: Buffer, at: number): number {
  const limit = replyLimit(query)
  if (reply.isPlain) {
    const length = sendPlain(query, reply, out, at, limit)
    if (length > 0) return length
  }
  return (reply.fromOctets && copyReply(query, reply, out, at, limit)) || encodeReply(query, reply, out, at, limit)
}

function encodeReply(query: Query, reply: Message, out: Buffer, at: number, limit: number): number {
  const { answers, authorities, additionals } = reply
  const edns = replyEdns(query, reply.edns, reply.rcode >> 4)
  if (reply.rcode > 15 && edns === undefined) throw new WireError('RDATA', `rcode ${reply.rcode} needs EDNS, which the client does not use`)
  const question = sameQuestion(query, reply.question) ? query.message.question : reply.question
  return encodeMessage({ id: query.message.id, flags: reply.flags, question, answers, authorities, additionals, edns }, out, at, limit)
}

const sameQuestion = (query: Query, question: Question | undefined): boolean =>
  question === query.message.question ||
  (question !== undefined && question.name.key === query.name.key && question.type === query.type && question.class === query.class)

/** A kept reply to the question that was asked: copied, with an OPT record behind it for a client that sent one without options. 0: that does not do. */
function sendPlain(query: Query, reply: Message, out: Buffer, at: number, limit: number): number {
  const client = query.message.edns
  const { question, length } = reply
  if (client === undefined) {
    if (length > limit || !sameQuestion(query, question)) return 0
    reply.encode(out, at, limit)
  } else {
    if (client.options.length > 0 || length + OPT_HEADER > limit || !sameQuestion(query, question)) return 0
    reply.encode(out, at, limit)
    out[at + 11]!++
    if (out[at + 11] === 0) out[at + 10]!++
    optLength = 0
    writeOpt(query, client, 0, out, at + length)
  }
  out[at] = query.message.id >>> 8
  out[at + 1] = query.message.id
  return client === undefined ? length : length + OPT_HEADER
}

/** Offset behind the last record of the reply in hand, or of its OPT record, which then is the last; counted from its start. */
let recordsEnd = 0
/** Octets of that OPT record; 0: there is none. */
let optLength = 0

/**
 * Copies a reply that came as octets, then changes only what must be. Returns 0 where that does not do and the records must be looked at:
 * it is too long, carries TSIG or OPT with options, or has OPT in the middle.
 */
function copyReply(query: Query, reply: Message, out: Buffer, at: number, limit: number): number {
  const question = reply.question
  if (question === undefined || at + reply.length > out.length) return 0
  const copied = reply.encode(out, at, out.length - at)
  const client = query.message.edns
  if (reply.tail < 0) {
    if (!locate(out, at, copied)) return 0
  } else {
    recordsEnd = reply.tail
    optLength = reply.length - recordsEnd
  }
  if (optLength > OPT_HEADER || (client !== undefined && optLength === 0 && client.options.length > 0)) return 0
  const extended = optLength === 0 ? 0 : out[at + recordsEnd + 5]!
  const length = recordsEnd + (client === undefined ? 0 : OPT_HEADER)
  if (length > limit || (client === undefined && extended !== 0)) return 0
  putWord(out, at, query.message.id)
  putWord(out, at + 2, reply.flags)
  const opts = (client === undefined ? 0 : 1) - (optLength > 0 ? 1 : 0)
  if (opts !== 0) putWord(out, at + 10, out.readUInt16BE(at + 10) + opts)
  // Owner names point at the question, so the client's spelling comes back with one copy. With the client's own question it is there already.
  if (
    question !== query.message.question &&
    sameQuestion(query, question) &&
    skipName(out, at + 12, at + copied) === at + 12 + query.name.wire.length
  )
    out.set(query.name.wire, at + 12)
  if (client !== undefined) writeOpt(query, client, extended, out, at + recordsEnd)
  return length
}

/** As writeUInt16BE, without its checks. */
function putWord(out: Buffer, at: number, value: number): void {
  out[at] = value >>> 8
  out[at + 1] = value
}

/** An OPT record without options takes the place of the reply's own, or comes behind its records. */
function writeOpt(query: Query, client: Edns, extended: number, out: Buffer, at: number): void {
  const flags = optLength > 0 ? out.readUInt16BE(at + 7) & (Z_KEPT | DO) : client.z & Z_KEPT
  putOpt(out, at, query.lowered ?? client.size, extended, flags | (client.dnssecOk ? DO : 0))
}

/** An OPT record of version 0 without options; `flags`: DO and Z. */
export function putOpt(out: Buffer, at: number, size: number, extended: number, flags: number): void {
  out[at] = 0
  putWord(out, at + 1, TYPE.OPT)
  putWord(out, at + 3, size)
  out[at + 5] = extended
  out[at + 6] = 0
  putWord(out, at + 7, flags)
  putWord(out, at + 9, 0)
}

/** Finds `recordsEnd` and `optLength`. false: OPT is not last, there is a TSIG, or these octets are no reply to one question. */
function locate(bytes: Buffer, start: number, length: number): boolean {
  const stop = start + length
  if (bytes.readUInt16BE(start + 4) !== 1) return false
  let at = skipName(bytes, start + 12, stop) + 4
  const plain = bytes.readUInt16BE(start + 6) + bytes.readUInt16BE(start + 8)
  const records = plain + bytes.readUInt16BE(start + 10)
  optLength = 0
  recordsEnd = at - start
  for (let i = 0; i < records; i++) {
    if (optLength > 0) return false
    const owner = at
    at = skipName(bytes, at, stop) + 10
    if (at > stop) return false
    const type = bytes.readUInt16BE(at - 10)
    at += bytes.readUInt16BE(at - 2)
    if (at > stop || (type === TYPE.TSIG && i >= plain)) return false
    if (type === TYPE.OPT && i >= plain) optLength = at - owner
    else recordsEnd = at - start
  }
  return at <= stop
}

/** The octet behind a name, not beyond `stop`. */
function skipName(bytes: Buffer, from: number, stop: number): number {
  let at = from
  while (at < stop) {
    const size = bytes[at]!
    if (size >= 0xc0) return at + 2
    at += size + 1
    if (size === 0) return at
  }
  return stop
}
