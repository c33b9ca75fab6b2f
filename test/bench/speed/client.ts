/** One connected socket of the generator: which of its questions are under way, and whether what comes back is right. */
import type { Libc } from '../../../src/server/native/libc.js'
import { askReceiveBuffer, openConnected } from '../../../src/server/native/sockets.js'
import { Batch } from './batch.js'
import type { QuestionSet } from './questions.js'

export const STRIDE = 128
const REPLY = 1280
const SLOTS = 64
const IDS = 65_536
/** Octets of a serial number in the first label of a unique name; they begin at 13. */
const SERIAL = 8
const SERIAL_AT = 13
const HEADER = 12

/** The questions of a set, each in a slot of STRIDE octets, to be copied and compared four octets at a time. */
export class Packets {
  readonly words: Uint32Array
  readonly octets: Uint8Array
  readonly lengths: Uint16Array
  /** Octets of header and question, without OPT. */
  readonly ends: Uint16Array
  readonly rcodes: Uint8Array
  readonly answers: Uint8Array
  readonly order: Uint32Array
  readonly unique: boolean

  constructor({ questions, order, unique }: QuestionSet) {
    this.words = new Uint32Array((questions.length * STRIDE) / 4)
    this.octets = new Uint8Array(this.words.buffer)
    this.lengths = Uint16Array.from(questions, ({ wire }) => wire.length)
    this.ends = Uint16Array.from(questions, ({ wire }) => endOfQuestion(wire))
    this.rcodes = Uint8Array.from(questions, ({ rcode }) => rcode)
    this.answers = Uint8Array.from(questions, ({ answers }) => answers)
    this.order = order
    this.unique = unique
    questions.forEach(({ wire }, i) => {
      if (wire.length > STRIDE) throw new Error(`a question of ${wire.length} octets is too long for the generator`)
      this.octets.set(wire, i * STRIDE)
    })
  }
}

function endOfQuestion(wire: Uint8Array): number {
  let at = HEADER
  while (wire[at] !== 0) at += wire[at]! + 1
  return at + 5
}

function writeSerial(octets: Uint8Array, at: number, serial: number): void {
  for (let i = SERIAL - 1, rest = serial; i >= 0; i--, rest >>>= 4) octets[at + i] = (rest & 15) + ((rest & 15) < 10 ? 48 : 87)
}

/** What happens to a question: at most one of these. `sentAt` in milliseconds of performance.now(). */
export interface Sink {
  answered(sentAt: number, now: number, right: boolean): void
  lost(sentAt: number): void
  /** A datagram that answers nothing under way. */
  stray(): void
}

export class Client {
  readonly #fd: number
  readonly #libc: Libc
  readonly #packets: Packets
  readonly #sink: Sink
  readonly #in: Batch
  readonly #out: Batch
  /** When a question was sent, by id; 0: none is under way. */
  readonly #sentAt = new Float64Array(IDS)
  readonly #which = new Uint32Array(IDS)
  readonly #serials: Uint32Array
  #next = 0
  /** The oldest id that may be under way. */
  #oldest = 0
  underWay = 0
  /** Datagrams that the kernel did not take. */
  refused = 0

  constructor(libc: Libc, packets: Packets, sink: Sink, host: string, port: number) {
    this.#libc = libc
    this.#packets = packets
    this.#sink = sink
    this.#in = new Batch(libc, SLOTS, REPLY)
    this.#out = new Batch(libc, SLOTS, STRIDE)
    this.#serials = new Uint32Array(packets.unique ? IDS : 0)
    this.#fd = openConnected(libc, host, port, undefined)
    askReceiveBuffer(libc, this.#fd, 4 << 20)
  }

  /** Asks `n` (at most 64) questions, the first of them number `first` of all. Returns how many the kernel took. */
  send(n: number, first: number, at: number, spacing: number): number {
    const { words, lengths, order, unique } = this.#packets
    const out = this.#out
    for (let i = 0; i < n; i++) {
      const which = order[(first + i) % order.length]!
      const id = (this.#next + i) & (IDS - 1)
      const length = lengths[which]!
      const to = (i * STRIDE) >> 2
      const from = (which * STRIDE) >> 2
      for (let w = (length + 3) >> 2; w >= 0; w--) out.words[to + w] = words[from + w]!
      out.octets[i * STRIDE] = id >> 8
      out.octets[i * STRIDE + 1] = id & 255
      if (unique) {
        this.#serials[id] = first + i
        writeSerial(out.octets, i * STRIDE + SERIAL_AT, first + i)
      }
      out.setLength(i, length)
      if (this.#sentAt[id] !== 0) this.#lose(id)
      this.#sentAt[id] = at + i * spacing
      this.#which[id] = which
    }
    const sent = out.send(this.#fd, n)
    for (let i = sent; i < n; i++) this.#sentAt[(this.#next + i) & (IDS - 1)] = 0
    this.refused += n - sent
    this.#next += sent
    this.underWay += sent
    return sent
  }

  /** Takes what has come, at most one batch. */
  receive(): number {
    const n = this.#in.receive(this.#fd)
    if (n === 0) return 0
    const now = performance.now()
    for (let i = 0; i < n; i++) {
      const at = i * REPLY
      const id = (this.#in.octets[at]! << 8) | this.#in.octets[at + 1]!
      const sentAt = this.#sentAt[id]!
      if (sentAt === 0) {
        this.#sink.stray()
        continue
      }
      this.#sentAt[id] = 0
      this.underWay--
      this.#sink.answered(sentAt, now, this.#isRight(at, this.#in.length(i), id))
    }
    return n
  }

  /** Gives up on what was sent before `before`. */
  expire(before: number): void {
    for (; this.#oldest < this.#next; this.#oldest++) {
      const id = this.#oldest & (IDS - 1)
      const sentAt = this.#sentAt[id]!
      if (sentAt === 0) continue
      if (sentAt >= before) return
      this.#lose(id)
    }
  }

  close(): void {
    this.#libc.close(this.#fd)
  }

  #lose(id: number): void {
    this.#sink.lost(this.#sentAt[id]!)
    this.#sentAt[id] = 0
    this.underWay--
  }

  /** QR set, TC not, the rcode and the number of answers, and the question octet for octet. */
  #isRight(at: number, length: number, id: number): boolean {
    const packets = this.#packets
    const { octets } = this.#in
    const which = this.#which[id]!
    const end = packets.ends[which]!
    if (length < end || (octets[at + 2]! & 0x82) !== 0x80 || (octets[at + 3]! & 15) !== packets.rcodes[which]!) return false
    if (octets[at + 5] !== 1 || octets[at + 6] !== 0 || octets[at + 7] !== packets.answers[which]!) return false
    if (packets.unique) writeSerial(packets.octets, which * STRIDE + SERIAL_AT, this.#serials[id]!)
    return this.#sameQuestion(at, which, end)
  }

  #sameQuestion(at: number, which: number, end: number): boolean {
    const expected = this.#packets
    const here = at >> 2
    const there = (which * STRIDE) >> 2
    const words = end >> 2
    for (let w = HEADER >> 2; w < words; w++) if (this.#in.words[here + w] !== expected.words[there + w]) return false
    for (let i = words << 2; i < end; i++) if (this.#in.octets[at + i] !== expected.octets[which * STRIDE + i]) return false
    return true
  }
}
