/**
 * Answers that stand (see plugins/standing.ts), of one listener and one generation: a hash table whose entries hold the octets of a question
 * and what follows it in the answer side by side, so that answering again touches few lines of the processor's cache and makes no object.
 * Whatever is not entirely ordinary is left to the chain: names in the table are whole and folded, queries have one question, no flags but
 * RD, AD and CD, and nothing behind the question but at most an OPT record without options.
 */
import { applyPatch, type Layout, type Message, NO_LAYOUT, TYPE } from '../dns/index.js'
import { AS_GIVEN, GONE, type Passing, type Query, type Standing, UNTOUCHED } from '../plugins/contract.js'
import { isStanding } from '../plugins/standing.js'
import type { Block } from './block.js'
import { HEADROOM, type Origin } from './listeners/ports.js'

const HEADER = 12
/** Octets of an OPT record without options. */
const OPT = 11
/** The shortest question: the root, type and class. */
const LEAST = 5
/** Octets of the longest query that is looked at. */
const LONGEST_QUERY = HEADER + 255 + 4 + OPT

/** Sets of two places. */
const SETS = 4096
/** Octets of a place: question and records; longer answers are left to the chain. */
const STRIDE = 512
/** Octets of the longest answer: with an OPT record every client takes it. */
const LONGEST = 512 - OPT
/** After a plugin has said no, so many answers pass before one is asked about again. */
const PAUSE = 16
/** Other in every process, so that nobody outside can choose names that drive each other out. */
const SEED = (Math.random() * 0x7fffffff) | 0

const NO_LIMIT = 65_535

/** The client sent an OPT record; with DO set in it. */
const HAS_OPT = 2
const DO = 4

class Entry {
  readonly standing: Standing
  readonly passings: readonly Passing[]
  readonly variant: number
  /** Octets of the question, and of the whole answer. */
  readonly question: number
  readonly length: number
  readonly flags: number
  readonly answers: number
  readonly authorities: number
  readonly additionals: number
  readonly layout: Layout
  readonly shuffles: boolean
  /** Octets that the OPT record states at most. */
  readonly lowers: number

  constructor(standing: Standing, passings: readonly Passing[], variant: number, question: number, octets: Buffer, layout: Layout) {
    this.standing = standing
    this.passings = passings
    this.variant = variant
    this.question = question
    this.length = octets.length
    this.flags = octets.readUInt16BE(2)
    this.answers = octets.readUInt16BE(6)
    this.authorities = octets.readUInt16BE(8)
    this.additionals = octets.readUInt16BE(10)
    this.layout = layout
    this.shuffles = passings.some(({ shuffles }) => shuffles === true)
    this.lowers = Math.min(NO_LIMIT, ...passings.map(({ lowers }) => lowers ?? NO_LIMIT))
  }
}

export class StandingAnswers {
  #entries: (Entry | undefined)[] = []
  #hashes = new Int32Array(0)
  /** Which of a set's places was of use last. */
  #recent = new Uint8Array(0)
  /** Memory is the kernel's zero page until something is written. */
  #octets = new Uint8Array(0)
  readonly #scratch = Buffer.allocUnsafeSlow(HEADROOM + 512)
  /** Of the query that was looked at last. */
  #hash = 0
  #variant = 0
  #question = 0
  #random = SEED | 1
  #pause = 0

  /** Answers the query in `bytes` if its answer is known and still stands. false: nothing has happened. */
  answer(bytes: Buffer, length: number, origin: Origin, now: number): boolean {
    this.#question = 0
    if (!this.#look(bytes, length)) return false
    const hash = this.#hash
    const set = hash & (SETS - 1)
    let place = 2 * set
    if (this.#hashes[place] !== hash && this.#hashes[++place] !== hash) return false
    const entry = this.#entries[place]
    if (entry === undefined || entry.variant !== this.#variant || entry.question !== this.#question) return false
    const from = place * STRIDE
    if (!this.#isAsked(bytes, entry.question, from)) return false
    const { passings } = entry
    for (let i = 0; i < passings.length; i++) if (passings[i]!.holds?.() === false) return this.#forget(place)
    const ttl = entry.standing.again(now)
    if (ttl === GONE) return this.#forget(place)
    const { family } = origin.peer
    for (let i = 0; i < passings.length; i++) passings[i]!.passed?.(family, now)
    this.#recent[set] = place & 1
    this.#send(entry, from, ttl, bytes, origin)
    return true
  }

  /**
   * Keeps `reply`, which has just answered the query that `answer` looked at last, if all plugins of the block that had to do with it let it
   * stand.
   */
  learn(block: Block, query: Query, reply: Message, bytes: Buffer): void {
    const size = this.#question
    // A name in another spelling than the question that comes often, or octets that do not end where they should.
    if (size === 0 || query.message.question?.end !== HEADER + size || reply.length > LONGEST || reply.length < HEADER + size) return
    if (this.#pause > 0) {
      this.#pause--
      return
    }
    const said = consent(block, query, reply)
    if (said === undefined) {
      this.#pause = PAUSE
      return
    }
    const octets = reply.toBuffer()
    this.#keep(new Entry(said.standing, said.passings, this.#variant, size, octets, reply.layout ?? NO_LAYOUT), octets, bytes)
  }

  /** Whether the query is ordinary; then sets `#hash`, `#variant` and `#question`. */
  #look(bytes: Buffer, length: number): boolean {
    if (length < HEADER + LEAST || length > LONGEST_QUERY) return false
    // A query (opcode 0) with no other flags than RD, AD and CD, and one question.
    if ((bytes[2]! & 0xfe) !== 0 || (bytes[3]! & 0xcf) !== 0) return false
    if ((bytes[4]! | bytes[6]! | bytes[7]! | bytes[8]! | bytes[9]! | bytes[10]!) !== 0 || bytes[5] !== 1) return false
    let variant = (bytes[2]! & 1) | (bytes[3]! & 0x30)
    let end = length
    if (bytes[11] !== 0) {
      end -= OPT
      if (bytes[11] !== 1 || end < HEADER + LEAST || !isPlainOpt(bytes, end)) return false
      variant |= HAS_OPT | ((bytes[end + 7]! & 0x80) === 0 ? 0 : DO)
    }
    let hash = SEED ^ variant
    let at = HEADER
    // Case is not looked at here; what else falls together by that is told apart when octets are compared.
    for (const stop = end - 3; at < stop; at += 4) {
      const word = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
      hash = Math.imul(hash ^ (word | 0x20202020), 0x5bd1e995)
      hash ^= hash >>> 15
    }
    for (; at < end; at++) hash = Math.imul(hash ^ (bytes[at]! | 0x20), 0x01000193)
    this.#hash = hash ^ (hash >>> 13)
    this.#variant = variant
    this.#question = end - HEADER
    return true
  }

  /** Whether the question in `bytes` is the one kept at `from`, in whatever case. */
  #isAsked(bytes: Buffer, size: number, from: number): boolean {
    const kept = this.#octets
    // Type and class have no case.
    const name = size - 4
    for (let i = 0; i < name; i++) {
      const octet = bytes[HEADER + i]!
      if (octet !== kept[from + i]! && (octet > 0x5a || octet < 0x41 || (octet | 0x20) !== kept[from + i]!)) return false
    }
    for (let i = name; i < size; i++) if (bytes[HEADER + i] !== kept[from + i]) return false
    return true
  }

  #send(entry: Entry, from: number, ttl: number, bytes: Buffer, origin: Origin): void {
    const out = origin.room(512) ?? this.#scratch
    const { flags, question, length, layout } = entry
    const kept = this.#octets
    out[HEADROOM] = bytes[0]!
    out[HEADROOM + 1] = bytes[1]!
    out[HEADROOM + 2] = flags >>> 8
    out[HEADROOM + 3] = flags
    out[HEADROOM + 4] = 0
    out[HEADROOM + 5] = 1
    out[HEADROOM + 6] = entry.answers >>> 8
    out[HEADROOM + 7] = entry.answers
    out[HEADROOM + 8] = entry.authorities >>> 8
    out[HEADROOM + 9] = entry.authorities
    const end = HEADER + question
    // The question in the client's own letters.
    for (let i = HEADER; i < end; i++) out[HEADROOM + i] = bytes[i]!
    const back = from - HEADER
    for (let i = end; i < length; i++) out[HEADROOM + i] = kept[back + i]!
    if (ttl !== AS_GIVEN || entry.shuffles)
      applyPatch(layout, ttl === AS_GIVEN ? -1 : ttl, entry.shuffles ? this.#next() : 0, undefined, out, HEADROOM)
    let total = length
    let additionals = entry.additionals
    if ((entry.variant & HAS_OPT) !== 0) {
      additionals++
      total += OPT
      addOpt(out, HEADROOM + length, bytes, end, entry.lowers)
    }
    out[HEADROOM + 10] = additionals >>> 8
    out[HEADROOM + 11] = additionals
    origin.send(out, HEADROOM, total)
    origin.end()
  }

  /** Into the place that is empty, or else the one that was not of use last. */
  #keep(entry: Entry, answer: Buffer, bytes: Buffer): void {
    if (this.#octets.length === 0) this.#allocate()
    const set = this.#hash & (SETS - 1)
    let place = 2 * set
    if (this.#entries[place] !== undefined && this.#hashes[place] !== this.#hash) {
      if (this.#entries[place + 1] === undefined || this.#hashes[place + 1] === this.#hash || this.#recent[set] === 0) place++
    }
    const from = place * STRIDE
    const octets = this.#octets
    octets.set(answer.subarray(HEADER), from)
    // What is compared with is the folded question, with the octets of type and class as they are.
    const name = entry.question - 4
    for (let i = 0; i < entry.question; i++) {
      const octet = bytes[HEADER + i]!
      octets[from + i] = i < name && octet >= 0x41 && octet <= 0x5a ? octet | 0x20 : octet
    }
    this.#entries[place] = entry
    this.#hashes[place] = this.#hash
    this.#recent[set] = place & 1
  }

  /** Most listeners never answer anything twice. */
  #allocate(): void {
    this.#entries = new Array(2 * SETS).fill(undefined)
    this.#hashes = new Int32Array(2 * SETS)
    this.#recent = new Uint8Array(SETS)
    this.#octets = new Uint8Array(2 * SETS * STRIDE)
  }

  #forget(place: number): false {
    this.#entries[place] = undefined
    this.#hashes[place] = 0
    return false
  }

  /** Marsaglia's xorshift32: never 0. */
  #next(): number {
    let state = this.#random
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    this.#random = state
    return state
  }
}

function consent(block: Block, query: Query, reply: Message): { standing: Standing; passings: Passing[] } | undefined {
  const passings: Passing[] = []
  for (const plugin of block.plugins) {
    if (plugin.serveDNS === undefined) continue
    const verdict = plugin.stands?.(query, reply)
    if (verdict === undefined) return undefined
    if (isStanding(verdict)) return { standing: verdict, passings }
    if (verdict !== UNTOUCHED) passings.push(verdict)
  }
  return undefined
}

/** An OPT record of version 0 without options, with which the message ends. */
const isPlainOpt = (bytes: Buffer, at: number): boolean =>
  bytes[at] === 0 &&
  bytes[at + 1] === 0 &&
  bytes[at + 2] === TYPE.OPT &&
  (bytes[at + 5]! | bytes[at + 6]! | bytes[at + 9]! | bytes[at + 10]!) === 0

/** The OPT record of the answer: size, DO and the flags that CoreDNS keeps are the client's own. */
function addOpt(out: Buffer, at: number, bytes: Buffer, from: number, lowers: number): void {
  const size = Math.min(lowers, (bytes[from + 3]! << 8) | bytes[from + 4]!)
  out[at] = 0
  out[at + 1] = 0
  out[at + 2] = TYPE.OPT
  out[at + 3] = size >>> 8
  out[at + 4] = size
  out[at + 5] = 0
  out[at + 6] = 0
  // DO, and of Z the upper seven bits.
  out[at + 7] = bytes[from + 7]!
  out[at + 8] = 0
  out[at + 9] = 0
  out[at + 10] = 0
}
