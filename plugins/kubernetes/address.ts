/** Addresses as short strings of octets (4 or 16 Latin-1 characters), lists of them in one string, and their dashed form in names. */
import { formatAddress4, formatAddress6, parseAddress } from '../../src/dns/index.js'

const MAPPED = '\0\0\0\0\0\0\0\0\0\0\xff\xff'

/** 4 or 16 octets as a Latin-1 string; a v4-mapped IPv6 address is the IPv4 one (as in Go); '' for what is no address. */
export function octetsOf(text: string): string {
  const bytes = parseAddress(text)
  if (bytes === undefined) return ''
  const octets = bytes.toString('latin1')
  return octets.startsWith(MAPPED) ? octets.slice(12) : octets
}

export function addressText(octets: string): string {
  const bytes = Buffer.from(octets, 'latin1')
  return bytes.length === 4 ? formatAddress4(bytes) : formatAddress6(bytes)
}

/**
 * A list of addresses in one string: the width of an entry (4 if all are IPv4, else 16), then the entries. A list of ten costs some 60
 * octets where ten strings in an array cost 400.
 */
export function pack(addresses: readonly string[]): string {
  const wide = addresses.some((octets) => octets.length === 16)
  const entries = wide ? addresses.map((octets) => (octets.length === 4 ? MAPPED + octets : octets)) : addresses
  // By way of a buffer, because V8 would keep a joined string as a tree of its parts.
  return Buffer.from(`${wide ? '\x10' : '\x04'}${entries.join('')}`, 'latin1').toString('latin1')
}

export const EMPTY_PACK = pack([])

export const packedCount = (list: string): number => (list.length - 1) / list.charCodeAt(0)

/** Entry `index`, 4 or 16 octets. */
export function packedAt(list: string, index: number): string {
  const width = list.charCodeAt(0)
  const at = 1 + index * width
  return width === 16 && list.startsWith(MAPPED, at) ? list.slice(at + 12, at + 16) : list.slice(at, at + width)
}

/** Index of an address in the list, at or behind `from`; -1 if it is not there. */
export function packedIndexOf(list: string, octets: string, from = 0): number {
  const width = list.charCodeAt(0)
  if (width === 4 && octets.length === 16) return -1
  const entry = octets.length < width ? MAPPED + octets : octets
  for (let at = list.indexOf(entry, 1 + from * width); at >= 0; at = list.indexOf(entry, at + 1))
    if ((at - 1) % width === 0) return (at - 1) / width
  return -1
}

/** The label an endpoint without hostname goes by: 10-0-0-1, 2001-db8--1; a final "-" would be no label, so it gets a 0. */
export function dashed(octets: string): string {
  const text = addressText(octets).replace(/[.:]/g, '-')
  return text.endsWith('-') ? `${text}0` : text
}

/** The address whose dashed form this label is; '' if it is none. */
export function undashed(label: string): string {
  const octets = octetsOf(label.replaceAll('-', isDashed4(label) ? '.' : ':'))
  return octets !== '' && dashed(octets) === label ? octets : ''
}

/** Whether the dashes of a label stand for dots: three of them, no two together. */
export function isDashed4(label: string): boolean {
  let dashes = 0
  for (let i = 0; i < label.length; i++) {
    if (label.charCodeAt(i) !== 0x2d) continue
    if (label.charCodeAt(i + 1) === 0x2d) return false
    dashes++
  }
  return dashes === 3
}
