/** Writing messages: names with compression (RFC 1035 §4.1.4), records one by one so that truncation never cuts into one. */
import { TYPE } from './constants.js'
import { WireError } from './errors.js'
import type { Name } from './name.js'
import { encodeRdata } from './rdata.js'
import type { Edns, RR } from './records.js'

/** A cursor over a fixed piece of a buffer. Running over `limit` throws WireError 'SIZE'; `rewind` takes a record back. */
export class Writer {
  readonly buffer: Buffer
  /** Offset of the message's first octet; pointers count from here. */
  readonly start: number
  readonly limit: number
  at: number
  /** Suffix in its spelling → offset in the message, in order of writing. */
  #suffixes = new Map<string, number>()

  constructor(buffer: Buffer, start: number, limit: number) {
    this.buffer = buffer
    this.start = start
    this.limit = Math.min(limit, buffer.length - start) + start
    this.at = start
  }

  u8(value: number): void {
    this.#room(1)
    this.buffer[this.at++] = value
  }
  u16(value: number): void {
    this.#room(2)
    this.buffer.writeUInt16BE(value, this.at)
    this.at += 2
  }
  u32(value: number): void {
    this.#room(4)
    this.buffer.writeUInt32BE(value >>> 0, this.at)
    this.at += 4
  }
  octets(data: Uint8Array): void {
    this.#room(data.length)
    this.buffer.set(data, this.at)
    this.at += data.length
  }

  /** Writes a name; `compress` allows a pointer in its place. What is written becomes a target for later names either way. */
  name(name: Name, compress: boolean): void {
    const key = name.spelling
    for (let at = 0; at < key.length; at += key.charCodeAt(at) + 1) {
      const suffix = at === 0 ? key : key.slice(at)
      const seen = this.#suffixes.get(suffix)
      if (seen !== undefined && compress) {
        this.octets(name.wire.subarray(0, at))
        this.u16(0xc000 | seen)
        return
      }
      const offset = this.at + at - this.start
      if (seen === undefined && offset < 0x4000) this.#suffixes.set(suffix, offset)
    }
    this.octets(name.wire)
  }

  record(rr: RR): void {
    this.name(rr.name, true)
    this.u16(rr.type)
    this.u16(rr.class)
    this.u32(rr.ttl)
    const lengthAt = this.at
    this.u16(0)
    encodeRdata(rr.type, rr.data, this)
    this.buffer.writeUInt16BE(this.at - lengthAt - 2, lengthAt)
  }

  opt(edns: Edns): void {
    this.u8(0)
    this.u16(TYPE.OPT)
    this.u16(edns.size)
    this.u32((edns.extendedRcode << 24) | (edns.version << 16) | (edns.dnssecOk ? 0x8000 : 0) | edns.z)
    const lengthAt = this.at
    this.u16(0)
    for (const option of edns.options) {
      this.u16(option.code)
      this.u16(option.data.length)
      this.octets(option.data)
    }
    this.buffer.writeUInt16BE(this.at - lengthAt - 2, lengthAt)
  }

  /** Takes back all that was written since `mark`. */
  rewind(mark: number): void {
    this.at = mark
    for (const [suffix, offset] of this.#suffixes) if (offset + this.start >= mark) this.#suffixes.delete(suffix)
  }

  #room(octets: number): void {
    if (this.at + octets > this.limit) throw new WireError('SIZE', `message larger than ${this.limit - this.start} octets`)
  }
}

/** Octets that an OPT record takes. */
export const optLength = (edns: Edns): number => edns.options.reduce((sum, option) => sum + 4 + option.data.length, 11)

/** What `encodeMessage` writes. */
export interface Outgoing {
  readonly id: number
  /** The whole second header word. */
  readonly flags: number
  readonly question: { readonly name: Name; readonly type: number; readonly class: number } | undefined
  readonly answers: readonly RR[]
  readonly authorities: readonly RR[]
  readonly additionals: readonly RR[]
  readonly edns: Edns | undefined
}

/**
 * Writes a message of at most `limit` octets at `start` and returns its length. What does not fit is left off record by record, from the
 * end, and TC is set, also where only additional records are missing: RFC 2181 §9 would not ask for it, but CoreDNS does so. The OPT record
 * always goes along.
 */
export function encodeMessage(message: Outgoing, buffer: Buffer, start: number, limit: number): number {
  const reserve = message.edns === undefined ? 0 : optLength(message.edns)
  const out = new Writer(buffer, start, limit - reserve)
  out.u16(message.id)
  out.u16(message.flags)
  for (let i = 0; i < 4; i++) out.u16(0)
  if (message.question !== undefined) {
    out.name(message.question.name, true)
    out.u16(message.question.type)
    out.u16(message.question.class)
    buffer.writeUInt16BE(1, start + 4)
  }
  let cut = writeSection(message.answers, out, 6)
  if (!cut) cut = writeSection(message.authorities, out, 8)
  if (!cut) cut = writeSection(message.additionals, out, 10)
  if (cut) buffer.writeUInt16BE(message.flags | 0x0200, start + 2)
  if (message.edns === undefined) return out.at - start
  const tail = new Writer(buffer, out.at, limit - (out.at - start))
  tail.opt(message.edns)
  buffer.writeUInt16BE(buffer.readUInt16BE(start + 10) + 1, start + 10)
  return tail.at - start
}

/** Returns true if the section had to be cut short. */
function writeSection(records: readonly RR[], out: Writer, countAt: number): boolean {
  let count = 0
  let cut = false
  for (const record of records) {
    const mark = out.at
    try {
      out.record(record)
    } catch (error) {
      if (!(error instanceof WireError) || error.code !== 'SIZE') throw error
      out.rewind(mark)
      cut = true
      break
    }
    count++
  }
  out.buffer.writeUInt16BE(count, out.start + countAt)
  return cut
}
