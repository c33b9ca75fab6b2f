/** From a reply to what can be kept and sent: octets without OPT, cut to size, with one TTL for all records. */
import { type Edns, FLAG, layoutOf, Message, type Question, RCODE, type RR, scanMessage } from '../../src/dns/index.js'
import type { Query } from '../../src/plugins/contract.js'
import { answersQuestion, isForOneNetwork, type Kind, kindOf, lowestTtl, matches, rcodeOf, type Scanned } from './classify.js'
import type { CacheOptions, Limits } from './options.js'
import { type Plain, seePlain } from './plain.js'
import type { Item } from './store.js'

/** A reply as it came, seen through: what it is and what every client who asked for it gets. */
export interface Captured {
  readonly kind: Kind
  readonly wire: Buffer
  readonly layout: Item['layout']
  readonly flags: number
  readonly rcode: number
  /** Seconds: the TTL of every record, and how long it may be kept. */
  readonly ttl: number
  /** It has one question, and that is the one that was asked. */
  readonly matches: boolean
  /** Nobody but who asked may have it: cut short, or meant for one network. */
  readonly personal: boolean
  readonly answering: boolean
  readonly by: string
}

/** Encoding room for replies made of records; used within one call only. */
const scratch = Buffer.allocUnsafeSlow(65_535)

/** Throws WireError for octets that are no message. `wallSeconds`: seconds since 1970. */
export function capture(reply: Message, question: Question, options: CacheOptions, wallSeconds: number): Captured {
  const plain = seePlain(reply, question)
  return plain === undefined ? captureAny(reply, question, options, wallSeconds) : capturePlain(reply, plain, options)
}

/** The general way. */
export function captureAny(reply: Message, question: Question, options: CacheOptions, wallSeconds: number): Captured {
  const scanned = scan(reply)
  const kind = kindOf(scanned, question, wallSeconds)
  const answering = kind === 'positive' && answersQuestion(scanned, question)
  const wire = withoutOpt(reply, scanned)
  const kept = wire ?? reencoded(reply)
  const layout = wire === undefined ? layoutOfBytes(kept) : layoutOf(scanned.scan, wire, 0, wire.length)
  return {
    kind,
    wire: kept,
    layout,
    flags: reply.flags,
    rcode: rcodeOf(scanned),
    ttl: ttlOf(scanned, kind, options),
    matches: matches(scanned, question),
    personal: (reply.flags & FLAG.TC) !== 0 || isForOneNetwork(scanned),
    answering,
    by: reply.by,
  }
}

function capturePlain(reply: Message, { kind, end, hasOpt, lowest, layout }: Plain, options: CacheOptions): Captured {
  const limits = kind === 'denial' ? options.denial : options.success
  return {
    kind,
    wire: ownWire(reply, reply.bytes!, reply.offset, end, hasOpt),
    layout,
    flags: reply.flags,
    rcode: reply.flags & 0xf,
    ttl: clampTtl(Math.min(lowest, limits.maxTtl), limits),
    matches: true,
    personal: (reply.flags & FLAG.TC) !== 0,
    answering: kind === 'positive',
    by: reply.by,
  }
}

function scan(reply: Message): Scanned {
  const { bytes } = reply
  if (bytes !== undefined) {
    const { offset, length, flags } = reply
    return { bytes, offset, length, flags, scan: scanMessage(bytes, offset, length) }
  }
  const length = reply.encode(scratch, 0, scratch.length)
  return { bytes: scratch, offset: 0, length, flags: reply.flags, scan: scanMessage(scratch, 0, length) }
}

/** A copy of its own, OPT cut off the end; undefined where OPT stands among other records. */
function withoutOpt(reply: Message, { bytes, offset, scan: found }: Scanned): Buffer | undefined {
  return found.optLast ? ownWire(reply, bytes, offset, found.end, found.opt !== undefined) : undefined
}

/** The engine takes a view for each part that it copies; fewer octets cost less one by one. */
const FEW = 192

/** The octets before `end` in memory of their own, without the OPT record behind: a slice of a slab would keep all of it alive for as long as one small entry lives. */
function ownWire(reply: Message, bytes: Buffer, offset: number, end: number, hasOpt: boolean): Buffer {
  const wire = Buffer.allocUnsafeSlow(end)
  if (end > FEW) bytes.copy(wire, 0, offset, offset + end)
  else for (let i = 0; i < end; i++) wire[i] = bytes[offset + i]!
  const { flags } = reply
  wire[2] = flags >>> 8
  wire[3] = flags
  if (hasOpt) {
    const additionals = ((wire[10]! << 8) | wire[11]!) - 1
    wire[10] = additionals >>> 8
    wire[11] = additionals
  }
  foldQuestion(wire)
  return wire
}

/** Clients get their own spelling; what is kept has none. */
function foldQuestion(wire: Buffer): void {
  if (wire.readUInt16BE(4) !== 1) return
  for (let at = 12; wire[at]! > 0 && wire[at]! < 64; ) {
    const stop = at + wire[at]!
    while (at < stop) {
      const octet = wire[++at]!
      if (octet >= 0x41 && octet <= 0x5a) wire[at] = octet | 0x20
    }
    at++
  }
}

function reencoded(reply: Message): Buffer {
  const buffer = reply.with({ edns: undefined }).toBuffer()
  const wire = Buffer.allocUnsafeSlow(buffer.length)
  buffer.copy(wire)
  foldQuestion(wire)
  return wire
}

const layoutOfBytes = (wire: Buffer): Item['layout'] => layoutOf(scanMessage(wire, 0, wire.length), wire, 0, wire.length)

function ttlOf(scanned: Scanned, kind: Kind, options: CacheOptions): number {
  if (kind === 'failure') return Math.floor(options.servfail)
  const limits = kind === 'denial' || rcodeOf(scanned) === RCODE.NXDOMAIN ? options.denial : options.success
  return clampTtl(lowestTtl(scanned, kind, limits.maxTtl), limits)
}

const clampTtl = (ttl: number, limits: Limits): number => Math.min(Math.max(ttl, limits.minTtl), limits.maxTtl)

/** The reply that a client gets when its own question brought `captured`. AD is for those who asked for it (RFC 6840 §5.8). */
export function replyOf(captured: Captured, query: Query): Message {
  const { message } = query
  const wanted = query.dnssecOk || message.ad
  // The header's low bits carry the client's own RD and CD; the rest is as it came.
  const flags = wanted ? captured.flags : captured.flags & ~FLAG.AD
  const stored = Message.stored(captured.wire, captured.layout, message, flags, captured.ttl)
  // There may be a TSIG in what is of no use: that is put together again record by record.
  const reply = captured.kind === 'unusable' ? stored.with({}) : stored
  reply.by = captured.by
  return captured.rcode > 15 ? reply.with({ edns: bareEdns(captured.rcode >> 4, []) }) : reply
}

/** OPT for a reply; the server fills in size and DO for the client. */
export const bareEdns = (extendedRcode: number, options: Edns['options']): Edns => ({
  size: 1232,
  extendedRcode,
  version: 0,
  dnssecOk: false,
  z: 0,
  options,
})

/**
 * A reply from live local data: never kept, but with the TTL that it would have if it were. Nearly always it is what it should be already;
 * then it is passed on as it is.
 */
export function capLive(reply: Message, options: CacheOptions): Message {
  const limits = reply.count(1) === 0 ? options.denial : options.success
  // Out of kept octets they all have one.
  return reply.ttl >= limits.minTtl && reply.ttl <= limits.maxTtl ? reply : capRecords(reply, limits)
}

function capRecords(reply: Message, limits: Limits): Message {
  let lowest = limits.maxTtl
  let highest = 0
  const look = (ttl: number): void => {
    if (ttl < lowest) lowest = ttl
    if (ttl > highest) highest = ttl
  }
  const { bytes } = reply
  if (bytes !== undefined) for (const { ttl } of scanMessage(bytes, reply.offset, reply.length).records) look(ttl)
  else for (const section of [reply.answers, reply.authorities, reply.additionals]) for (const { ttl } of section) look(ttl)
  const ttl = clampTtl(lowest, limits)
  if (ttl === lowest && ttl >= highest) return reply
  const cap = (rr: RR): RR => ({ ...rr, ttl })
  return reply.with({ answers: reply.answers.map(cap), authorities: reply.authorities.map(cap), additionals: reply.additionals.map(cap) })
}
