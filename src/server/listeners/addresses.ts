/** Addresses of this machine, and how addresses and bind errors are written (as Go's net package does, for CoreDNS's users know them so). */
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'

/**
 * All of 127.0.0.0/8 is local, but only 127.0.0.1 is listed. dgram does not tell to which address a datagram was sent, so the others need
 * sockets of their own; these few are the ones that people use.
 */
const LOOPBACKS = ['127.0.0.2', '127.0.0.3', '127.0.0.4']

/** Every local address once; link-local ones carry their interface. */
export function localAddresses(): string[] {
  const found = new Set<string>()
  for (const [name, addresses] of Object.entries(networkInterfaces())) {
    for (const { address, family, scopeid } of addresses ?? []) {
      found.add(family === 'IPv6' && scopeid ? `${address}%${name}` : address)
      if (address === '127.0.0.1') for (const extra of LOOPBACKS) found.add(extra)
    }
  }
  return [...found]
}

/** True for addresses of 127.0.0.0/8 that are not listed by the system: their loss is no fault. */
export const isExtraLoopback = (address: string): boolean => LOOPBACKS.includes(address)

/** "", "0.0.0.0" and "::" all stand for every address, IPv4 and IPv6. */
export const isWildcard = (host: string): boolean => host === '' || host === '0.0.0.0' || host === '::'

/** "127.0.0.1:53", "[::1]:53", ":53". */
export const joinHostPort = (host: string, port: number | string): string => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`)

/** An address as people compare it: "::ffff:192.0.2.1" is 192.0.2.1, a zone is left off. */
export function plainAddress(address: string): string {
  if (!address.includes(':')) return address
  if (address.startsWith('::ffff:') && address.includes('.')) return address.slice(7)
  const zone = address.indexOf('%')
  return zone < 0 ? address : address.slice(0, zone)
}

export const familyOf = (address: string): 4 | 6 => (isIP(plainAddress(address)) === 4 ? 4 : 6)

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'address already in use',
  EACCES: 'permission denied',
  EADDRNOTAVAIL: 'cannot assign requested address',
  EAFNOSUPPORT: 'address family not supported by protocol',
  EINVAL: 'invalid argument',
}

export const errorCode = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? ''

/** `listen tcp :53: bind: address already in use`. */
export function bindError(network: 'udp' | 'tcp', host: string, port: number, cause: unknown): Error {
  const reason = REASONS[errorCode(cause)] ?? (cause instanceof Error ? cause.message : String(cause))
  return new Error(`listen ${network} ${joinHostPort(host, port)}: bind: ${reason}`, { cause })
}
