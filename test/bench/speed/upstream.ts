/**
 * The upstream of the servers that are measured: answers any name at once, in batches, on a socket that whoever owns this object polls. It
 * sits in the generator's process, so that it takes no time from the server's core and is never the bottleneck.
 *
 * A and AAAA get one record of 300 s, names under nx.example NXDOMAIN with a SOA, other types an empty answer. Recursion is available.
 */
import type { Libc } from '../../../src/server/native/libc.js'
import { askReceiveBuffer, openSocket } from '../../../src/server/native/sockets.js'
import { Batch } from './batch.js'

const SLOTS = 64
const STRIDE = 1280
const TTL = 300

const record = (type: number, ...data: number[]): Uint8Array =>
  Uint8Array.of(0xc0, 0x0c, 0, type, 0, 1, 0, 0, TTL >> 8, TTL & 255, 0, data.length, ...data)
const A = record(1, 192, 0, 2, 1)
const AAAA = record(28, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
/** Of the question's own name: enough for a negative answer to be kept. */
const SOA = record(6, 0, 0, ...[1, 3600, 600, 86_400, 30].flatMap((n) => [n >>> 24, (n >> 16) & 255, (n >> 8) & 255, n & 255]))
const OPT = Uint8Array.of(0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0)

export class Upstream {
  readonly port: number
  readonly #fd: number
  readonly #libc: Libc
  readonly #in: Batch
  readonly #out: Batch
  answered = 0

  constructor(libc: Libc, port = 0) {
    this.#libc = libc
    const peers = Batch.peers(SLOTS)
    this.#in = new Batch(libc, SLOTS, STRIDE, peers)
    this.#out = new Batch(libc, SLOTS, STRIDE, peers)
    const { fd, port: bound } = openSocket(libc, { network: 'udp', address: '127.0.0.1', port })
    askReceiveBuffer(libc, fd, 4 << 20)
    this.#fd = fd
    this.port = bound
  }

  /** Answers what is waiting, at most one batch; returns how many. */
  poll(): number {
    const n = this.#in.receive(this.#fd)
    if (n === 0) return 0
    for (let i = 0; i < n; i++) {
      const at = i * STRIDE
      this.#out.setLength(i, respond(this.#in.octets, at, this.#in.length(i), this.#out.octets, at))
    }
    this.#out.copyPeerLengths(this.#in, n)
    this.#in.resetPeers(n)
    this.answered += this.#out.send(this.#fd, n)
    return n
  }

  close(): void {
    this.#libc.close(this.#fd)
  }
}

/** Writes the response to the query at `from`; both at offset `at` of their arrays. Returns its length. */
export function respond(query: Uint8Array, at: number, length: number, out: Uint8Array, to: number): number {
  let end = at + 12
  while (end < at + length && query[end] !== 0) end += query[end]! + 1
  end += 5
  if (length < 17 || end > at + length) return 0
  for (let i = at; i < end; i++) out[to + i - at] = query[i]!
  const type = (query[end - 4]! << 8) | query[end - 3]!
  const missing = isUnderNx(query, end)
  const answer = missing ? undefined : type === 1 ? A : type === 28 ? AAAA : undefined
  const edns = query[at + 11]! > 0
  out[to + 2] = 0x80 | (query[at + 2]! & 1)
  out[to + 3] = 0x80 | (missing ? 3 : 0)
  out[to + 7] = answer === undefined ? 0 : 1
  out[to + 9] = answer === undefined ? 1 : 0
  out[to + 6] = out[to + 8] = out[to + 10] = 0
  out[to + 11] = edns ? 1 : 0
  let next = to + end - at
  for (const part of [answer ?? SOA, ...(edns ? [OPT] : [])]) {
    out.set(part, next)
    next += part.length
  }
  return next - to
}

/** Whether the name that ends 5 octets before `end` is under nx.example. */
function isUnderNx(query: Uint8Array, end: number): boolean {
  const nx = end - 5 - 11
  return query[nx] === 2 && query[nx + 1] === 110 && query[nx + 2] === 120 && query[nx + 3] === 7 && query[nx + 4] === 101
}
