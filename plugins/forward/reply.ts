/**
 * Replies as octets: whether they fit the question, whether they are sound, and what of them goes on to the client. A reply is looked at
 * where it lies, in octets that are the socket's, and copied if somebody wants it for longer than the socket leaves it alone.
 */
import { FLAG, Message, Name, OPTION, TYPE, WireError } from '../../src/dns/index.js'
import type { Query } from '../../src/plugins/contract.js'
import { HEADER, PREFIX, questionEnd, staysHere } from './frame.js'

/** 'case': only the letter case of the question differs. */
export type Verdict = 'match' | 'case' | 'other'

const word = (bytes: Buffer, at: number): number => (bytes[at]! << 8) | bytes[at + 1]!

/**
 * Whether the first `length` octets of `reply` answer the frame: a response of the same opcode with the same question. A bare header that
 * reports an error counts as a match, as old servers answer EDNS that way.
 */
export function compare(frame: Buffer, reply: Buffer, length: number): Verdict {
  if (!isResponse(reply, length, word(frame, PREFIX + 2))) return 'other'
  const questions = word(reply, 4)
  if (questions === 0) return isBareError(reply, length) ? 'match' : 'other'
  const end = questionEnd(frame)
  if (questions !== 1 || length < end) return 'other'
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

/** The same for a query that was put as it came, where letter case says nothing. Returns where the records begin; 0: it is no answer. */
export function recordsOf(query: Query, reply: Buffer, length: number): number {
  if (!isResponse(reply, length, query.message.flags)) return 0
  const questions = word(reply, 4)
  if (questions === 0) return isBareError(reply, length) ? HEADER : 0
  const { key } = query.name
  const end = HEADER + key.length
  if (questions !== 1 || length < end + 5) return 0
  for (let at = HEADER, i = 0; at < end; at++, i++) {
    const octet = reply[at]!
    const wanted = key.charCodeAt(i)
    // Keys have no upper-case letter.
    if (octet !== wanted && (octet > 0x5a || octet < 0x41 || (octet | 0x20) !== wanted)) return 0
  }
  return reply[end] === 0 && word(reply, end + 1) === query.type && word(reply, end + 3) === query.class ? end + 5 : 0
}

const isResponse = (reply: Buffer, length: number, flags: number): boolean =>
  length >= HEADER && (reply[2]! & 0x80) !== 0 && ((word(reply, 2) ^ flags) & 0x7800) === 0

/** Nothing but a header, and neither NOERROR nor NXDOMAIN. */
const isBareError = (reply: Buffer, length: number): boolean => length === HEADER && (reply[3]! & 0xf) !== 0 && (reply[3]! & 0xf) !== 3

/** A reply that was looked through, in octets that may be the socket's: they are others once who was told of it has returned. */
export class Received {
  /** The message is at `offset`…`offset + length`, without octets behind the last record. */
  readonly bytes: Buffer
  readonly offset: number
  readonly length: number
  /** With the upper bits of the OPT record. */
  readonly rcode: number
  /** Octets as they came. */
  readonly size: number
  /** Octets without compression; -1: not known. */
  readonly full: number
  /** Where the records without OPT end, counted from `offset`, if nothing but OPT follows them; -1: not known. */
  readonly tail: number
  /** What its COOKIE option held. */
  readonly cookie: Buffer | undefined

  constructor(
    bytes: Buffer,
    offset: number,
    length: number,
    rcode: number,
    size: number,
    full: number,
    tail: number,
    cookie: Buffer | undefined,
  ) {
    this.bytes = bytes
    this.offset = offset
    this.length = length
    this.rcode = rcode
    this.size = size
    this.full = full
    this.tail = tail
    this.cookie = cookie
  }

  get flags(): number {
    return word(this.bytes, this.offset + 2)
  }

  /** The same in octets that nobody else writes to. */
  kept(): Received {
    const { bytes, offset, length, rcode, size, full, tail, cookie } = this
    if (length > LARGE)
      return new Received(Buffer.from(bytes.subarray(offset, offset + length)), 0, length, rcode, size, full, tail, cookie)
    const at = keep(bytes, offset, length)
    return new Received(chunk, at, length, rcode, size, full, tail, cookie)
  }
}

// What `walk` found.
let end = 0
let rcode = 0
/** Where the OPT record begins, if it is the last one of the message; else 0. */
let opt = 0
/** Counts say more than is there. */
let cut = false
/** Octets without compression; -1: that takes a closer look. */
let full = 0
/** There is a TSIG record, or an OPT record that is not the last one or not where it belongs. */
let odd = false
/** Octets of the question's name, if it was looked at. */
let nameSize = 0

/** Octets of an OPT record without options. */
const OPT_HEADER = 11

/** Looks through the first `length` octets of `reply`; undefined if they are malformed. `sound`: where the records begin, if the question was looked at. */
export function inspect(reply: Buffer, length: number, sound = 0): Received | undefined {
  try {
    walk(reply, length, sound)
  } catch (error) {
    if (error instanceof WireError) return undefined
    throw error
  }
  if (cut || (opt !== 0 && end - opt > OPT_HEADER)) return withChanges(Buffer.from(reply.subarray(0, end)), length)
  return new Received(reply, 0, end, rcode, length, full, odd || sound === 0 ? -1 : opt === 0 ? end : opt, undefined)
}

/**
 * Replies live for a turn or two, and most are small: many share a chunk, which costs less than a buffer for each and goes when the last
 * of them is sent. Who keeps one for longer (`cache`) copies it.
 */
const CHUNK = 16_384
const LARGE = 1024
/** Longer ones are copied by the engine, which takes a view for it; others cost less octet by octet. */
const FEW = 192
let chunk = Buffer.allocUnsafeSlow(CHUNK)
let used = 0

function keep(reply: Buffer, offset: number, length: number): number {
  if (used + length > CHUNK) {
    chunk = Buffer.allocUnsafeSlow(CHUNK)
    used = 0
  }
  const at = used
  used += length
  if (length <= FEW) for (let i = 0; i < length; i++) chunk[at + i] = reply[offset + i]!
  else reply.copy(chunk, at, offset, offset + length)
  return at
}

/** A reply, in octets of its own, whose counts must be put right, or whose OPT record has options. */
function withChanges(reply: Buffer, size: number): Received {
  if (cut) correctCounts(reply)
  if (opt === 0) return new Received(reply, 0, reply.length, rcode, size, -1, -1, undefined)
  const cookie = cookieOf(reply, opt)
  const bytes = withoutHops(reply, opt)
  return new Received(bytes, 0, bytes.length, rcode, size, -1, -1, cookie)
}

function cookieOf(reply: Buffer, opt: number): Buffer | undefined {
  for (let at = opt + OPT_HEADER; at + 4 <= reply.length; ) {
    const stop = at + 4 + word(reply, at + 2)
    if (word(reply, at) === OPTION.COOKIE) return Buffer.from(reply.subarray(at + 4, stop))
    at = stop
  }
  return undefined
}

/**
 * The reply without the upstream's own cookies, padding and keepalive: Knot Resolver, for one, pads all that goes by TLS, up to more than a
 * client by UDP takes. `opt`: its last record.
 */
function withoutHops(reply: Buffer, opt: number): Buffer {
  const first = opt + OPT_HEADER
  let out = first
  for (let at = first; at < reply.length; ) {
    const size = at + 4 > reply.length ? reply.length - at : Math.min(reply.length - at, 4 + word(reply, at + 2))
    if (size < 4 || !staysHere(word(reply, at), true)) {
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
 * Walks the records of a reply. Throws WireError if it is malformed. A message cut at a record's border counts as if it ended there: some
 * servers truncate that way.
 */
function walk(reply: Buffer, length: number, sound: number): void {
  let at = sound
  opt = 0
  cut = false
  odd = false
  nameSize = sound - HEADER - 4
  rcode = reply[3]! & 0xf
  // The question stands in full, if it is one.
  full = sound
  if (sound === 0) at = questionsEnd(reply, length)
  if (at > length) throw new WireError('SHORT', 'question cut off')
  for (let count = 6; count <= 10; count += 2) {
    for (let left = word(reply, count); left > 0; left--) {
      if (at >= length) {
        cut = true
        break
      }
      at = record(reply, at, length)
    }
  }
  end = at
  if (sound === 0) full = -1
  // The last record is an additional one only if there are any.
  if (opt !== 0 && word(reply, 10) === 0) odd = true
}

function questionsEnd(reply: Buffer, length: number): number {
  let at = HEADER
  for (let i = word(reply, 4); i > 0; i--) at = Name.skip(reply, at, 0, length) + 4
  return at
}

/** Looks at the record at `at`; returns where the next one begins. */
function record(reply: Buffer, at: number, length: number): number {
  const fixed = skipName(reply, at, length)
  const data = fixed + 10
  if (data > length) throw new WireError('SHORT', 'record cut off')
  const type = word(reply, fixed)
  const next = data + word(reply, fixed + 8)
  if (next > length) throw new WireError('SHORT', 'record data cut off')
  count(reply, at, fixed, type, next - fixed)
  // What is behind an OPT record is for a closer look.
  if (opt !== 0 || type === TYPE.TSIG) odd = true
  opt = 0
  if (type === TYPE.OPT) {
    opt = at
    rcode |= reply[fixed + 4]! << 4
  } else checkData(reply, type, data, next)
  return next
}

/** Adds a record, whose owner is at `at` and which has `size` octets behind it, to `full`. */
function count(reply: Buffer, at: number, fixed: number, type: number, size: number): void {
  if (full < 0) return
  if (HAS_NAME.has(type) || type === TYPE.SOA) full = -1
  else if (fixed === at + 1) full += 1 + size
  else if (reply[at] === 0xc0 && reply[at + 1] === HEADER) full += nameSize + size
  else full = -1
}

/** Most names point at the question, which was looked at. */
const skipName = (reply: Buffer, at: number, length: number): number =>
  reply[at] === 0xc0 && reply[at + 1] === HEADER && at + 2 <= length ? at + 2 : Name.skip(reply, at, 0, length)

/** Counts no more records than there are. */
function correctCounts(reply: Buffer): void {
  let at = questionsEnd(reply, reply.length)
  for (let count = 6; count <= 10; count += 2) {
    const claimed = word(reply, count)
    let found = 0
    for (; found < claimed && at < reply.length; found++) at = record(reply, at, reply.length)
    reply.writeUInt16BE(found, count)
  }
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

/** The reply as the client gets it: under its id and with its own spelling of the question. A bare error header gets the question back. */
export function messageFor(query: Query, { bytes, offset, length, full, tail }: Received): Message {
  if (word(bytes, offset + 4) === 0) return Message.view(withQuestion(bytes, offset, query))
  const { id } = query.message
  bytes[offset] = id >>> 8
  bytes[offset + 1] = id
  const at = offset + HEADER
  const { name } = query
  const { key } = name
  if (!name.isFolded) name.wire.copy(bytes, at)
  else for (let i = 0; i < key.length; i++) bytes[at + i] = key.charCodeAt(i)
  const message = Message.answered(bytes, offset, length, query.message, tail)
  message.full = full
  return message
}

function withQuestion(bytes: Buffer, offset: number, query: Query): Buffer {
  const { wire } = query.name
  const out = Buffer.alloc(HEADER + wire.length + 4)
  bytes.copy(out, 0, offset, offset + HEADER)
  out.writeUInt16BE(query.message.id, 0)
  out.writeUInt16BE(1, 4)
  wire.copy(out, HEADER)
  out.writeUInt16BE(query.type, HEADER + wire.length)
  out.writeUInt16BE(query.class, HEADER + wire.length + 2)
  return out
}

/** Header and question alone with TC set: what stands in for a UDP reply that is larger than was asked for. */
export function truncated({ bytes, offset, length, rcode, size, cookie }: Received): Received {
  const stop = Name.skip(bytes, offset + HEADER, offset, offset + length) + 4
  const out = Buffer.from(bytes.subarray(offset, stop))
  out.writeUInt16BE(word(out, 2) | FLAG.TC, 2)
  out.fill(0, 6, HEADER)
  return new Received(out, 0, out.length, rcode, size, -1, -1, cookie)
}
