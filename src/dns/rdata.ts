/** RDATA of the typed records, to and from the wire; embedded names of the other types that may be compressed are expanded (RFC 3597 §4). */

import { formatAddress4, formatAddress6, parseAddress } from './address.js'
import { CLASS, TYPE } from './constants.js'
import type { Writer } from './encode.js'
import { WireError } from './errors.js'
import { Name } from './name.js'
import type { RData } from './records.js'

/** Reads `length` octets at `offset`; names may point back into the message start…end. Throws WireError. */
export function decodeRdata(type: number, cls: number, bytes: Buffer, offset: number, length: number, start: number, end: number): RData {
  const stop = offset + length
  switch (type) {
    case TYPE.A:
      if (cls === CLASS.CH || length === 0) break
      need(length === 4, 'A', length)
      return { kind: 'A', address: formatAddress4(bytes, offset) }
    case TYPE.AAAA:
      if (length === 0) break
      need(length === 16, 'AAAA', length)
      return { kind: 'AAAA', address: formatAddress6(bytes, offset) }
    case TYPE.CNAME:
    case TYPE.NS:
    case TYPE.PTR:
    case TYPE.DNAME: {
      if (length === 0) break
      const target = Name.read(bytes, offset, start, end)
      need(Name.lastEnd === stop, 'name', length)
      return { kind: 'NAME', target }
    }
    case TYPE.SOA:
      if (length === 0) break
      return decodeSoa(bytes, offset, stop, start, end)
    case TYPE.MX: {
      if (length === 0) break
      need(length >= 3, 'MX', length)
      const exchange = Name.read(bytes, offset + 2, start, end)
      need(Name.lastEnd === stop, 'MX', length)
      return { kind: 'MX', preference: bytes.readUInt16BE(offset), exchange }
    }
    case TYPE.SRV: {
      if (length === 0) break
      need(length >= 7, 'SRV', length)
      const target = Name.read(bytes, offset + 6, start, end)
      need(Name.lastEnd === stop, 'SRV', length)
      return {
        kind: 'SRV',
        priority: bytes.readUInt16BE(offset),
        weight: bytes.readUInt16BE(offset + 2),
        port: bytes.readUInt16BE(offset + 4),
        target,
      }
    }
    case TYPE.TXT:
    case TYPE.SPF:
      return decodeTxt(bytes, offset, stop)
  }
  const prefix = COMPRESSIBLE.get(type)
  if (prefix !== undefined && length > prefix) return expandNames(type, prefix, bytes, offset, stop, start, end)
  return { kind: 'OPAQUE', octets: Buffer.from(bytes.subarray(offset, stop)) }
}

/** Types whose RDATA may carry compressed names though we have no typed form: octets before the first name (RFC 3597 §4, RFC 1183, RFC 2163, RFC 2230). */
const COMPRESSIBLE: ReadonlyMap<number, number> = new Map([
  [3, 0],
  [4, 0],
  [7, 0],
  [8, 0],
  [9, 0],
  [14, 0],
  [TYPE.RP, 0],
  [TYPE.AFSDB, 2],
  [21, 2],
  [26, 2],
  [36, 2],
  [TYPE.SIG, 18],
  [30, 0],
  [TYPE.NAPTR, -1],
])
/** Those of them that hold two names. */
const TWO_NAMES: ReadonlySet<number> = new Set([14, TYPE.RP, 26])

function expandNames(type: number, prefix: number, bytes: Buffer, offset: number, stop: number, start: number, end: number): RData {
  let at = offset + Math.max(prefix, 0)
  if (type === TYPE.NAPTR) {
    at = offset + 4
    for (let i = 0; i < 3; i++) {
      need(at < stop, 'NAPTR', stop - offset)
      at += bytes[at]! + 1
    }
    need(at < stop, 'NAPTR', stop - offset)
  }
  const parts: Buffer[] = [bytes.subarray(offset, at)]
  for (let i = TWO_NAMES.has(type) ? 2 : 1; i > 0; i--) {
    parts.push(Name.read(bytes, at, start, end).wire)
    at = Name.lastEnd
  }
  need(at <= stop, 'name', stop - offset)
  parts.push(bytes.subarray(at, stop))
  return { kind: 'OPAQUE', octets: Buffer.concat(parts) }
}

function decodeSoa(bytes: Buffer, offset: number, stop: number, start: number, end: number): RData {
  const mname = Name.read(bytes, offset, start, end)
  const rname = Name.read(bytes, Name.lastEnd, start, end)
  const at = Name.lastEnd
  need(at + 20 === stop, 'SOA', stop - offset)
  const word = (i: number): number => bytes.readUInt32BE(at + 4 * i)
  return { kind: 'SOA', mname, rname, serial: word(0), refresh: word(1), retry: word(2), expire: word(3), minimum: word(4) }
}

function decodeTxt(bytes: Buffer, offset: number, stop: number): RData {
  const strings: Buffer[] = []
  for (let at = offset; at < stop; ) {
    const next = at + 1 + bytes[at]!
    need(next <= stop, 'TXT', stop - offset)
    strings.push(Buffer.from(bytes.subarray(at + 1, next)))
    at = next
  }
  return { kind: 'TXT', strings }
}

/** Writes the RDATA; names of RFC 1035 types may be compressed (RFC 3597 §4 forbids it for all others, SRV included). */
export function encodeRdata(type: number, data: RData, out: Writer): void {
  switch (data.kind) {
    case 'A':
    case 'AAAA':
      out.octets(parseAddress(data.address) ?? fail(`bad address '${data.address}'`))
      return
    case 'NAME':
      out.name(data.target, type !== TYPE.DNAME)
      return
    case 'SOA':
      out.name(data.mname, true)
      out.name(data.rname, true)
      for (const word of [data.serial, data.refresh, data.retry, data.expire, data.minimum]) out.u32(word)
      return
    case 'MX':
      out.u16(data.preference)
      out.name(data.exchange, true)
      return
    case 'SRV':
      out.u16(data.priority)
      out.u16(data.weight)
      out.u16(data.port)
      out.name(data.target, false)
      return
    case 'TXT':
      for (const text of data.strings) {
        if (text.length > 255) fail(`character string of ${text.length} octets`)
        out.u8(text.length)
        out.octets(text)
      }
      return
    case 'OPAQUE':
      out.octets(data.octets)
  }
}

function need(condition: boolean, what: string, length: number): asserts condition {
  if (!condition) throw new WireError('RDATA', `${what} data of ${length} octets`)
}
function fail(message: string): never {
  throw new WireError('RDATA', message)
}
