/** UDP in batches: recvmmsg into a ring of slots, replies written in place, one sendmmsg for all that a round answered. */
import type { Peer } from '../../plugins/contract.js'
import { AF_INET, type Libc } from '../native/libc.js'
import type { Flushing, Loop, Watched } from '../native/loop.js'
import { NAME_STRIDE, ReceiveRing, SendRing, type SendTally, SLOTS } from '../native/slab.js'
import { addressAt, isFour, portAt, SOCKADDR_SIZE, SOCKADDR4_SIZE } from '../native/sockaddr.js'
import { askReceiveBuffer, closeOwned, kernelDrops, openSocket, ownDescriptor, setReusePort } from '../native/sockets.js'
import { plainAddress } from './addresses.js'
import { type Claim, type DatagramPort, HEADROOM, type Origin, type PacketHandler } from './ports.js'

/** Asked of the kernel, which gives what net.core.rmem_max allows. */
const RECEIVE_BUFFER = 4 << 20
/** Octets of a slot: nearly every query is shorter. */
const SLOT = 256
/** Octets of the longest query; CoreDNS reads 512. */
const LONGEST = 4096
/** Octets of the longest reply that is written in place. */
const SEND_SIZE = 4096
/** Calls in a row on one socket, so that what else there is to do is not starved. */
const ROUNDS = 4
const NAME_WORDS = NAME_STRIDE / 4

/** Counted for the metrics; only goes up. */
export interface BatchTally extends SendTally {
  /** Datagrams that were longer than `LONGEST`. */
  truncated: number
}

/** The rings of a serving thread, which all its sockets use in turn. */
export class Batches {
  readonly libc: Libc
  readonly loop: Loop
  readonly tally: BatchTally = { truncated: 0, failed: 0, dropped: 0 }
  readonly receiving: ReceiveRing
  /** Fill slots after use, so that what still looks at them is found out. */
  readonly poison: boolean
  readonly origins: BatchOrigin[] = []
  /** What is bound. */
  readonly ports = new Set<BatchPort>()
  readonly #spare: SendRing[] = []
  /** Addresses of those whose queries wait: many in one array, which costs less than one for each. */
  keptNames = new Int32Array(SLOTS * NAME_WORDS)
  #keptNames = 0

  constructor(libc: Libc, loop: Loop, poison: boolean) {
    this.libc = libc
    this.loop = loop
    this.poison = poison
    this.receiving = new ReceiveRing(libc, { slot: SLOT, longest: LONGEST, names: true })
    for (let slot = 0; slot < SLOTS; slot++) this.origins.push(new BatchOrigin(this, slot))
  }

  /** A ring for what a socket sends until its next flush: there are as many as sockets answered in one round. */
  lend(): SendRing {
    return this.#spare.pop() ?? new SendRing(this.libc, { size: SEND_SIZE, names: true })
  }
  giveBack(ring: SendRing): void {
    if (this.poison) ring.poison()
    this.#spare.push(ring)
  }

  /** The query in the slot waits: its octets and its origin are its own from here on. */
  surrender(slot: number): void {
    this.loop.kept++
    this.receiving.surrender(slot)
    this.origins[slot] = new BatchOrigin(this, slot)
  }

  /** Copies the address at word `at` of `names` to `keptNames` and returns where it is there. */
  keepName(names: Int32Array, at: number): number {
    if (this.#keptNames === this.keptNames.length) {
      this.keptNames = new Int32Array(SLOTS * NAME_WORDS)
      this.#keptNames = 0
    }
    const to = this.#keptNames
    for (let i = 0; i < NAME_WORDS; i++) this.keptNames[to + i] = names[at + i]!
    this.#keptNames += NAME_WORDS
    return to
  }

  /** Binds; throws the system's error. */
  open(address: string, port: number, claim: Claim, handler: PacketHandler): BatchPort {
    const bound = openSocket(this.libc, { network: 'udp', address, port, reusePort: claim === 'join' })
    if (claim === 'first') setReusePort(this.libc, bound.fd, true)
    const fd = ownDescriptor(this.libc, bound.fd)
    const opened = new BatchPort(this, fd, address, bound.port, handler)
    this.loop.watch(fd, opened)
    this.ports.add(opened)
    return opened
  }
}

export class BatchPort implements DatagramPort, Watched, Flushing {
  readonly address: string
  readonly port: number
  handler: PacketHandler
  readonly plain: string
  /** Octets that the kernel keeps for us while we are busy. */
  readonly receiveBuffer: number
  readonly #batches: Batches
  readonly #fd: number
  #sending: SendRing | undefined
  #drops = 0
  #closed = false

  constructor(batches: Batches, fd: number, address: string, port: number, handler: PacketHandler) {
    this.#batches = batches
    this.#fd = fd
    this.address = address
    this.port = port
    this.handler = handler
    this.plain = plainAddress(address)
    this.receiveBuffer = askReceiveBuffer(batches.libc, fd, RECEIVE_BUFFER)
  }

  async share(on: boolean): Promise<void> {
    setReusePort(this.#batches.libc, this.#fd, on)
  }

  /** Queries that the kernel has dropped since this was last asked. */
  newDrops(): number {
    const drops = kernelDrops(this.#batches.libc, this.#fd)
    const fresh = (drops - this.#drops) >>> 0
    this.#drops = drops
    return fresh
  }

  ready(): void {
    const { receiving, loop } = this.#batches
    for (let round = 0; round < ROUNDS && !this.#closed; round++) {
      const count = receiving.receive(this.#fd)
      if (count <= 0) return
      if (round > 0) loop.stamp()
      loop.taken += count
      for (let slot = 0; slot < count; slot++) this.#take(slot)
      if (this.#batches.poison) receiving.poison(count)
      if (count < SLOTS) return
    }
  }

  #take(slot: number): void {
    const { receiving, tally, origins } = this.#batches
    receiving.renew(slot)
    if (receiving.isTruncated(slot)) {
      tally.truncated++
      return
    }
    const length = receiving.length(slot)
    const origin = origins[slot]!
    origin.begin(this)
    // Nobody can be answered at port 0.
    if (origin.port !== 0) this.handler(receiving.data(slot, length), length, origin)
  }

  /** Where the next message may be written. */
  room(limit: number): Buffer | undefined {
    return limit > SEND_SIZE || this.#closed ? undefined : this.#ring().slots[this.#ring().count]
  }

  /** `names` holds the receiver's address from word `at` on. */
  send(data: Buffer, offset: number, length: number, names: Int32Array, at: number): void {
    if (this.#closed) return
    const ring = this.#ring()
    const to = ring.count * NAME_WORDS
    const four = (names[at]! & 0xffff) === AF_INET
    for (let i = 0; i < (four ? 4 : NAME_WORDS - 1); i++) ring.names[to + i] = names[at + i]!
    const nameLength = four ? SOCKADDR4_SIZE : SOCKADDR_SIZE
    if (length > SEND_SIZE) ring.pushLong(data, offset, length, nameLength)
    else {
      const slot = ring.slots[ring.count]!
      if (slot !== data) data.copy(slot, HEADROOM, offset, offset + length)
      ring.push(length, nameLength)
    }
    if (ring.count === SLOTS || length > SEND_SIZE) ring.flush(this.#fd, this.#batches.tally)
  }

  #ring(): SendRing {
    if (this.#sending === undefined) {
      this.#sending = this.#batches.lend()
      this.#batches.loop.flushLater(this)
    }
    return this.#sending
  }

  flush(): void {
    const ring = this.#sending
    this.#sending = undefined
    if (ring === undefined) return
    if (!this.#closed) ring.flush(this.#fd, this.#batches.tally)
    ring.count = 0
    this.#batches.giveBack(ring)
  }

  close(): void {
    if (this.#closed) return
    this.flush()
    this.#closed = true
    this.#batches.ports.delete(this)
    this.#batches.loop.unwatch(this.#fd)
    closeOwned(this.#fd)
  }
}

/** The peer of the datagram in a slot and the way back to it: one object per slot, for one query after the other. */
class BatchOrigin implements Origin, Peer {
  readonly proto = 'udp'
  readonly #batches: Batches
  readonly #slot: number
  /** Sender's address, and where it begins: in the ring, or in words of its own, which get a view of octets when somebody wants it. */
  #octets: Uint8Array | undefined
  #names: Int32Array
  #at: number
  #port: BatchPort | undefined
  #retained = false
  /** Known from `retain` on. */
  #family: 0 | 4 | 6 = 0
  #text: string | undefined

  constructor(batches: Batches, slot: number) {
    this.#batches = batches
    this.#slot = slot
    this.#names = batches.receiving.nameWords
    this.#octets = batches.receiving.names
    this.#at = slot * NAME_WORDS
  }

  begin(port: BatchPort): void {
    this.#port = port
    this.#text = undefined
  }

  get #bytes(): Uint8Array {
    this.#octets ??= new Uint8Array(this.#names.buffer)
    return this.#octets
  }

  get peer(): Peer {
    return this
  }
  get family(): 4 | 6 {
    return this.#family === 0 ? (isFour(this.#bytes, this.#at * 4) ? 4 : 6) : this.#family
  }
  get address(): string {
    this.#text ??= addressAt(this.#bytes, this.#at * 4)
    return this.#text
  }
  get port(): number {
    return portAt(this.#bytes, this.#at * 4)
  }
  get localAddress(): string {
    return this.#port!.plain
  }
  get localPort(): number {
    return this.#port!.port
  }

  retain(): void {
    this.#family = this.family
    this.#at = this.#batches.keepName(this.#names, this.#at)
    this.#names = this.#batches.keptNames
    this.#octets = undefined
    this.#retained = true
    this.#batches.surrender(this.#slot)
  }
  room(limit: number): Buffer | undefined {
    return this.#port!.room(limit)
  }
  send(data: Buffer, offset: number, length: number): boolean {
    this.#port!.send(data, offset, length, this.#names, this.#at)
    return true
  }
  end(): void {
    if (this.#retained) this.#batches.loop.answered++
  }
  drained(): undefined {
    return undefined
  }
}
