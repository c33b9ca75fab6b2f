/**
 * DNS over a byte stream, TCP or TLS (RFC 7766): frames with a length in front, pipelined, answered in any order. A connection can hold
 * only so much: queries in flight, octets not yet read by the client, time without a query.
 */
import type { Socket } from 'node:net'
import type { Clock, Peer, Proto, Timer } from '../../plugins/contract.js'
import { familyOf, plainAddress } from './addresses.js'
import type { Origin, PacketHandler } from './ports.js'

/** Milliseconds, and a number. */
export interface StreamLimits {
  /** For the first query of a connection to be whole. */
  readonly read: number
  /** For the client to take what waits to be sent. */
  readonly write: number
  /** For each further query, counted from the one before it or from the last answer. */
  readonly idle: number
  /** Queries per connection; undefined: no limit. */
  readonly maxQueries: number | undefined
}

/** Queries of one connection that may wait for an answer; further ones stay unread. */
const MAX_PENDING = 128
/** Octets waiting for the client: above the first mark nothing more is read from it, above the second it is cut off. */
const SOFT_BACKLOG = 256 << 10
const HARD_BACKLOG = 2 << 20
const MAX_CONNECTIONS = 4096
/** Pieces of a frame that are kept apart: put together with each octet, a frame sent octet by octet would be copied 65,535 times. */
const MAX_PIECES = 64
const SWEEP_MS = 500

export class StreamServer {
  limits: StreamLimits
  readonly clock: Clock
  readonly proto: Proto
  readonly handler: PacketHandler
  readonly touch: () => void
  readonly connections = new Set<StreamConnection>()
  #sweep: Timer | undefined
  #stopping = false

  constructor(proto: Proto, limits: StreamLimits, clock: Clock, handler: PacketHandler, touch: () => void) {
    this.proto = proto
    this.limits = limits
    this.clock = clock
    this.handler = handler
    this.touch = touch
  }

  accept(socket: Socket): void {
    if (this.#stopping || (this.connections.size >= MAX_CONNECTIONS && !this.#evict())) {
      socket.destroy()
      return
    }
    this.connections.add(new StreamConnection(this, socket))
    this.#arm()
  }

  /** Idle connections end now, the others when their last answer is out. */
  stop(): void {
    this.#stopping = true
    for (const connection of this.connections) connection.finish()
  }

  /** Cuts what is left. */
  close(): void {
    this.stop()
    for (const connection of this.connections) connection.destroy()
    this.#sweep?.cancel()
  }

  /** Makes room by ending the connection that has been without a query the longest. */
  #evict(): boolean {
    for (const connection of this.connections) {
      if (!connection.idle) continue
      connection.destroy()
      return true
    }
    return false
  }

  #arm(): void {
    this.#sweep ??= this.clock.timer(SWEEP_MS, () => {
      this.#sweep = undefined
      const now = this.clock.monotonic()
      for (const connection of this.connections) connection.expire(now)
      if (this.connections.size > 0) this.#arm()
    })
  }
}

class StreamConnection {
  readonly peer: Peer
  readonly #server: StreamServer
  readonly #socket: Socket
  /** Octets read and not yet handed on: the rest of a frame, or frames above the limit of pending queries. */
  #rest: Buffer | undefined
  /** What came behind `#rest` and does not make its frame whole yet. */
  #late: Buffer[] = []
  #lateLength = 0
  #pending = 0
  #served = 0
  /** Monotonic time at which waiting for the next whole query ends. */
  #deadline: number
  /** Monotonic time at which the client must have taken something; 0: nothing stuck. */
  #writeDeadline = 0
  /** No further query is taken. */
  #finishing = false
  /** The client has sent its last octet; what it asked is still answered. */
  #eof = false
  #taking = false
  #waiting: (() => void)[] = []

  constructor(server: StreamServer, socket: Socket) {
    this.#server = server
    this.#socket = socket
    const address = plainAddress(socket.remoteAddress ?? '')
    this.peer = {
      address,
      port: socket.remotePort ?? 0,
      family: familyOf(address),
      localAddress: plainAddress(socket.localAddress ?? ''),
      localPort: socket.localPort ?? 0,
    }
    this.#deadline = server.clock.monotonic() + server.limits.read
    socket.setNoDelay(true)
    socket.on('data', (chunk) => this.#read(chunk))
    socket.on('drain', () => this.#drain())
    socket.on('end', () => {
      this.#eof = true
      this.#take()
    })
    // Resets and broken pipes are the client's affair; 'close' follows.
    socket.on('error', () => socket.destroy())
    socket.on('close', () => this.#closed())
  }

  get idle(): boolean {
    return this.#pending === 0 && this.#socket.writableLength === 0
  }

  expire(now: number): void {
    if ((this.#writeDeadline > 0 && now > this.#writeDeadline) || (this.#pending === 0 && now > this.#deadline)) this.destroy()
  }

  /** No further query is taken; the connection ends with the last answer. */
  finish(): void {
    this.#finishing = true
    this.#rest = undefined
    this.#late = []
    if (this.#pending === 0) this.#socket.end()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #read(chunk: Buffer): void {
    if (this.#finishing) return
    if (this.#rest === undefined) this.#rest = chunk
    else {
      this.#late.push(chunk)
      this.#lateLength += chunk.length
      if (this.#late.length < MAX_PIECES && this.#isCut(this.#rest)) return
      this.#rest = Buffer.concat([this.#rest, ...this.#late])
      this.#late = []
      this.#lateLength = 0
    }
    this.#take()
  }

  /** Whether the first frame lacks octets even with those that came late. */
  #isCut(rest: Buffer): boolean {
    return rest.length >= 2 && rest.length + this.#lateLength < 2 + rest.readUInt16BE(0)
  }

  /** Hands on every whole frame, as far as the limits allow. */
  #take(): void {
    if (this.#taking) return
    this.#taking = true
    this.#socket.cork()
    let at = 0
    let length = this.#frameAt(at)
    while (length >= 0 && !this.#full && !this.#finishing) {
      this.#query(this.#rest!.subarray(at + 2, at + 2 + length))
      at += 2 + length
      length = this.#frameAt(at)
    }
    this.#rest = this.#finishing || this.#rest === undefined || at === this.#rest.length ? undefined : this.#rest.subarray(at)
    this.#socket.uncork()
    this.#taking = false
    if (this.#eof && length < 0) this.finish()
    else if (this.#full) this.#socket.pause()
    else if (this.#socket.isPaused()) this.#socket.resume()
  }

  /** Length of the frame that begins at `at`, or -1 if it is not whole yet. */
  #frameAt(at: number): number {
    const left = (this.#rest?.length ?? 0) - at
    if (left < 2) return -1
    const length = this.#rest!.readUInt16BE(at)
    return left >= 2 + length ? length : -1
  }

  get #full(): boolean {
    return this.#pending >= MAX_PENDING || this.#socket.writableLength > SOFT_BACKLOG
  }

  #query(data: Buffer): void {
    this.#pending++
    this.#served++
    this.#deadline = this.#server.clock.monotonic() + this.#server.limits.idle
    const max = this.#server.limits.maxQueries
    if (max !== undefined && this.#served >= max) this.#finishing = true
    this.#server.handler(data, data.length, new StreamOrigin(this, this.#server.proto))
  }

  send(data: Buffer, offset: number, length: number): boolean {
    if (this.#socket.destroyed || !this.#socket.writable) return false
    if (this.#socket.writableLength > HARD_BACKLOG) {
      this.destroy()
      return false
    }
    this.#server.touch()
    data.writeUInt16BE(length, offset - 2)
    const flushed = this.#socket.write(Buffer.from(data.subarray(offset - 2, offset + length)))
    if (!flushed && this.#writeDeadline === 0) this.#writeDeadline = this.#server.clock.monotonic() + this.#server.limits.write
    return true
  }

  answered(): void {
    this.#server.touch()
    this.#pending--
    this.#deadline = this.#server.clock.monotonic() + this.#server.limits.idle
    if (this.#finishing && this.#pending === 0) this.#socket.end()
    else if (this.#socket.isPaused()) this.#take()
  }

  drained(): Promise<void> | undefined {
    if (this.#socket.destroyed || this.#socket.writableLength <= SOFT_BACKLOG) return undefined
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  #drain(): void {
    this.#writeDeadline = 0
    for (const resolve of this.#waiting.splice(0)) resolve()
    if (this.#socket.isPaused()) this.#take()
  }

  #closed(): void {
    this.#finishing = true
    this.#server.connections.delete(this)
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}

class StreamOrigin implements Origin {
  readonly proto: Proto
  readonly #connection: StreamConnection
  constructor(connection: StreamConnection, proto: Proto) {
    this.#connection = connection
    this.proto = proto
  }
  get peer(): Peer {
    return this.#connection.peer
  }
  retain(): void {}
  room(): undefined {
    return undefined
  }
  send(data: Buffer, offset: number, length: number): boolean {
    return this.#connection.send(data, offset, length)
  }
  end(): void {
    this.#connection.answered()
  }
  drained(): Promise<void> | undefined {
    return this.#connection.drained()
  }
}
