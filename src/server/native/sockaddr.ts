/** Socket addresses as the kernel has them (sockaddr_in, sockaddr_in6), from and to text. */
import { networkInterfaces } from 'node:os'
import { formatAddress4, formatAddress6, parseAddress } from '../../dns/index.js'
import { AF_INET, AF_INET6, type Libc } from './libc.js'

/** Octets of the larger of the two, and of the smaller. */
export const SOCKADDR_SIZE = 28
export const SOCKADDR4_SIZE = 16

export interface SocketAddress {
  readonly family: typeof AF_INET | typeof AF_INET6
  readonly bytes: Buffer
}

/** The structure for an IP address, with zone where link-local, and a port. Throws for what is no address. */
export function toSocketAddress(libc: Libc, address: string, port: number): SocketAddress {
  const percent = address.indexOf('%')
  const octets = parseAddress(percent < 0 ? address : address.slice(0, percent))
  if (octets === undefined) throw new TypeError(`${address} is no IP address`)
  const family = octets.length === 4 ? AF_INET : AF_INET6
  const bytes = Buffer.alloc(family === AF_INET ? SOCKADDR4_SIZE : SOCKADDR_SIZE)
  bytes.writeUInt16LE(family, 0)
  bytes.writeUInt16BE(port, 2)
  octets.copy(bytes, family === AF_INET ? 4 : 8)
  if (percent >= 0) bytes.writeUInt32LE(scopeOf(libc, address.slice(percent + 1)), 24)
  return { family, bytes }
}

const scopeOf = (libc: Libc, zone: string): number => (/^\d+$/.test(zone) ? Number(zone) : libc.if_nametoindex(zone))

/** Whether the address at `at` is IPv4, be it mapped into IPv6. */
export const isFour = (bytes: Uint8Array, at: number): boolean => bytes[at] === AF_INET || isMapped(bytes, at)

/** ::ffff:0:0/96 */
function isMapped(bytes: Uint8Array, at: number): boolean {
  if (bytes[at + 18] !== 0xff || bytes[at + 19] !== 0xff) return false
  for (let i = at + 8; i < at + 18; i++) if (bytes[i] !== 0) return false
  return true
}

/** Text of the address at `at`, without zone; a v4-mapped one is IPv4. */
export function addressAt(bytes: Uint8Array, at: number): string {
  if (bytes[at] === AF_INET) return formatAddress4(bytes, at + 4)
  return isMapped(bytes, at) ? formatAddress4(bytes, at + 20) : formatAddress6(bytes, at + 8)
}

export const portAt = (bytes: Uint8Array, at: number): number => (bytes[at + 2]! << 8) | bytes[at + 3]!

/** Text of the address at `at` as Node gives a socket's own: link-local ones carry their interface. */
export function zonedAddressAt(bytes: Uint8Array, at: number): string {
  const text = addressAt(bytes, at)
  const scope = bytes[at] === AF_INET ? 0 : Buffer.from(bytes.subarray(at + 24, at + 28)).readUInt32LE(0)
  if (scope === 0) return text
  for (const [name, addresses] of Object.entries(networkInterfaces()))
    for (const { scopeid } of addresses ?? []) if (scopeid === scope) return `${text}%${name}`
  return `${text}%${scope}`
}
