/**
 * Datagrams in batches: fixed slots, and what recvmmsg and sendmmsg want to see of them (struct mmsghdr and iovec of 64-bit Linux), laid out
 * once. The addresses stay good because the octets lie outside V8's heap and this object holds them.
 */
import type { Libc } from '../../../src/server/native/libc.js'

const HEADER = 64
const IOVEC = 16
const PEER = 28

export class Batch {
  readonly count: number
  readonly stride: number
  readonly octets: Uint8Array
  /** The same octets, four at a time. */
  readonly words: Uint32Array
  readonly #headers: Uint8Array
  readonly #headers32: Uint32Array
  readonly #iovecs32: Uint32Array
  readonly #libc: Libc
  /** Held, not used: the headers have its address. */
  readonly peers: Uint8Array | undefined

  /** `stride`: octets of a slot, a multiple of 4. `peers`: whose addresses the headers name; undefined: connected sockets. */
  constructor(libc: Libc, count: number, stride: number, peers?: Uint8Array) {
    this.#libc = libc
    this.peers = peers
    this.count = count
    this.stride = stride
    this.octets = new Uint8Array(new ArrayBuffer(count * stride))
    this.words = new Uint32Array(this.octets.buffer)
    const headers = Buffer.from(new ArrayBuffer(count * HEADER))
    const iovecs = Buffer.from(new ArrayBuffer(count * IOVEC))
    this.#headers = headers
    this.#headers32 = new Uint32Array(headers.buffer)
    this.#iovecs32 = new Uint32Array(iovecs.buffer)
    const [slots, vectors] = [libc.address(this.octets), libc.address(iovecs)]
    const names = peers === undefined ? 0n : libc.address(peers)
    for (let i = 0; i < count; i++) {
      if (peers !== undefined) {
        headers.writeBigUInt64LE(names + BigInt(i * PEER), i * HEADER)
        headers.writeUInt32LE(PEER, i * HEADER + 8)
      }
      headers.writeBigUInt64LE(vectors + BigInt(i * IOVEC), i * HEADER + 16)
      headers.writeBigUInt64LE(1n, i * HEADER + 24)
      iovecs.writeBigUInt64LE(slots + BigInt(i * stride), i * IOVEC)
      iovecs.writeBigUInt64LE(BigInt(stride), i * IOVEC + 8)
    }
  }

  static peers(count: number): Uint8Array {
    return new Uint8Array(new ArrayBuffer(count * PEER))
  }

  /** Octets received into slot `i`. */
  length(i: number): number {
    return this.#headers32[i * 16 + 14]!
  }

  setLength(i: number, octets: number): void {
    this.#iovecs32[i * 4 + 2] = octets
  }

  /** How many came; 0: none is waiting, or the peer's port is closed. */
  receive(fd: number): number {
    return Math.max(0, this.#libc.recvmmsg(fd, this.#headers, this.count, 0x40, null))
  }

  /** Sends the first `n` slots; returns how many went out before the kernel took no more. */
  send(fd: number, n: number): number {
    let done = 0
    while (done < n) {
      const sent = this.#libc.sendmmsg(fd, done === 0 ? this.#headers : this.#headers.subarray(done * HEADER), n - done, 0x40)
      if (sent <= 0) break
      done += sent
    }
    return done
  }

  /** Makes the address lengths whole again, which recvmmsg has overwritten. */
  resetPeers(n: number): void {
    for (let i = 0; i < n; i++) this.#headers32[i * 16 + 2] = PEER
  }

  /** For a batch that answers to the peers of `other`: as long as what came had. */
  copyPeerLengths(other: Batch, n: number): void {
    for (let i = 0; i < n; i++) this.#headers32[i * 16 + 2] = other.#headers32[i * 16 + 2]!
  }
}
