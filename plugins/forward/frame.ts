/**
 * Queries and replies as octets. A frame is what goes to an upstream: two octets of length (for streams), then the message. The query's
 * octets are copied, not encoded anew; its hop-by-hop EDNS options (RFC 7873 cookies, RFC 7830 padding, RFC 7828 keepalive) stay here.
 */
import { type EdnsOption, FLAG, type Message, Name, OPTION, optLength, TYPE, WireError } from '../../src/dns/index.js'
import type { Query } from '../../src/plugins/contract.js'

/** Octets in front of the message in a frame. */
export const PREFIX = 2

const HEADER = 12
const LONGEST = 65_535

/** The query as a frame, id still the client's. `passEcs`: RFC 7871 options of the client go along. */
export function makeFrame(query: Query, passEcs: boolean): Buffer {
  const frame = copyFrame(query.message, passEcs) ?? encodeFrame(query, passEcs)
  if (query.authentic) frame[PREFIX + 3]! |= FLAG.AD
  return frame
}

const staysHere = (code: number, passEcs: boolean): boolean =>
  code === OPTION.COOKIE || code === OPTION.PADDING || code === OPTION.KEEPALIVE || (code === OPTION.ECS && !passEcs)

/** A question alone, or with an OPT record, as nearly every client sends it. undefined: anything else. */
function copyFrame(message: Message, passEcs: boolean): Buffer | undefined {
  const { bytes, offset, length, question } = message
  if (bytes === undefined || question === undefined || message.count(1) + message.count(2) !== 0) return undefined
  const end = question.end
  if (message.count(3) === 0) return length === end ? cut(bytes, offset, length) : undefined
  const opt = offset + end
  if (message.count(3) !== 1 || length < end + 11 || bytes[opt] !== 0 || bytes.readUInt16BE(opt + 1) !== TYPE.OPT) return undefined
  if (length !== end + 11 + bytes.readUInt16BE(opt + 9)) return undefined
  const frame = cut(bytes, offset, length)
  return stripOptions(frame, PREFIX + end, passEcs)
}

function cut(bytes: Buffer, offset: number, length: number): Buffer {
  const frame = Buffer.allocUnsafe(PREFIX + length)
  frame.writeUInt16BE(length, 0)
  bytes.copy(frame, PREFIX, offset, offset + length)
  return frame
}

/** Takes options out of the OPT record at `opt`, the last one of the frame. undefined if they are malformed. */
function stripOptions(frame: Buffer, opt: number, passEcs: boolean): Buffer | undefined {
  let out = opt + 11
  for (let at = out; at < frame.length; ) {
    if (at + 4 > frame.length) return undefined
    const size = 4 + frame.readUInt16BE(at + 2)
    if (at + size > frame.length) return undefined
    if (!staysHere(frame.readUInt16BE(at), passEcs)) {
      if (out !== at) frame.copyWithin(out, at, at + size)
      out += size
    }
    at += size
  }
  if (out === frame.length) return frame
  frame.writeUInt16BE(out - opt - 11, opt + 9)
  frame.writeUInt16BE(out - PREFIX, 0)
  return frame.subarray(0, out)
}

/** For queries made of records (a plugin changed or derived them) and for unusual ones. What a plugin set goes on upstream. */
function encodeFrame(query: Query, passEcs: boolean): Buffer {
  const { message, arrival } = query
  const { edns } = message
  const fromClient = (option: EdnsOption): boolean => message.fromOctets || (arrival.options?.includes(option) ?? false)
  const options = edns?.options.filter((option) => !staysHere(option.code, passEcs || !fromClient(option)))
  const clean = edns === undefined || options === undefined ? message.with({}) : message.with({ edns: { ...edns, options } })
  const records = clean.count(1) + clean.count(2) + clean.additionals.length
  const bound = records > 0 ? LONGEST : HEADER + 255 + 4 + (clean.edns === undefined ? 0 : optLength(clean.edns))
  const frame = Buffer.allocUnsafe(PREFIX + bound)
  const length = clean.encode(frame, PREFIX, bound)
  frame.writeUInt16BE(length, 0)
  return frame.subarray(0, PREFIX + length)
}

/** Where the question of a frame ends, counted from the start of its message. The frame is ours: its one question is sound. */
export function questionEnd(frame: Buffer): number {
  let at = PREFIX + HEADER
  while (frame[at] !== 0) at += frame[at]! + 1
  return at + 5 - PREFIX
}

/** Random letter case (0x20) in the frame's question, so that a forger has to guess it too. */
export function randomizeCase(frame: Buffer, random: Buffer): void {
  const end = PREFIX + questionEnd(frame) - 5
  for (let at = PREFIX + HEADER, bit = 0; at < end; at++) {
    const octet = frame[at]!
    if ((octet | 0x20) < 0x61 || (octet | 0x20) > 0x7a) continue
    if (((random[(bit >> 3) % random.length]! >> (bit & 7)) & 1) === 1) frame[at] = octet ^ 0x20
    bit++
  }
}

export type Verdict = 'match' | 'case' | 'other'

/**
 * Whether `reply` answers the frame: a response of the same opcode with the same question. 'case': only the letter case differs. A bare
 * header that reports an error counts as a match, as old servers answer EDNS that way.
 */
export function compare(frame: Buffer, reply: Buffer): Verdict {
  if (reply.length < HEADER) return 'other'
  const flags = reply.readUInt16BE(2)
  if ((flags & FLAG.QR) === 0 || ((flags ^ frame.readUInt16BE(PREFIX + 2)) & 0x7800) !== 0) return 'other'
  const questions = reply.readUInt16BE(4)
  if (questions === 0) return reply.length === HEADER && (flags & 0xf) !== 0 && (flags & 0xf) !== 3 ? 'match' : 'other'
  const end = questionEnd(frame)
  if (questions !== 1 || reply.length < end) return 'other'
  let verdict: Verdict = 'match'
  for (let at = HEADER; at < end; at++) {
    const difference = reply[at]! ^ frame[PREFIX + at]!
    if (difference === 0) continue
    const letter = reply[at]! | 0x20
    // The last four octets are type and class, and length octets are below the letters.
    if (difference !== 0x20 || at >= end - 4 || letter < 0x61 || letter > 0x7a) return 'other'
    verdict = 'case'
  }
  return verdict
}

/** A reply that was looked through. */
export interface Received {
  /** Without octets behind the last record. Nobody else holds it. */
  readonly bytes: Buffer
  /** With the upper bits of the OPT record. */
  readonly rcode: number
  /** Octets as they came. */
  readonly size: number
  /** What its COOKIE option held. */
  readonly cookie: Buffer | undefined
}

/** Looks a reply through; undefined if it is malformed. */
export function inspect(reply: Buffer): Received | undefined {
  try {
    const { end, rcode, opt } = walk(reply)
    const bytes = end === reply.length ? reply : reply.subarray(0, end)
    const cookie = opt === 0 ? undefined : cookieOf(bytes, opt)
    return { bytes: opt === 0 ? bytes : withoutHops(bytes, opt), rcode, size: reply.length, cookie }
  } catch (error) {
    if (error instanceof WireError) return undefined
    throw error
  }
}

/** A copy of the COOKIE option's data; `opt`: the last record of the reply. */
function cookieOf(reply: Buffer, opt: number): Buffer | undefined {
  for (let at = opt + 11; at + 4 <= reply.length; ) {
    const end = at + 4 + reply.readUInt16BE(at + 2)
    if (reply.readUInt16BE(at) === OPTION.COOKIE) return Buffer.from(reply.subarray(at + 4, end))
    at = end
  }
  return undefined
}

/**
 * The reply without the upstream's own cookies, padding and keepalive: Knot Resolver, for one, pads all that goes by TLS, up to more than a
 * client by UDP takes. `opt`: its last record.
 */
function withoutHops(reply: Buffer, opt: number): Buffer {
  const first = opt + 11
  let out = first
  for (let at = first; at < reply.length; ) {
    const size = at + 4 > reply.length ? reply.length - at : Math.min(reply.length - at, 4 + reply.readUInt16BE(at + 2))
    if (size < 4 || !staysHere(reply.readUInt16BE(at), true)) {
      if (out !== at) reply.copyWithin(out, at, at + size)
      out += size
    }
    at += size
  }
  if (out === reply.length) return reply
  reply.writeUInt16BE(out - first, first - 2)
  return reply.subarray(0, out)
}

/**
 * Walks the records of a reply. Throws WireError if it is malformed. A message cut at a record's border counts as if it ended there
 * (some servers truncate that way): its counts are put right in place.
 */
function walk(reply: Buffer): { end: number; rcode: number; opt: number } {
  let at = HEADER
  /** Where the OPT record begins, if it is the last one of the message; else 0. */
  let opt = 0
  for (let i = reply.readUInt16BE(4); i > 0; i--) at = Name.skip(reply, at, 0, reply.length) + 4
  if (at > reply.length) throw new WireError('SHORT', 'question cut off')
  let rcode = reply.readUInt16BE(2) & 0xf
  for (let count = 6; count <= 10; count += 2) {
    const claimed = reply.readUInt16BE(count)
    let found = 0
    while (found < claimed && at < reply.length) {
      const fixed = Name.skip(reply, at, 0, reply.length)
      if (fixed + 10 > reply.length) throw new WireError('SHORT', 'record cut off')
      const type = reply.readUInt16BE(fixed)
      const data = fixed + 10
      opt = type === TYPE.OPT ? at : 0
      at = data + reply.readUInt16BE(fixed + 8)
      if (at > reply.length) throw new WireError('SHORT', 'record data cut off')
      checkData(reply, type, data, at)
      if (type === TYPE.OPT) rcode |= reply[fixed + 4]! << 4
      found++
    }
    if (found < claimed) reply.writeUInt16BE(found, count)
  }
  return { end: at, rcode, opt }
}

/** RDATA of the types that resolvers read themselves. */
function checkData(reply: Buffer, type: number, data: number, end: number): void {
  if (type === TYPE.A || type === TYPE.AAAA) {
    if (end - data !== (type === TYPE.A ? 4 : 16)) throw new WireError('RDATA', 'address of the wrong length')
    return
  }
  const nameAt = type === TYPE.MX ? data + 2 : type === TYPE.SRV ? data + 6 : data
  if (type === TYPE.SOA) {
    const rname = Name.skip(reply, data, 0, end)
    if (Name.skip(reply, rname, 0, end) + 20 !== end) throw new WireError('RDATA', 'SOA of the wrong length')
  } else if (HAS_NAME.has(type) && Name.skip(reply, nameAt, 0, end) !== end) throw new WireError('RDATA', 'octets behind a name')
}

const HAS_NAME: ReadonlySet<number> = new Set([TYPE.CNAME, TYPE.NS, TYPE.PTR, TYPE.DNAME, TYPE.MX, TYPE.SRV])

/** Puts the client's id and the client's own spelling of the question into a reply. A bare error header gets the question back. */
export function restore(reply: Buffer, query: Query): Buffer {
  if (reply.readUInt16BE(4) === 0) return withQuestion(reply, query)
  reply.writeUInt16BE(query.message.id, 0)
  query.name.wire.copy(reply, HEADER)
  return reply
}

function withQuestion(header: Buffer, query: Query): Buffer {
  const { wire } = query.name
  const out = Buffer.alloc(HEADER + wire.length + 4)
  header.copy(out, 0, 0, HEADER)
  out.writeUInt16BE(query.message.id, 0)
  out.writeUInt16BE(1, 4)
  wire.copy(out, HEADER)
  out.writeUInt16BE(query.type, HEADER + wire.length)
  out.writeUInt16BE(query.class, HEADER + wire.length + 2)
  return out
}

/** Header and question alone with TC set: what stands in for a UDP reply that is larger than was asked for. */
export function truncated(reply: Buffer): Buffer {
  const end = Name.skip(reply, HEADER, 0, reply.length) + 4
  const out = Buffer.from(reply.subarray(0, end))
  out.writeUInt16BE(out.readUInt16BE(2) | FLAG.TC, 2)
  out.fill(0, 6, HEADER)
  return out
}

/** A question by itself as a frame: what health probes and the loop guard ask. */
export function questionFrame(name: Name, type: number, recursionDesired: boolean): Buffer {
  const frame = Buffer.alloc(PREFIX + HEADER + name.wire.length + 4)
  frame.writeUInt16BE(frame.length - PREFIX, 0)
  frame.writeUInt16BE(recursionDesired ? FLAG.RD : 0, PREFIX + 2)
  frame.writeUInt16BE(1, PREFIX + 4)
  name.wire.copy(frame, PREFIX + HEADER)
  frame.writeUInt16BE(type, frame.length - 4)
  frame.writeUInt16BE(1, frame.length - 2)
  return frame
}
