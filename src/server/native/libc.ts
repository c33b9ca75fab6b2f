/**
 * The C library as serving threads call it, through koffi: only what sockets in batches and an epoll of our own need. No call here blocks
 * except epoll_wait and nanosleep, and none keeps an address after it has returned, save what `address` gave away (see slab.ts).
 */
import { readFileSync } from 'node:fs'
import { endianness } from 'node:os'
import { getSystemErrorName } from 'node:util'

/** Numbers as Linux has them on every 64-bit machine that koffi has a binary for. */
export const AF_INET = 2
export const AF_INET6 = 10
export const SOCK_STREAM = 1
export const SOCK_DGRAM = 2
export const SOCK_NONBLOCK = 0o4000
export const SOCK_CLOEXEC = 0o2000000
export const SOL_SOCKET = 1
export const SO_REUSEADDR = 2
export const SO_ERROR = 4
export const SO_RCVBUF = 8
export const SO_REUSEPORT = 15
export const SO_RCVBUFFORCE = 33
export const SO_MEMINFO = 55
export const IPPROTO_IPV6 = 41
export const IPV6_V6ONLY = 26
export const MSG_TRUNC = 0x20
export const MSG_DONTWAIT = 0x40
export const EPOLL_CTL_ADD = 1
export const EPOLL_CTL_DEL = 2
export const EPOLLIN = 1
export const PR_SET_TIMERSLACK = 29
export const EINTR = 4
export const EIO = 5
export const EAGAIN = 11
export const EINVAL = 22
export const EOPNOTSUPP = 95

/** Functions return what C's do: -1 for failures, of which `errno` tells the reason if nothing was called in between. */
export interface Libc {
  socket(domain: number, type: number, protocol: number): number
  bind(fd: number, address: Uint8Array, length: number): number
  connect(fd: number, address: Uint8Array, length: number): number
  close(fd: number): number
  dup3(from: number, to: number, flags: number): number
  setsockopt(fd: number, level: number, option: number, value: Uint8Array, length: number): number
  getsockopt(fd: number, level: number, option: number, value: Uint8Array, length: Uint8Array): number
  getsockname(fd: number, address: Uint8Array, length: Uint8Array): number
  recvmmsg(fd: number, headers: Uint8Array, count: number, flags: number, timeout: null): number
  sendmmsg(fd: number, headers: Uint8Array, count: number, flags: number): number
  epoll_create1(flags: number): number
  epoll_ctl(epoll: number, operation: number, fd: number, event: Uint8Array): number
  epoll_wait(epoll: number, events: Uint8Array, count: number, ms: number): number
  nanosleep(time: Uint8Array, left: null): number
  prctl(option: number, a: number, b: number, c: number, d: number): number
  if_nametoindex(name: string): number
  errno(): number
  /** Where the octets of `bytes` are. They must be outside V8's heap (an ArrayBuffer of their own) and outlive every use of the address. */
  address(bytes: Uint8Array): bigint
}

const PROTOTYPES: Readonly<Record<Exclude<keyof Libc, 'errno' | 'address'>, string>> = {
  socket: 'int socket(int, int, int)',
  bind: 'int bind(int, void *, uint32_t)',
  connect: 'int connect(int, void *, uint32_t)',
  close: 'int close(int)',
  dup3: 'int dup3(int, int, int)',
  setsockopt: 'int setsockopt(int, int, int, void *, uint32_t)',
  getsockopt: 'int getsockopt(int, int, int, void *, void *)',
  getsockname: 'int getsockname(int, void *, void *)',
  recvmmsg: 'int recvmmsg(int, void *, uint32_t, int, void *)',
  sendmmsg: 'int sendmmsg(int, void *, uint32_t, int)',
  epoll_create1: 'int epoll_create1(int)',
  epoll_ctl: 'int epoll_ctl(int, int, int, void *)',
  epoll_wait: 'int epoll_wait(int, void *, int, int)',
  nanosleep: 'int nanosleep(void *, void *)',
  prctl: 'int prctl(int, unsigned long, unsigned long, unsigned long, unsigned long)',
  if_nametoindex: 'uint32_t if_nametoindex(const char *)',
}

/** Machines whose structures are laid out as slab.ts and loop.ts have them. */
const MACHINES: ReadonlySet<string> = new Set(['x64', 'arm64', 'riscv64', 'loong64'])

/** Rejects with the reason, in words for the log, where the C library cannot be called. */
export async function loadLibc(): Promise<Libc> {
  if (process.platform !== 'linux') throw new Error(`not built for ${process.platform}`)
  if (!MACHINES.has(process.arch) || endianness() !== 'LE') throw new Error(`not built for ${process.arch}`)
  const koffi = await import('koffi').then(
    (module) => module.default,
    () => {
      throw new Error('the optional package koffi is not installed')
    },
  )
  // The process itself has its C library in it, whichever that is; a process that is linked in full has it under the usual name.
  const lib = withFirst([null, 'libc.so.6', 'libc.so'], (name) => {
    const library = koffi.load(name)
    library.func(PROTOTYPES.recvmmsg)
    return library
  })
  const functions = Object.entries(PROTOTYPES).map(([name, prototype]) => [name, lib.func(prototype)])
  return {
    ...(Object.fromEntries(functions) as Omit<Libc, 'errno' | 'address'>),
    errno: () => koffi.errno(),
    address: (bytes) => koffi.address(bytes),
  }
}

function withFirst<T, R>(candidates: readonly T[], attempt: (candidate: T) => R): R {
  let last: unknown
  for (const candidate of candidates) {
    try {
      return attempt(candidate)
    } catch (error) {
      last = error
    }
  }
  throw last
}

/** An error as Node makes them: "bind EADDRINUSE 127.0.0.1:53", with `code`, `errno` and `syscall`. */
export function systemError(errno: number, syscall: string, about = ''): NodeJS.ErrnoException {
  const code = codeOf(errno)
  return Object.assign(new Error(`${syscall} ${code}${about === '' ? '' : ` ${about}`}`), { code, errno: -errno, syscall })
}

/** "ECONNREFUSED" for 111. */
export function codeOf(errno: number): string {
  try {
    return getSystemErrorName(-errno)
  } catch {
    return `errno ${errno}`
  }
}

/** A kernel setting under /proc/sys as a number; undefined where it cannot be read. */
export function sysctl(name: string): number | undefined {
  try {
    const value = Number(readFileSync(`/proc/sys/${name}`, 'utf8'))
    return Number.isInteger(value) ? value : undefined
  } catch {
    return undefined
  }
}
