/**
 * Datagrams of one length to one peer in one piece (UDP_SEGMENT, Linux 4.18): the kernel takes them through its stack once and cuts them apart
 * at the end; what the peer gets is the same datagrams. Over loopback, a question that leaves with 15 others takes a third of the processor
 * time. Names differ in length, so what leaves together is put in order of length.
 *
 * Memory safety is as in slab.ts: the structures are held here, and point to the messages of the ring that is sent.
 */
import { EAGAIN, EINTR, EINVAL, EIO, EOPNOTSUPP, type Libc, MSG_DONTWAIT } from './libc.js'
import {
  fixed,
  HEADER,
  HEADER_WORDS,
  IOVEC,
  putAddress,
  ReceiveRing,
  SendRing,
  type SendTally,
  SLOTS,
  W_CONTROL,
  W_CONTROLLEN,
  W_IOV,
  W_IOVLEN,
} from './slab.js'

const SOL_UDP = 17
const UDP_SEGMENT = 103
/** A cmsghdr with 16 bits of data: its length, and octets that it takes. */
const CMSG_LENGTH = 18
const CMSG = 24
const CMSG_WORDS = CMSG / 4
/** Octets of the longest message that is put together with others: all that SLOTS of them take fits in a datagram. */
const LONGEST = 512
/** The path to this peer has no use for segments: no checksums in the device, IPsec, a limit of its own. */
const UNSEGMENTED: ReadonlySet<number> = new Set([EINVAL, EIO, EOPNOTSUPP])

/** One for all rings of a thread; used within one flush only. */
export class Segments {
  /** Whether rings may send so. */
  usable = true
  /** The kernel did not take it: never again. */
  refused = false
  /** Datagrams that left together with others, so far. */
  pieces = 0
  readonly #libc: Libc
  readonly #headers = fixed(SLOTS * HEADER)
  readonly #words = new Uint32Array(this.#headers.buffer)
  readonly #vectors = fixed(SLOTS * IOVEC)
  readonly #vectorWords = new Uint32Array(this.#vectors.buffer)
  readonly #controls = fixed(SLOTS * CMSG)
  readonly #controlWords = new Uint32Array(this.#controls.buffer)
  /** Low and high words of the address of each vector. */
  readonly #vectorsAt = new Uint32Array(2 * SLOTS)
  /** Of each length the first message that has it, of each message the next of the same length; -1: none. */
  readonly #heads = new Int16Array(LONGEST + 1).fill(-1)
  readonly #nexts = new Int16Array(SLOTS)
  /** The place of each group's first message in the new order, and behind the last. */
  readonly #firsts = new Int16Array(SLOTS + 1)

  constructor(libc: Libc) {
    this.#libc = libc
    const vectors = libc.address(this.#vectors)
    const controls = libc.address(this.#controls)
    for (let i = 0; i < SLOTS; i++) {
      putAddress(this.#vectorsAt, 2 * i, vectors + BigInt(i * IOVEC))
      putAddress(this.#words, i * HEADER_WORDS + W_CONTROL, controls + BigInt(i * CMSG))
      this.#controlWords[i * CMSG_WORDS] = CMSG_LENGTH
      this.#controlWords[i * CMSG_WORDS + 2] = SOL_UDP
      this.#controlWords[i * CMSG_WORDS + 3] = UDP_SEGMENT
    }
  }

  /** Sends the `count` messages that `vectors` (iovecs, in words) point to, as SendRing's `flush`. None is empty or longer than 512 octets. */
  send(fd: number, vectors: Uint32Array, count: number, tally: SendTally, onError?: (errno: number) => void): void {
    let due = this.#group(vectors, count)
    let done = 0
    while (done < due) {
      const headers = done === 0 ? this.#headers : this.#headers.subarray(done * HEADER)
      const sent = this.#libc.sendmmsg(fd, headers, due - done, MSG_DONTWAIT)
      if (sent > 0) {
        done += sent
        continue
      }
      const errno = this.#libc.errno()
      const first = this.#firsts[done]!
      const size = this.#firsts[done + 1]! - first
      if (errno === EINTR) continue
      if (errno === EAGAIN) {
        tally.dropped += count - first
        return
      }
      if (size > 1 && UNSEGMENTED.has(errno)) {
        this.usable = false
        this.refused = true
        due = this.#single(first, count)
        done = 0
        continue
      }
      tally.failed += size
      done++
      onError?.(errno)
    }
  }

  /** Puts the messages in order of length and fills a header for each length. Returns how many. */
  #group(vectors: Uint32Array, count: number): number {
    let groups = 0
    // Lengths in the order of their last message; each list of messages in the order of coming.
    const lengths = this.#firsts
    for (let i = count - 1; i >= 0; i--) {
      const length = vectors[i * 4 + 2]!
      const head = this.#heads[length]!
      if (head < 0) lengths[groups++] = length
      this.#nexts[i] = head
      this.#heads[length] = i
    }
    let place = 0
    for (let group = 0; group < groups; group++) {
      const length = lengths[group]!
      const first = place
      for (let i = this.#heads[length]!; i >= 0; i = this.#nexts[i]!) this.#copyVector(vectors, i, place++)
      this.#heads[length] = -1
      this.#firsts[group] = first
      this.#fill(group, first, place - first, length)
      if (place - first > 1) this.pieces += place - first
    }
    this.#firsts[groups] = place
    return groups
  }

  #copyVector(vectors: Uint32Array, from: number, to: number): void {
    this.#vectorWords[to * 4] = vectors[from * 4]!
    this.#vectorWords[to * 4 + 1] = vectors[from * 4 + 1]!
    this.#vectorWords[to * 4 + 2] = vectors[from * 4 + 2]!
  }

  #fill(header: number, first: number, size: number, length: number): void {
    const at = header * HEADER_WORDS
    this.#words[at + W_IOV] = this.#vectorsAt[2 * first]!
    this.#words[at + W_IOV + 1] = this.#vectorsAt[2 * first + 1]!
    this.#words[at + W_IOVLEN] = size
    this.#words[at + W_CONTROLLEN] = size > 1 ? CMSG : 0
    this.#controlWords[header * CMSG_WORDS + 4] = length
  }

  /** A header for each message from place `first` on. Returns how many. */
  #single(first: number, count: number): number {
    for (let i = first; i < count; i++) {
      this.#fill(i - first, i, 1, 0)
      this.#firsts[i - first] = i
    }
    this.#firsts[count - first] = count
    return count - first
  }
}

/** Whether datagrams that are sent through `fd`, a socket connected to itself, in one piece come back one by one. */
export function trySegments(libc: Libc, fd: number): Segments | undefined {
  const segments = new Segments(libc)
  const send = new SendRing(libc, { size: 64, names: false, segments })
  const receive = new ReceiveRing(libc, { slot: 64, longest: 512, names: false })
  const texts = ['one', 'two', 'three', 'six', 'seven']
  for (const text of texts) {
    send.slots[send.count]!.write(text, 2)
    send.push(text.length, 0)
  }
  const tally: SendTally = { failed: 0, dropped: 0 }
  send.flush(fd, tally)
  const count = receive.receive(fd)
  const got = Array.from({ length: Math.max(0, count) }, (_, i) => receive.data(i, 0).toString('latin1', 0, receive.length(i)))
  return segments.usable && got.sort().join() === texts.sort().join() ? segments : undefined
}
