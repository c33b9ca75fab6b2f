/** Connected UDP sockets in batches, for plugins that ask other servers: what a round sends to one leaves by one sendmmsg. */
import type { ConnectDatagram, DatagramOptions, DatagramSocket } from '../../plugins/datagrams.js'
import { EAGAIN, EINTR, type Libc, systemError } from '../native/libc.js'
import type { Flushing, Loop, Watched } from '../native/loop.js'
import type { Segments } from '../native/segments.js'
import { ReceiveRing, SendRing, type SendTally, SLOTS } from '../native/slab.js'
import { closeOwned, localEnd, openConnected, ownDescriptor } from '../native/sockets.js'
import { joinHostPort } from './addresses.js'
import { PieceWatch } from './piece-watch.js'
import { HEADROOM } from './ports.js'

/** Octets of a slot for what comes, and of the longest datagram that there can be. */
const SLOT = 2048
const LONGEST = 65_535
/** Octets of a slot for queries; longer ones leave one by one. */
const QUERY_SIZE = 512
const ROUNDS = 4

/** The rings of a serving thread for all its connected sockets. */
export class Clients {
  readonly libc: Libc
  readonly loop: Loop
  readonly tally: SendTally = { failed: 0, dropped: 0 }
  readonly receiving: ReceiveRing
  readonly poison: boolean
  readonly #segments: Segments | undefined
  readonly watch: PieceWatch | undefined
  readonly #spare: SendRing[] = []

  constructor(libc: Libc, loop: Loop, poison: boolean, segments?: Segments) {
    this.libc = libc
    this.loop = loop
    this.poison = poison
    this.#segments = segments
    this.watch = segments === undefined ? undefined : new PieceWatch(loop.clock, segments)
    this.receiving = new ReceiveRing(libc, { slot: SLOT, longest: LONGEST, names: false })
  }

  readonly connect: ConnectDatagram = (options) => new BatchClient(this, options)

  lend(): SendRing {
    return this.#spare.pop() ?? new SendRing(this.libc, { size: QUERY_SIZE, names: false, segments: this.#segments })
  }
  giveBack(ring: SendRing): void {
    if (this.poison) ring.poison()
    this.#spare.push(ring)
  }
}

class BatchClient implements DatagramSocket, Watched, Flushing {
  readonly #clients: Clients
  readonly #options: DatagramOptions
  /** -1: closed, or never opened. */
  #fd = -1
  #local = ''
  #sending: SendRing | undefined
  #closed = false

  constructor(clients: Clients, options: DatagramOptions) {
    this.#clients = clients
    this.#options = options
    const { libc, loop } = clients
    try {
      this.#fd = ownDescriptor(libc, openConnected(libc, options.host, options.port, options.source))
      loop.watch(this.#fd, this)
    } catch (error) {
      // Who made it shall know it before it hears of that.
      setImmediate(() => this.#failed(error as NodeJS.ErrnoException, false))
      loop.turn()
    }
  }

  get local(): string {
    if (this.#local === '' && this.#fd >= 0) {
      const { address, port } = localEnd(this.#clients.libc, this.#fd)
      this.#local = joinHostPort(address, port)
    }
    return this.#fd < 0 ? '' : this.#local
  }

  room(): Buffer | undefined {
    if (this.#fd < 0) return undefined
    const ring = this.#ring()
    return ring.slots[ring.count]
  }

  send(data: Buffer, offset: number, length: number): void {
    if (this.#fd < 0) return
    const { loop } = this.#clients
    loop.asked++
    const ring = this.#ring()
    if (length > QUERY_SIZE) ring.pushLong(data, offset, length, 0)
    else {
      const slot = ring.slots[ring.count]!
      // The engine takes a view for each part that it copies; so few octets cost less one by one.
      if (slot !== data) for (let i = 0; i < length; i++) slot[HEADROOM + i] = data[offset + i]!
      ring.push(length, 0)
    }
    if (ring.count === SLOTS || length > QUERY_SIZE) this.#flush(ring)
  }

  #ring(): SendRing {
    if (this.#sending === undefined) {
      this.#sending = this.#clients.lend()
      this.#clients.loop.flushLater(this)
    }
    return this.#sending
  }

  flush(): void {
    const ring = this.#sending
    this.#sending = undefined
    if (ring === undefined) return
    if (this.#fd >= 0) this.#flush(ring)
    ring.count = 0
    this.#clients.giveBack(ring)
  }

  #flush(ring: SendRing): void {
    const { watch, tally } = this.#clients
    if (watch !== undefined) watch.sent += ring.count
    ring.flush(this.#fd, tally, this.#refused)
    watch?.left()
  }

  ready(): void {
    const { receiving, loop, libc, poison, watch } = this.#clients
    for (let round = 0; round < ROUNDS && this.#fd >= 0; round++) {
      const count = receiving.receive(this.#fd)
      if (count < 0) {
        const errno = libc.errno()
        if (errno !== EAGAIN && errno !== EINTR) this.#failed(systemError(errno, 'recvmmsg'), true)
        return
      }
      loop.taken += count
      if (watch !== undefined) watch.heard += count
      for (let slot = 0; slot < count && this.#fd >= 0; slot++) {
        const length = receiving.length(slot)
        loop.replied++
        this.#options.onMessage(receiving.data(slot, length), length)
      }
      if (poison) receiving.poison(count)
      if (count < SLOTS) return
    }
  }

  /** An ICMP error of an earlier datagram comes this way too, and takes the place of one that is sent. */
  readonly #refused = (errno: number): void => {
    // Not from within `send`, which may be what called for the flush.
    setImmediate(() => this.#failed(systemError(errno, 'send'), true))
    this.#clients.loop.turn()
  }

  #failed(error: NodeJS.ErrnoException, connected: boolean): void {
    if (this.#closed) return
    this.#clients.loop.turn()
    this.#options.onError(error, connected)
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    if (this.#fd < 0) return
    const fd = this.#fd
    this.#fd = -1
    this.flush()
    this.#clients.loop.unwatch(fd)
    closeOwned(fd)
  }
}
