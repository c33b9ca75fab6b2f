/**
 * Memory that the kernel reads datagrams from and writes them to, 64 at a time: the structures of recvmmsg and sendmmsg, laid out once.
 *
 * Memory safety. The kernel gets addresses, of which V8's collector knows nothing; so every buffer whose address stands in a structure is
 * held by the ring object in a field, is never replaced without its address being replaced in the same step, and has an ArrayBuffer of its
 * own (those do not move). The kernel uses the addresses only within a call: sockets do not block, and no other thread sees the ring.
 * Lengths stand beside the addresses and never exceed what was allocated. Whoever drops a ring drops its addresses with it.
 *
 * Octets of a query that waits. A slot that its query wants to keep is not lent but given away: `surrender` puts fresh memory in its
 * place, and the old is the query's until the collector finds that nobody has it any more. A free list would need someone to say when the
 * last message derived from the query is gone, which with expired, shared and streamed queries nobody can; the price of being sure is one
 * view and 256 octets per query that waits, some 0.2 µs beside the microseconds that the waiting costs.
 */
import { codeOf, EAGAIN, EINTR, type Libc, MSG_DONTWAIT, MSG_TRUNC } from './libc.js'
import type { Segments } from './segments.js'
import { SOCKADDR_SIZE } from './sockaddr.js'

/** Datagrams per call. */
export const SLOTS = 64
/** Fewer messages are not worth putting in order of length. */
const FEW = 4
/** Octets of an mmsghdr, an iovec, and the place of one address. */
export const HEADER = 64
export const IOVEC = 16
export const NAME_STRIDE = 32
/** Places in an mmsghdr, in words of 32 bits: msg_name, msg_namelen, msg_iov, msg_iovlen, msg_control, msg_controllen, msg_flags, msg_len. */
const W_NAME = 0
const W_NAMELEN = 2
export const W_IOV = 4
export const W_IOVLEN = 6
export const W_CONTROL = 8
export const W_CONTROLLEN = 10
const W_FLAGS = 12
const W_LENGTH = 14
export const HEADER_WORDS = HEADER / 4
/** What slots are filled with after use while poisoning is on: what still looks at them then looks at this. */
export const POISON = 0xa5

/** Outside V8's heap, at an address that stays. */
export const fixed = (size: number): Buffer => Buffer.from(new ArrayBuffer(size))

/** What Buffer makes parts of itself with: `subarray` costs three times as much, and this is done for each query that waits. */
const Part = (Buffer as unknown as { [Symbol.species]?: new (memory: ArrayBufferLike, at: number, size: number) => Buffer })[Symbol.species]

/** Part of a buffer that has its memory for itself. */
const view = (whole: Buffer, memory: ArrayBufferLike, at: number, size: number): Buffer =>
  Part === undefined ? whole.subarray(at, at + size) : new Part(memory, at, size)

/** The two words of an address, in words of 32 bits. */
export function putAddress(words: Uint32Array, at: number, address: bigint): void {
  words[at] = Number(address & 0xffffffffn)
  words[at + 1] = Number(address >> 32n)
}

export interface ReceiveOptions {
  /** Octets of a slot; what is longer is put together in a buffer of its own. */
  readonly slot: number
  /** Octets of the longest datagram; a longer one arrives cut and is marked so. */
  readonly longest: number
  /** Whether the sender's address is wanted. */
  readonly names: boolean
}

/** For recvmmsg. Each message is read into its slot and, where that is full, on into a spill area. */
export class ReceiveRing {
  /** Where slot `i` begins at octet 0. Of a datagram longer than the slot, `data` tells. */
  readonly slots: Buffer[] = []
  /** Senders' addresses, `NAME_STRIDE` octets each. */
  readonly names: Buffer
  /** The same in words of 32 bits. */
  readonly nameWords: Int32Array
  readonly #libc: Libc
  readonly #options: ReceiveOptions
  readonly #headers: Buffer
  readonly #words: Uint32Array
  readonly #iovecs: Buffer
  readonly #iovecWords: Uint32Array
  readonly #spill: Buffer
  readonly #spillSize: number
  /** Memory that slots are cut from, with its address and what of it is used. */
  #chunk: Buffer
  #memory: ArrayBufferLike
  /** In two words: numbers of 64 bits would be objects. */
  readonly #chunkAt = new Uint32Array(2)
  #used = 0

  constructor(libc: Libc, options: ReceiveOptions) {
    this.#libc = libc
    this.#options = options
    this.#headers = fixed(SLOTS * HEADER)
    this.#words = new Uint32Array(this.#headers.buffer)
    this.#iovecs = fixed(SLOTS * 2 * IOVEC)
    this.#iovecWords = new Uint32Array(this.#iovecs.buffer)
    this.names = fixed(SLOTS * NAME_STRIDE)
    this.nameWords = new Int32Array(this.names.buffer)
    this.#spillSize = options.longest - options.slot
    this.#spill = fixed(SLOTS * this.#spillSize)
    this.#chunk = fixed(SLOTS * options.slot)
    this.#memory = this.#chunk.buffer
    putAddress(this.#chunkAt, 0, libc.address(this.#chunk))
    this.#layOut()
  }

  #layOut(): void {
    const names = this.#libc.address(this.names)
    const iovecs = this.#libc.address(this.#iovecs)
    const spill = this.#libc.address(this.#spill)
    for (let i = 0; i < SLOTS; i++) {
      const header = i * HEADER_WORDS
      if (this.#options.names) {
        putAddress(this.#words, header + W_NAME, names + BigInt(i * NAME_STRIDE))
        this.#words[header + W_NAMELEN] = SOCKADDR_SIZE
      }
      putAddress(this.#words, header + W_IOV, iovecs + BigInt(i * 2 * IOVEC))
      this.#words[header + W_IOVLEN] = 2
      this.#iovecWords[i * 8 + 2] = this.#options.slot
      putAddress(this.#iovecWords, i * 8 + 4, spill + BigInt(i * this.#spillSize))
      this.#iovecWords[i * 8 + 6] = this.#spillSize
      this.surrender(i)
    }
  }

  /** Reads what is there, at most `SLOTS` datagrams. Returns how many, or -1 with `libc.errno()`. */
  receive(fd: number): number {
    return this.#libc.recvmmsg(fd, this.#headers, SLOTS, MSG_DONTWAIT, null)
  }

  length(slot: number): number {
    return this.#words[slot * HEADER_WORDS + W_LENGTH]!
  }
  isTruncated(slot: number): boolean {
    return (this.#words[slot * HEADER_WORDS + W_FLAGS]! & MSG_TRUNC) !== 0
  }
  /** The octets of a datagram of `length`: the slot itself nearly always. */
  data(slot: number, length: number): Buffer {
    const own = this.slots[slot]!
    if (length <= this.#options.slot) return own
    const spilt = slot * this.#spillSize
    return Buffer.concat([own, this.#spill.subarray(spilt, spilt + length - this.#options.slot)])
  }

  /** Makes the slot ready for the next datagram: the kernel has written over the length of the address. */
  renew(slot: number): void {
    if (this.#options.names) this.#words[slot * HEADER_WORDS + W_NAMELEN] = SOCKADDR_SIZE
  }

  /** Gives the slot's memory away; the slot gets other. */
  surrender(slot: number): void {
    const { slot: size } = this.#options
    if (this.#used === SLOTS) {
      this.#chunk = fixed(SLOTS * size)
      this.#memory = this.#chunk.buffer
      putAddress(this.#chunkAt, 0, this.#libc.address(this.#chunk))
      this.#used = 0
    }
    const at = this.#used++ * size
    this.slots[slot] = view(this.#chunk, this.#memory, at, size)
    const low = this.#chunkAt[0]! + at
    this.#iovecWords[slot * 8] = low
    this.#iovecWords[slot * 8 + 1] = this.#chunkAt[1]! + (low > 0xffff_ffff ? 1 : 0)
  }

  /** Fills what the last `count` datagrams stood in. */
  poison(count: number): void {
    for (let i = 0; i < count; i++) this.slots[i]!.fill(POISON)
    this.#spill.fill(POISON, 0, count * this.#spillSize)
    this.names.fill(POISON, 0, count * NAME_STRIDE)
  }
}

/** What became of datagrams that were to be sent. */
export interface SendTally {
  /** Refused by the kernel, for a reason that concerns the datagram or its path. */
  failed: number
  /** The socket's send buffer was full. */
  dropped: number
}

const HEADROOM = 2
/** Octets between slots beside the message: the headroom, and what makes the stride no power of two, with which every slot would begin in the same lines of the processor's cache. */
const PADDING = 64
const LONGEST = 65_535

export interface SendOptions {
  /** Octets of the longest message that is written in place. */
  readonly size: number
  /** Whether receivers' addresses are given. */
  readonly names: boolean
  /** All messages go to one peer: those of one length may leave in one piece. */
  readonly segments?: Segments | undefined
}

/** For sendmmsg: messages of up to `size` octets that are written in place, each behind a headroom of two octets. */
export class SendRing {
  /** Slot `i`: a message begins at octet 2. */
  readonly slots: Buffer[] = []
  /** Receivers' addresses in words of 32 bits, `NAME_STRIDE` octets each. */
  readonly names: Int32Array
  count = 0
  /** Messages of the last flush. */
  #sent = 0
  readonly #libc: Libc
  readonly #data: Buffer
  readonly #names: Buffer
  readonly #headers: Buffer
  readonly #words: Uint32Array
  readonly #iovecs: Buffer
  readonly #iovecWords: Uint32Array
  readonly #dataAt: bigint
  readonly #stride: number
  readonly #segments: Segments | undefined
  /** For the one message that is longer. */
  #long: Buffer | undefined
  #hasLong = false

  constructor(libc: Libc, { size, names, segments }: SendOptions) {
    this.#libc = libc
    this.#segments = segments
    this.#stride = size + PADDING
    this.#data = fixed(SLOTS * this.#stride)
    this.#names = fixed(SLOTS * NAME_STRIDE)
    this.names = new Int32Array(this.#names.buffer)
    this.#headers = fixed(SLOTS * HEADER)
    this.#words = new Uint32Array(this.#headers.buffer)
    this.#iovecs = fixed(SLOTS * IOVEC)
    this.#iovecWords = new Uint32Array(this.#iovecs.buffer)
    this.#dataAt = libc.address(this.#data)
    const namesAt = libc.address(this.#names)
    const iovecsAt = libc.address(this.#iovecs)
    for (let i = 0; i < SLOTS; i++) {
      if (names) putAddress(this.#words, i * HEADER_WORDS + W_NAME, namesAt + BigInt(i * NAME_STRIDE))
      putAddress(this.#words, i * HEADER_WORDS + W_IOV, iovecsAt + BigInt(i * IOVEC))
      this.#words[i * HEADER_WORDS + W_IOVLEN] = 1
      this.slots.push(this.#data.subarray(i * this.#stride, (i + 1) * this.#stride))
      this.#point(i)
    }
  }

  /** The next message has `length` octets and stands in its slot; `nameLength` octets of address are in its place. */
  push(length: number, nameLength: number): void {
    const at = this.count++
    this.#words[at * HEADER_WORDS + W_NAMELEN] = nameLength
    this.#iovecWords[at * 4 + 2] = length
  }

  /** Puts a message of any length in the place of the next; after it the ring must be flushed. */
  pushLong(data: Buffer, offset: number, length: number, nameLength: number): void {
    this.#long ??= fixed(LONGEST)
    data.copy(this.#long, 0, offset, offset + length)
    putAddress(this.#iovecWords, this.count * 4, this.#libc.address(this.#long))
    this.push(length, nameLength)
    this.#hasLong = true
  }

  /**
   * Sends all that was pushed. One that the kernel refuses is passed by and told to `onError` by its number (errno), with whether others
   * were sent before it in this flush.
   */
  flush(fd: number, tally: SendTally, onError?: (errno: number) => void): void {
    const { count } = this
    this.count = 0
    this.#sent = count
    if (count >= FEW && !this.#hasLong && this.#segments?.usable === true) {
      this.#segments.send(fd, this.#iovecWords, count, tally, onError)
      return
    }
    let done = 0
    while (done < count) {
      const headers = done === 0 ? this.#headers : this.#headers.subarray(done * HEADER)
      const sent = this.#libc.sendmmsg(fd, headers, count - done, MSG_DONTWAIT)
      if (sent > 0) {
        done += sent
        continue
      }
      const errno = this.#libc.errno()
      if (errno === EINTR) continue
      if (errno === EAGAIN) {
        tally.dropped += count - done
        break
      }
      tally.failed++
      done++
      onError?.(errno)
    }
    if (this.#hasLong) for (let i = 0; i < count; i++) this.#point(i)
    this.#hasLong = false
  }

  /** Fills what the last flush sent. */
  poison(): void {
    this.#data.fill(POISON, 0, this.#sent * this.#stride)
    this.#names.fill(POISON, 0, this.#sent * NAME_STRIDE)
  }

  /** The message of slot `i` is the slot's own again. */
  #point(i: number): void {
    putAddress(this.#iovecWords, i * 4, this.#dataAt + BigInt(i * this.#stride + HEADROOM))
  }
}

/** Throws what is wrong if the C library, or the layout of its structures, is not as this file has it. */
export function testRings(libc: Libc, fd: number, name: Buffer): void {
  const send = new SendRing(libc, { size: 64, names: true })
  const receive = new ReceiveRing(libc, { slot: 32, longest: 64, names: true })
  const tally: SendTally = { failed: 0, dropped: 0 }
  const texts = ['one', 'two, longer than a slot of thirty-two octets']
  for (const text of texts) {
    send.slots[send.count]!.write(text, HEADROOM)
    Buffer.from(send.names.buffer, send.count * NAME_STRIDE).set(name)
    send.push(text.length, name.length)
  }
  send.flush(fd, tally)
  const count = receive.receive(fd)
  if (count < 0) throw new Error(`recvmmsg ${codeOf(libc.errno())}`)
  const got = Array.from({ length: count }, (_, i) => receive.data(i, receive.length(i)).toString('latin1', 0, receive.length(i)))
  const same = got.length === texts.length && got.every((text, i) => text === texts[i])
  if (!same || !receive.names.subarray(0, 8).equals(name.subarray(0, 8))) throw new Error('datagrams did not come back as they were sent')
}
