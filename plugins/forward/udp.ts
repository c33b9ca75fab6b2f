/**
 * Connected UDP sockets to one upstream, shared by many queries at once. A connected socket only hears its upstream, and hears of ICMP
 * errors. Each is retired after `expire` or 1,024 queries, so that source ports stay unpredictable (RFC 5452 §9.2).
 */
import type { Clock, ConnectDatagram, DatagramSocket } from '../../src/plugins/contract.js'
import type { Ask, Ids } from './ask.js'
import { makeFrame, PREFIX, room, writeFrame } from './frame.js'
import { Pending } from './pending.js'
import { compare, inspect, recordsOf } from './reply.js'
import type { Target } from './targets.js'

const MAX_QUERIES = 1024
/** Octets of the longest query that is written where the socket sends it from. */
const SHORT = 512
/** More sockets make a forger's guess harder; beyond some they only cost descriptors. */
const MAX_SOCKETS = 8

/**
 * Questions that come in the same moment share a socket, so that they leave, and their answers come, by few system calls. Short enough that
 * a forger who makes us ask much at once learns nothing that helps: one port among all, as before.
 */
const RUN_MS = 0.5
const LONGEST_RUN = 32

/** The reply repeats the question in other letter case than it was asked: forged, or an upstream that can't; TCP will tell. */
export const CASE_MISMATCH: Error = new Error('reply in other letter case')

/** The reply lacks the cookie that it should have: TCP will tell. */
export const COOKIE_MISSING: Error = new Error('reply without a valid cookie')

export interface PoolOptions {
  readonly target: Target
  /** Milliseconds. */
  readonly expire: number
  readonly maxAge: number
  readonly maxIdle: number
  readonly sourceAddress: string | undefined
  readonly clock: Clock
  readonly connect: ConnectDatagram
  readonly ids: Ids
  /** A kept socket or connection was used (true) or a new one made. */
  readonly used: (kept: boolean) => void
  /** A datagram that answers nothing was dropped. */
  readonly ignored: () => void
}

export class UdpPool {
  readonly #options: PoolOptions
  readonly #limit: number
  #sockets: UdpSocket[] = []
  readonly #retired = new Set<UdpSocket>()
  /** The socket of the questions that come now, since when, and how many they are. */
  #picked: UdpSocket | undefined
  #runBegan = 0
  #run = 0

  constructor(options: PoolOptions) {
    this.#options = options
    this.#limit = options.maxIdle > 0 ? Math.min(options.maxIdle, MAX_SOCKETS) : MAX_SOCKETS
  }

  get empty(): boolean {
    return this.#sockets.length === 0 && this.#retired.size === 0
  }

  ask(ask: Ask): void {
    this.#current(ask.began).send(ask)
  }

  #current(now: number): UdpSocket {
    const picked = this.#picked
    if (picked !== undefined && !picked.retired && this.#run < LONGEST_RUN && now - this.#runBegan < RUN_MS && !this.#worn(picked, now)) {
      this.#run++
      this.#options.used(true)
      return picked
    }
    this.#run = 1
    this.#runBegan = now
    this.#picked = this.#pick(now)
    return this.#picked
  }

  /** Closes what has had its time. Called now and then. */
  sweep(): void {
    const now = this.#options.clock.monotonic()
    for (const socket of [...this.#sockets]) if (this.#worn(socket, now)) this.#retire(socket)
    for (const socket of [...this.#retired]) if (socket.pending.size === 0) this.#drop(socket)
  }

  close(error: Error): void {
    for (const socket of [...this.#sockets, ...this.#retired]) socket.fail(error)
    this.#sockets = []
    this.#retired.clear()
  }

  /** An idle socket at random, or a new one as long as there are few, or any. */
  #pick(now: number): UdpSocket {
    const sockets = this.#sockets
    const count = sockets.length
    const first = this.#options.ids.below(count)
    for (let i = 0; i < count; i++) {
      const socket = sockets[first + i < count ? first + i : first + i - count]!
      if (socket.pending.size > 0 && count < this.#limit) continue
      if (this.#worn(socket, now)) {
        this.#retire(socket)
        return this.#pick(now)
      }
      this.#options.used(true)
      return socket
    }
    this.#options.used(false)
    const socket = new UdpSocket(this.#options, now, (socket) => this.#drop(socket))
    this.#sockets.push(socket)
    return socket
  }

  #worn(socket: UdpSocket, now: number): boolean {
    const { expire, maxAge } = this.#options
    const age = now - socket.opened
    return socket.queries >= MAX_QUERIES || age >= expire || (maxAge > 0 && age >= maxAge)
  }

  #retire(socket: UdpSocket): void {
    this.#sockets = this.#sockets.filter((other) => other !== socket)
    if (socket.pending.size === 0) socket.close()
    else {
      socket.retired = true
      this.#retired.add(socket)
    }
  }

  #drop(socket: UdpSocket): void {
    this.#sockets = this.#sockets.filter((other) => other !== socket)
    this.#retired.delete(socket)
    socket.close()
  }
}

class UdpSocket {
  readonly pending = new Pending()
  readonly opened: number
  queries = 0
  /** Gets no more questions; if it is still open, it goes with the last answer. */
  retired = false
  readonly #options: PoolOptions
  /** Takes it out of the pool. */
  readonly #drop: (socket: UdpSocket) => void
  readonly #socket: DatagramSocket
  #closed = false

  constructor(options: PoolOptions, now: number, drop: (socket: UdpSocket) => void) {
    this.#options = options
    this.#drop = drop
    this.opened = now
    this.#socket = options.connect({
      host: options.target.host,
      port: options.target.port,
      source: options.sourceAddress,
      onMessage: (data, length) => this.#receive(data, length),
      onError: (error, connected) => this.#fault(error, connected),
    })
  }

  send(ask: Ask): void {
    const { ids } = this.#options
    let id = ids.next()
    while (this.pending.get(id) !== undefined) id = ids.next()
    this.queries++
    ask.via = this
    ask.id = id
    ask.sentAt = ask.began
    this.pending.add(ask)
    if (ask.frame === undefined && this.#sendWritten(ask, id)) return
    if (ask.frame === undefined) {
      ask.frame = makeFrame(ask.query!, ask.ecsPass)
      ask.id = id
    }
    this.#socket.send(ask.frame, PREFIX, ask.frame.length - PREFIX)
  }

  /** Sends the query as it came, without a frame of its own. false: that does not do. */
  #sendWritten(ask: Ask, id: number): boolean {
    const socket = this.#socket
    const to = (ask.query!.message.length <= SHORT ? socket.room() : undefined) ?? room
    const length = writeFrame(ask.query!, ask.ecsPass, to)
    if (length === 0) return false
    to[PREFIX] = id >>> 8
    to[PREFIX + 1] = id
    socket.send(to, PREFIX, length - PREFIX)
    return true
  }

  forget(ask: Ask): void {
    this.pending.remove(ask)
    if (this.retired && this.pending.size === 0) this.#drop(this)
  }

  get local(): string {
    return this.#socket.local
  }

  /** Ends all that waits here with `error`, and the socket. */
  fail(error: Error): void {
    this.close()
    for (const ask of this.pending.take()) ask.settle(undefined, error)
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.retired = true
    this.#socket.close()
  }

  /** What does not fit is dropped: it may be forged, and the real one may still come. */
  #receive(data: Buffer, length: number): void {
    const ask = length < 2 ? undefined : this.pending.get((data[0]! << 8) | data[1]!)
    if (ask === undefined || !this.#take(ask, data, length)) this.#options.ignored()
  }

  /** False if it is not the reply to `ask`. */
  #take(ask: Ask, data: Buffer, length: number): boolean {
    const { frame } = ask
    const records = frame === undefined ? recordsOf(ask.query!, data, length) : 0
    const verdict = frame !== undefined ? compare(frame, data, length) : records > 0 ? 'match' : 'other'
    if (verdict === 'other') return false
    const found = inspect(data, length, records)
    if (found === undefined) return false
    const proof = ask.cookies === undefined ? 'good' : ask.cookies.judge(found)
    if (proof === 'forged') return false
    this.forget(ask)
    if (proof === 'unproven') ask.settle(undefined, COOKIE_MISSING)
    else if (verdict === 'case' && ask.exact) ask.settle(undefined, CASE_MISMATCH)
    else ask.settle(found, undefined)
    return true
  }

  /** An ICMP error (connection refused, unreachable) tells nothing of which query it was: it holds for all on this socket. */
  #fault(error: NodeJS.ErrnoException, connected: boolean): void {
    if (this.#closed) return
    const { label } = this.#options.target
    const { local } = this
    this.#drop(this)
    this.fail(new Error(faultText('udp', connected ? 'read' : 'dial', local, label, error), { cause: error }))
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset by peer',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'network is unreachable',
  EPIPE: 'broken pipe',
  ETIMEDOUT: 'connection timed out',
  EADDRNOTAVAIL: 'cannot assign requested address',
  EMFILE: 'too many open files',
  EMSGSIZE: 'message too long',
  EPERM: 'operation not permitted',
  EACCES: 'permission denied',
}

/** An error as Go words it, which is what people's `errors consolidate` patterns look for. */
export function faultText(proto: string, what: 'read' | 'dial', local: string, label: string, error: NodeJS.ErrnoException): string {
  const reason = REASONS[error.code ?? '']
  if (what === 'dial') return `dial ${proto} ${label}: ${reason === undefined ? error.message : `connect: ${reason}`}`
  return `${what} ${proto} ${local}->${label}: ${reason === undefined ? error.message : `${what}: ${reason}`}`
}
