/**
 * Queries as octets. A frame is what goes to an upstream: two octets of length (for streams), then the message. The query's octets are
 * copied, not encoded anew; its hop-by-hop EDNS options (RFC 7873 cookies, RFC 7830 padding, RFC 7828 keepalive) stay here.
 */
import { type EdnsOption, FLAG, type Name, OPTION, optLength, TYPE } from '../../src/dns/index.js'
import type { Query } from '../../src/plugins/contract.js'

/** Octets in front of the message in a frame. */
export const PREFIX = 2

/** Octets of a message's header. */
export const HEADER = 12
const LONGEST = 65_535

/** Longer ones are copied by the engine, which takes a view for it; others cost less octet by octet. */
const FEW = 192

/** The query as a frame of its own, id still the client's. `passEcs`: RFC 7871 options of the client go along. */
export function makeFrame(query: Query, passEcs: boolean): Buffer {
  const length = writeFrame(query, passEcs, room)
  if (length > 0) return Buffer.from(room.subarray(0, length))
  const frame = encodeFrame(query, passEcs)
  if (query.authentic) frame[PREFIX + 3]! |= FLAG.AD
  return frame
}

/** Where frames may be written that are copied at once. */
export const room: Buffer = Buffer.allocUnsafeSlow(PREFIX + LONGEST)

/**
 * Copies a query that came as octets into `to` as a frame, and returns its length: a question alone, or with an OPT record, as nearly
 * every client sends it. 0: it is anything else, or does not fit.
 */
export function writeFrame(query: Query, passEcs: boolean, to: Buffer): number {
  const { bytes, offset, length, question } = query.message
  if (bytes === undefined || question === undefined || PREFIX + length > to.length) return 0
  if (bytes[offset + 6] !== 0 || bytes[offset + 7] !== 0 || bytes[offset + 8] !== 0 || bytes[offset + 9] !== 0) return 0
  const end = question.end
  const more = (bytes[offset + 10]! << 8) | bytes[offset + 11]!
  if (more === 0 ? length !== end : more !== 1 || !isOptAlone(bytes, offset + end, length - end)) return 0
  if (length <= FEW) for (let i = 0; i < length; i++) to[PREFIX + i] = bytes[offset + i]!
  else bytes.copy(to, PREFIX, offset, offset + length)
  if (query.authentic) to[PREFIX + 3]! |= FLAG.AD
  const size = length - end > OPT_HEADER ? stripOptions(to, PREFIX + end, PREFIX + length, passEcs) : PREFIX + length
  if (size === 0) return 0
  to[0] = (size - PREFIX) >>> 8
  to[1] = size - PREFIX
  return size
}

/** Octets of an OPT record without options. */
const OPT_HEADER = 11

/** Whether the `left` octets from `at` are an OPT record and nothing else. */
const isOptAlone = (bytes: Buffer, at: number, left: number): boolean =>
  left >= OPT_HEADER &&
  bytes[at] === 0 &&
  bytes[at + 1] === 0 &&
  bytes[at + 2] === TYPE.OPT &&
  left === OPT_HEADER + ((bytes[at + 9]! << 8) | bytes[at + 10]!)

/** Whether an option is between two neighbours only. */
export const staysHere = (code: number, passEcs: boolean): boolean =>
  code === OPTION.COOKIE || code === OPTION.PADDING || code === OPTION.KEEPALIVE || (code === OPTION.ECS && !passEcs)

/** Takes options out of the OPT record at `opt`, the last one of the frame in `to`, which ends at `end`. Returns the new end; 0 if they are malformed. */
function stripOptions(to: Buffer, opt: number, end: number, passEcs: boolean): number {
  let out = opt + OPT_HEADER
  for (let at = out; at < end; ) {
    if (at + 4 > end) return 0
    const size = 4 + to.readUInt16BE(at + 2)
    if (at + size > end) return 0
    if (!staysHere(to.readUInt16BE(at), passEcs)) {
      if (out !== at) to.copyWithin(out, at, at + size)
      out += size
    }
    at += size
  }
  to.writeUInt16BE(out - opt - OPT_HEADER, opt + 9)
  return out
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
