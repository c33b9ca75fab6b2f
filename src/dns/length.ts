/**
 * The size of a message without compression: what CoreDNS logs and counts as the size of a reply, whatever of it the client gets.
 * Nothing is decoded: this runs once for each query that is logged or counted.
 */
import { TYPE } from './constants.js'
import { optLength } from './encode.js'
import { WireError } from './errors.js'
import type { Message } from './message.js'
import type { RData, RR } from './records.js'

const HEADER = 12
/** Type, class, TTL and RDLENGTH. */
const RECORD = 10

/** Octets that `message` takes when every name is written in full. Throws WireError if its octets are no message. */
export function fullLength(message: Message): number {
  if (message.full >= 0) return message.full
  const { layout } = message
  if (layout?.full !== undefined) return layout.full
  const measured = message.measure(lengthOfOctets)
  if (layout !== undefined) layout.full = measured
  if (measured !== undefined) return measured
  let length = HEADER
  if (message.question !== undefined) length += message.question.name.wire.length + 4
  for (const rr of message.answers) length += recordLength(rr)
  for (const rr of message.authorities) length += recordLength(rr)
  for (const rr of message.additionals) length += recordLength(rr)
  return message.edns === undefined ? length : length + optLength(message.edns)
}

/** Octets of one record when no name in it is compressed. */
export const recordLength = (rr: RR): number => rr.name.wire.length + RECORD + dataLength(rr.data)

function dataLength(data: RData): number {
  switch (data.kind) {
    case 'A':
      return 4
    case 'AAAA':
      return 16
    case 'NAME':
      return data.target.wire.length
    case 'SOA':
      return data.mname.wire.length + data.rname.wire.length + 20
    case 'MX':
      return 2 + data.exchange.wire.length
    case 'SRV':
      return 6 + data.target.wire.length
    case 'TXT':
      return data.strings.reduce((sum, text) => sum + 1 + text.length, 0)
    case 'OPAQUE':
      return data.octets.length
  }
}

/** Where `expanded` left off. */
let nameEnd = 0

/** Length of the name at `at` in full, root label included. Bounded: pointers must point backwards, each time further. */
function expanded(bytes: Buffer, at: number, start: number, end: number): number {
  let length = 1
  let limit = at
  let jumped = false
  for (;;) {
    if (at >= end) throw new WireError('SHORT', 'name runs past the end of the message')
    const size = bytes[at]!
    if (size === 0) {
      if (!jumped) nameEnd = at + 1
      return length
    }
    if (size < 0xc0) {
      length += size + 1
      at += size + 1
      continue
    }
    if (at + 1 >= end) throw new WireError('SHORT', 'pointer cut off')
    const target = start + (((size & 0x3f) << 8) | bytes[at + 1]!)
    if (target >= limit) throw new WireError('POINTER', 'pointer does not point backwards')
    if (!jumped) nameEnd = at + 2
    jumped = true
    limit = target
    at = target
  }
}

function lengthOfOctets(bytes: Buffer, start: number, size: number): number {
  const end = start + size
  let length = HEADER
  let at = start + HEADER
  for (let i = bytes.readUInt16BE(start + 4); i > 0; i--) {
    length += expanded(bytes, at, start, end) + 4
    at = nameEnd + 4
  }
  const records = bytes.readUInt16BE(start + 6) + bytes.readUInt16BE(start + 8) + bytes.readUInt16BE(start + 10)
  for (let i = 0; i < records; i++) {
    length += expanded(bytes, at, start, end) + RECORD
    at = nameEnd
    if (at + RECORD > end) throw new WireError('SHORT', 'record cut off')
    const type = (bytes[at]! << 8) | bytes[at + 1]!
    const data = at + RECORD
    at = data + ((bytes[at + 8]! << 8) | bytes[at + 9]!)
    if (at > end) throw new WireError('SHORT', 'record data cut off')
    length += expandedData(type, bytes, data, at, start, end)
  }
  return length
}

/** Names inside RDATA that senders compress (RFC 1035; SRV is sometimes, against RFC 2782). */
function expandedData(type: number, bytes: Buffer, data: number, stop: number, start: number, end: number): number {
  const size = stop - data
  if (size === 0) return 0
  switch (type) {
    case TYPE.NS:
    case TYPE.CNAME:
    case TYPE.PTR:
    case TYPE.DNAME:
      return expanded(bytes, data, start, end)
    case TYPE.MX:
      return 2 + expanded(bytes, data + 2, start, end)
    case TYPE.SRV:
      return 6 + expanded(bytes, data + 6, start, end)
    case TYPE.SOA: {
      const mname = expanded(bytes, data, start, end)
      return mname + expanded(bytes, nameEnd, start, end) + 20
    }
    default:
      return size
  }
}
