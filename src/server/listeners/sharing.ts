/**
 * Addresses that several serving threads have at once (SO_REUSEPORT; the kernel spreads clients over the sockets). Node has the option from
 * 22.12 on, but only ahead of the bind. The C library can set it on a bound socket as well: so the first thread binds as if it were alone,
 * and finds out that way if somebody else is there, before it lets its fellows in.
 */
import { createSocket, type Socket } from 'node:dgram'
import { createServer, type Server } from 'node:net'
import type { Libc } from '../native/libc.js'
import { familyOf } from './addresses.js'
import type { Claim } from './ports.js'

/** How Node is to get its socket: bound already, or to be bound with that option. */
export type Taken = { readonly fd: number } | { readonly reusePort: boolean }

const RESTART = 'the sockets that are open cannot be shared; this takes effect with a restart'

export class Sharing {
  readonly #loadLibc: () => Promise<Libc>
  readonly #node: boolean
  #libc: Libc | undefined
  #loading: Promise<void> | undefined

  /** `node`: whether Node itself knows the option. */
  constructor(loadLibc: () => Promise<Libc>, node: boolean = knowsReusePort(process.versions.node, process.platform)) {
    this.#loadLibc = loadLibc
    this.#node = node
  }

  /** Makes sharing possible. Rejects with the reason if it is not, in words for the log. */
  load(): Promise<void> {
    this.#loading ??= this.#load()
    return this.#loading
  }

  async #load(): Promise<void> {
    try {
      this.#libc = await this.#loadLibc()
    } catch (error) {
      const reason = (error as Error).message
      if (!this.#node) throw new Error(`sharing an address takes Node 22.12 or the C library (${reason})`, { cause: error })
    }
  }

  /** Takes an address, or says how Node is to take it. "" is the wildcard of both families, for TCP. Rejects with the system's error. */
  async bind(network: 'udp' | 'tcp', address: string, port: number, claim: Claim): Promise<Taken> {
    if (claim === 'alone') return { reusePort: false }
    if (this.#libc !== undefined) {
      const { openSocket, setReusePort } = await import('../native/sockets.js')
      const { fd } = openSocket(this.#libc, { network, address, port, reusePort: claim === 'join' })
      if (claim === 'first') setReusePort(this.#libc, fd, true)
      return { fd }
    }
    if (claim === 'first') await probe(network, address, port)
    return { reusePort: true }
  }

  /**
   * Changes what a socket that was taken so is open to. Rejects where that is too late. Of a TCP port the kernel remembers that it was
   * shared: who asks to join could still; a server that wants it alone can't.
   */
  async set(taken: Taken, socket: Server | Socket, on: boolean): Promise<void> {
    if ('reusePort' in taken && taken.reusePort) return
    const fd = 'fd' in taken ? taken.fd : descriptorOf(socket)
    if (this.#libc === undefined || fd === undefined) {
      if (on) throw new Error(RESTART)
      return
    }
    const { setReusePort } = await import('../native/sockets.js')
    setReusePort(this.#libc, fd, on)
  }
}

/** Where the option spreads what comes; elsewhere Node refuses it. */
const PLATFORMS: ReadonlySet<string> = new Set(['linux', 'freebsd', 'dragonfly', 'sunos', 'aix'])

/** 22.12 and 23.1 brought it. */
export function knowsReusePort(version: string, platform: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (!PLATFORMS.has(platform)) return false
  return major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12)
}

/**
 * The descriptor of a socket that Node bound. There is no public name for it; where Node changes what it has inside, sharing waits for a
 * restart, and that is said.
 */
function descriptorOf(socket: Server | Socket): number | undefined {
  const state = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'state symbol')
  const handle = state === undefined ? member(socket, '_handle') : member(member(socket, state), 'handle')
  const fd = member(handle, 'fd')
  return typeof fd === 'number' && fd >= 0 ? fd : undefined
}

const member = (value: unknown, name: string | symbol): unknown =>
  typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined

/** Rejects if somebody has the address. */
async function probe(network: 'udp' | 'tcp', address: string, port: number): Promise<void> {
  if (network === 'tcp') {
    const server = createServer()
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ host: address === '' ? '::' : address, port, exclusive: true }, resolve)
    })
    await new Promise((resolve) => server.close(resolve))
    return
  }
  const socket = createSocket(familyOf(address) === 6 ? { type: 'udp6', ipv6Only: true } : { type: 'udp4' })
  await new Promise<void>((resolve, reject) => {
    socket.once('error', (error) => {
      socket.close()
      reject(error)
    })
    socket.bind({ address, port, exclusive: true }, resolve)
  })
  await new Promise<void>((resolve) => socket.close(resolve))
}
