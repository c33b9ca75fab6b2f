/** Opens sockets through the C library: with SO_REUSEPORT, which Node 20 does not offer, and as descriptors that no watcher is behind. */
import fs from 'node:fs'
import {
  IPPROTO_IPV6,
  IPV6_V6ONLY,
  type Libc,
  SO_MEMINFO,
  SO_RCVBUF,
  SO_RCVBUFFORCE,
  SO_REUSEADDR,
  SO_REUSEPORT,
  SOCK_CLOEXEC,
  SOCK_DGRAM,
  SOCK_NONBLOCK,
  SOCK_STREAM,
  SOL_SOCKET,
  systemError,
} from './libc.js'
import { portAt, SOCKADDR_SIZE, type SocketAddress, toSocketAddress, zonedAddressAt } from './sockaddr.js'

/** Nine counts of 32 bits, of which the last is that of drops. */
const SK_MEMINFO_OCTETS = 36

export interface SocketOptions {
  readonly network: 'udp' | 'tcp'
  /** An IP address, with zone where link-local; "" for TCP and UDP on all addresses, IPv4 and IPv6. */
  readonly address: string
  /** 0: the system picks one. */
  readonly port: number
  /** Several sockets share the address; the kernel spreads what comes over them. */
  readonly reusePort?: boolean
}

export interface BoundSocket {
  /**
   * Nobody closes it by itself: give it to node:dgram (`bind({ fd })`) or node:net (`listen({ fd })`), which do, or keep it with
   * `ownDescriptor`.
   */
  readonly fd: number
  readonly port: number
}

/** Binds; does not listen. Throws as Node words it, with `code` ("bind EADDRINUSE 127.0.0.1:53"). */
export function openSocket(libc: Libc, { network, address, port, reusePort = false }: SocketOptions): BoundSocket {
  const target = toSocketAddress(libc, address === '' ? '::' : address, port)
  const fd = newSocket(libc, network, target)
  try {
    // As libuv has it: a port in TIME_WAIT can be had again. For UDP it would let others in.
    if (network === 'tcp') setOption(libc, fd, SOL_SOCKET, SO_REUSEADDR, 1)
    if (reusePort) setOption(libc, fd, SOL_SOCKET, SO_REUSEPORT, 1)
    if (target.bytes.length === SOCKADDR_SIZE) setOption(libc, fd, IPPROTO_IPV6, IPV6_V6ONLY, address === '' ? 0 : 1)
    const about = `${address === '' ? '::' : address}:${port}`
    if (libc.bind(fd, target.bytes, target.bytes.length) !== 0) throw systemError(libc.errno(), 'bind', about)
    return { fd, port: localEnd(libc, fd).port }
  } catch (error) {
    libc.close(fd)
    throw error
  }
}

/** A UDP socket that sends to and hears one peer only; throws as `openSocket`. */
export function openConnected(libc: Libc, host: string, port: number, source: string | undefined): number {
  const target = toSocketAddress(libc, host, port)
  const fd = newSocket(libc, 'udp', target)
  try {
    const from = source === undefined ? undefined : toSocketAddress(libc, source, 0)
    if (from !== undefined && libc.bind(fd, from.bytes, from.bytes.length) !== 0) throw systemError(libc.errno(), 'bind', `${source}`)
    if (libc.connect(fd, target.bytes, target.bytes.length) !== 0) throw systemError(libc.errno(), 'connect', `${host}:${port}`)
    return fd
  } catch (error) {
    libc.close(fd)
    throw error
  }
}

function newSocket(libc: Libc, network: 'udp' | 'tcp', { family }: SocketAddress): number {
  const type = (network === 'udp' ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC
  const fd = libc.socket(family, type, 0)
  if (fd < 0) throw systemError(libc.errno(), 'socket')
  return fd
}

/** Lets other sockets of this user that have the option too come to the address of a bound one, or no more. */
export const setReusePort = (libc: Libc, fd: number, on: boolean): void => setOption(libc, fd, SOL_SOCKET, SO_REUSEPORT, on ? 1 : 0)

/** Throws what the kernel says. */
function setOption(libc: Libc, fd: number, level: number, option: number, value: number): void {
  const octets = Buffer.alloc(4)
  octets.writeInt32LE(value)
  if (libc.setsockopt(fd, level, option, octets, 4) !== 0) throw systemError(libc.errno(), 'setsockopt')
}

export function localEnd(libc: Libc, fd: number): { address: string; port: number } {
  const address = Buffer.alloc(SOCKADDR_SIZE)
  const length = Buffer.alloc(4)
  length.writeUInt32LE(SOCKADDR_SIZE)
  if (libc.getsockname(fd, address, length) !== 0) throw systemError(libc.errno(), 'getsockname')
  return { address: zonedAddressAt(address, 0), port: portAt(address, 0) }
}

/**
 * Asks for a receive buffer of `size` octets and returns what the kernel gave. Beyond net.core.rmem_max only CAP_NET_ADMIN gets it. The
 * kernel counts its own overhead in as well, and reports twice what was asked; the return value is in terms of what was asked.
 */
export function askReceiveBuffer(libc: Libc, fd: number, size: number): number {
  const octets = Buffer.alloc(4)
  octets.writeInt32LE(size)
  if (libc.setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, octets, 4) !== 0) libc.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, octets, 4)
  const length = Buffer.alloc(4)
  length.writeUInt32LE(4)
  if (libc.getsockopt(fd, SOL_SOCKET, SO_RCVBUF, octets, length) !== 0) return 0
  return octets.readInt32LE(0) / 2
}

/** How many datagrams the kernel has dropped at this socket for want of room, modulo 2³²; 0 where it does not tell (Linux before 4.12). */
export function kernelDrops(libc: Libc, fd: number): number {
  const counts = Buffer.alloc(SK_MEMINFO_OCTETS)
  const length = Buffer.alloc(4)
  length.writeUInt32LE(SK_MEMINFO_OCTETS)
  const told = libc.getsockopt(fd, SOL_SOCKET, SO_MEMINFO, counts, length) === 0 && length.readUInt32LE(0) === SK_MEMINFO_OCTETS
  return told ? counts.readUInt32LE(SK_MEMINFO_OCTETS - 4) : 0
}

/**
 * Makes this thread the owner of `fd`, under another number, which is returned: Node closes it when the thread ends, even if it is
 * terminated in the middle of something. Without that the listeners of a thread that died would stay bound for the life of the process,
 * and take queries that nobody answers. (Node keeps account of what a worker opened through node:fs, and closes it: so a number that
 * was had there is made to stand for the socket.) Throws if there is no descriptor left.
 */
export function ownDescriptor(libc: Libc, fd: number): number {
  try {
    const owned = fs.openSync('/', 'r')
    if (libc.dup3(fd, owned, SOCK_CLOEXEC) === owned) return owned
    const error = systemError(libc.errno(), 'dup3')
    fs.closeSync(owned)
    throw error
  } finally {
    libc.close(fd)
  }
}

/** Closes what `ownDescriptor` returned. */
export const closeOwned = (fd: number): void => fs.closeSync(fd)
