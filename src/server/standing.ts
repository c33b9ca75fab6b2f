/**
 * Answers that stand (see plugins/standing.ts), of one listener and one generation: a hash table whose places hold all that is needed to
 * answer again, octets and numbers, side by side. What an answer costs here is not instructions but lines of the processor's cache that are
 * not in it, some 100 ns each; so a place is read from its begin on, and objects are shared by as many answers as possible.
 *
 * Whatever is not entirely ordinary is left to the chain: names in the table are whole and folded, queries have one question, no flags but
 * RD, AD and CD, and nothing behind the question but at most an OPT record without options.
 */
import { applyPatch, isBareOpt, type Layout, type Message, NO_LAYOUT, TYPE } from '../dns/index.js'
import { AS_GIVEN, GONE, type Passing, type Query, type Standing, UNTOUCHED } from '../plugins/contract.js'
import { isStanding } from '../plugins/standing.js'
import type { Block } from './block.js'
import { HEADROOM, type Origin } from './listeners/ports.js'
import { putOpt } from './send.js'

const HEADER = 12
/** Octets of an OPT record without options. */
const OPT = 11
/** The shortest question: the root, type and class. */
const LEAST = 5
/** Octets of the longest query that is looked at. */
const LONGEST_QUERY = HEADER + 255 + 4 + OPT
/** Octets of the longest answer: with an OPT record every client takes it. */
const LONGEST = 512 - OPT

/** Sets of two places. */
const SETS = 4096
/** Octets of a place. No power of two, with which all places would begin in the same few lines of the cache. */
const STRIDE = 576
/** Words of 32 bits in a place: hash; variant, octets of question and answer; flags and answers; authorities and additionals; … */
const W_HASH = 0
const W_SHAPE = 1
const W_FLAGS = 2
const W_COUNTS = 3
/** … the number that the epoch had when the answer was last known to stand (a double), the epoch, the company, and how many TTLs there are. */
const D_STAMP = 2
const W_EPOCH = 6
const W_COMPANY = 7
const W_TTLS = 8
/** … their offsets in the message, two in a word, and from here on the octets of the question and of what follows it. */
const W_OFFSETS = 9
const MOST_TTLS = 6
const OCTETS = 48
const STRIDE_WORDS = STRIDE / 4
const STRIDE_DOUBLES = STRIDE / 8

/** After a plugin has said no, so many answers pass before one is asked about again. */
const PAUSE = 16
/** Different companies and epochs that are remembered; with more of them everything begins anew. */
const MOST = 4096
/** Other in every process, so that nobody outside can choose names that drive each other out. */
const SEED = (Math.random() * 0x7fffffff) | 0
const NO_LIMIT = 65_535

/** The client sent an OPT record; with DO set in it. */
const HAS_OPT = 2
const DO = 4
const VARIANT_BITS = 6

/** The plugins that an answer passes, as far as they have something to do; shared by all answers that pass the same. */
class Company {
  readonly number: number
  readonly checks: readonly Passing[]
  readonly counting: readonly Passing[]
  readonly shuffles: boolean
  /** Octets that the OPT record states at most. */
  readonly lowers: number
  /** With one more. */
  readonly and = new Map<Passing, Company>()

  constructor(number: number, passings: readonly Passing[]) {
    this.number = number
    this.checks = passings.filter(({ holds }) => holds !== undefined)
    this.counting = passings.filter(({ passed }) => passed !== undefined)
    this.shuffles = passings.some(({ shuffles }) => shuffles === true)
    this.lowers = Math.min(NO_LIMIT, ...passings.map(({ lowers }) => lowers ?? NO_LIMIT))
  }
}

/** Of an answer what seldom matters. */
interface Entry {
  readonly standing: Standing
  readonly layout: Layout
}

export class StandingAnswers {
  #entries: (Entry | undefined)[] = []
  #words = new Int32Array(0)
  #doubles = new Float64Array(0)
  #octets = new Uint8Array(0)
  /** Which of a set's places was of use last. */
  #recent = new Uint8Array(0)
  #companies: Company[] = [new Company(0, [])]
  #epochs: (() => number)[] = []
  readonly #scratch = Buffer.allocUnsafeSlow(HEADROOM + 512)
  /** What `#look` found: hash, the client's bits, octets of the question. */
  #hash = 0
  #variant = 0
  #question = 0
  #random = SEED | 1
  #pause = 0

  /** Answers the query in `bytes`, which came at `now`, if its answer is known and still stands. false: nothing has happened. */
  answer(bytes: Buffer, length: number, origin: Origin, now: number): boolean {
    if (this.#words.length === 0 || !this.#look(bytes, length)) return false
    const hash = this.#hash
    let place = 2 * (hash & (SETS - 1))
    const words = this.#words
    if (words[place * STRIDE_WORDS + W_HASH] !== hash && words[++place * STRIDE_WORDS + W_HASH] !== hash) return false
    const at = place * STRIDE_WORDS
    const shape = words[at + W_SHAPE]!
    if ((shape & 0xffff) !== (this.#variant | (this.#question << VARIANT_BITS))) return false
    if (!this.#isAsked(bytes, this.#question, place * STRIDE + OCTETS)) return false
    const company = this.#companies[words[at + W_COMPANY]!]!
    const { checks, counting } = company
    for (let i = 0; i < checks.length; i++) if (!checks[i]!.holds!()) return this.#forget(place)
    const ttl = this.#ttlOf(place, now)
    if (ttl === GONE) return this.#forget(place)
    if (counting.length > 0) {
      const { family } = origin.peer
      for (let i = 0; i < counting.length; i++) counting[i]!.passed!(family, now)
    }
    this.#recent[place >> 1] = place & 1
    this.#send(place, company, ttl, bytes, origin)
    return true
  }

  /** Keeps `reply`, which has just answered the query, if all plugins of the block that had to do with it let it stand. */
  learn(block: Block, query: Query, reply: Message): void {
    if (this.#pause > 0) {
      this.#pause--
      return
    }
    const { bytes, length, question } = query.message
    if (bytes === undefined || reply.length > LONGEST || !this.#look(bytes, length) || question?.end !== HEADER + this.#question) return
    const said = consent(block, query, reply)
    if (said === undefined) this.#pause = PAUSE
    else this.#keep({ standing: said.standing, layout: reply.layout ?? NO_LAYOUT }, said.passings, reply.toBuffer(), bytes)
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
      // Of version 0, and nothing in the octet of the rcode.
      if (bytes[11] !== 1 || end < HEADER + LEAST || !isBareOpt(bytes, end) || (bytes[end + 5]! | bytes[end + 6]!) !== 0) return false
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
    this.#hash = hash ^ (hash >>> 13) || 1
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
      if (octet === kept[from + i]!) continue
      // Other records than addresses may hold names in the client's letters.
      if (octet > 0x5a || octet < 0x41 || (octet | 0x20) !== kept[from + i]! || !isAddressType(kept, from + name)) return false
    }
    for (let i = name; i < size; i++) if (bytes[HEADER + i] !== kept[from + i]) return false
    return true
  }

  /** As `Standing.again`. As long as its epoch lasts, an answer need not be asked about. */
  #ttlOf(place: number, now: number): number {
    const number = this.#words[place * STRIDE_WORDS + W_EPOCH]!
    if (number < 0) return this.#entries[place]!.standing.again(now)
    const epoch = this.#epochs[number]!()
    const at = place * STRIDE_DOUBLES + D_STAMP
    if (this.#doubles[at] === epoch) return AS_GIVEN
    const ttl = this.#entries[place]!.standing.again(now)
    if (ttl === AS_GIVEN) this.#doubles[at] = epoch
    return ttl
  }

  #send(place: number, company: Company, ttl: number, bytes: Buffer, origin: Origin): void {
    const out = origin.room(512) ?? this.#scratch
    const at = place * STRIDE_WORDS
    const shape = this.#words[at + W_SHAPE]!
    const length = shape >>> 16
    const end = HEADER + ((shape & 0xffff) >>> VARIANT_BITS)
    const kept = this.#octets
    // The question in the client's own letters.
    for (let i = HEADER; i < end; i++) out[HEADROOM + i] = bytes[i]!
    const back = place * STRIDE + OCTETS - HEADER
    for (let i = end; i < length; i++) out[HEADROOM + i] = kept[back + i]!
    if (ttl !== AS_GIVEN) this.#putTtl(place, ttl, out)
    if (company.shuffles) applyPatch(this.#entries[place]!.layout, -1, this.#next(), undefined, out, HEADROOM)
    let counts = this.#words[at + W_COUNTS]!
    let total = length
    if ((shape & HAS_OPT) !== 0) {
      counts++
      total += OPT
      // Size, DO and the flags that CoreDNS keeps are the client's own.
      putOpt(out, HEADROOM + length, Math.min(company.lowers, (bytes[end + 3]! << 8) | bytes[end + 4]!), 0, bytes[end + 7]! << 8)
    }
    this.#putHeader(out, bytes, this.#words[at + W_FLAGS]!, counts)
    origin.send(out, HEADROOM, total)
    origin.end()
  }

  #putHeader(out: Buffer, bytes: Buffer, flags: number, counts: number): void {
    out[HEADROOM] = bytes[0]!
    out[HEADROOM + 1] = bytes[1]!
    out[HEADROOM + 2] = flags >>> 24
    out[HEADROOM + 3] = flags >>> 16
    out[HEADROOM + 4] = 0
    out[HEADROOM + 5] = 1
    out[HEADROOM + 6] = flags >>> 8
    out[HEADROOM + 7] = flags
    out[HEADROOM + 8] = counts >>> 24
    out[HEADROOM + 9] = counts >>> 16
    out[HEADROOM + 10] = counts >>> 8
    out[HEADROOM + 11] = counts
  }

  #putTtl(place: number, ttl: number, out: Buffer): void {
    const at = place * STRIDE_WORDS
    const count = this.#words[at + W_TTLS]!
    if (count > MOST_TTLS) {
      applyPatch(this.#entries[place]!.layout, ttl, 0, undefined, out, HEADROOM)
      return
    }
    for (let i = 0; i < count; i++) {
      const to = HEADROOM + ((this.#words[at + W_OFFSETS + (i >> 1)]! >>> ((i & 1) << 4)) & 0xffff)
      out[to] = ttl >>> 24
      out[to + 1] = ttl >>> 16
      out[to + 2] = ttl >>> 8
      out[to + 3] = ttl
    }
  }

  /** Into the place that is empty, or else the one that was not of use last. */
  #keep(entry: Entry, passings: readonly Passing[], answer: Buffer, bytes: Buffer): void {
    if (this.#octets.length === 0) this.#allocate()
    if (this.#companies.length + passings.length > MOST || this.#epochs.length >= MOST) this.#beginAnew()
    const epoch = this.#numberOf(entry.standing.epoch)
    const company = this.#companyOf(passings)
    const place = this.#placeFor(this.#hash)
    const at = place * STRIDE_WORDS
    const words = this.#words
    const question = this.#question
    words[at + W_HASH] = this.#hash
    words[at + W_SHAPE] = this.#variant | (question << VARIANT_BITS) | (answer.length << 16)
    words[at + W_FLAGS] = (answer.readUInt16BE(2) << 16) | answer.readUInt16BE(6)
    words[at + W_COUNTS] = (answer.readUInt16BE(8) << 16) | answer.readUInt16BE(10)
    this.#doubles[place * STRIDE_DOUBLES + D_STAMP] = Number.NaN
    words[at + W_EPOCH] = epoch
    words[at + W_COMPANY] = company.number
    const { ttls } = entry.layout
    words[at + W_TTLS] = ttls.length
    for (let i = 0; i < Math.min(ttls.length, MOST_TTLS); i += 2) words[at + W_OFFSETS + (i >> 1)] = ttls[i]! | ((ttls[i + 1] ?? 0) << 16)
    this.#octets.set(answer.subarray(HEADER), place * STRIDE + OCTETS)
    this.#putFolded(bytes, question, place * STRIDE + OCTETS)
    this.#entries[place] = entry
    this.#recent[place >> 1] = place & 1
  }

  /** What questions are compared with: the name folded, type and class as they are. */
  #putFolded(bytes: Buffer, size: number, to: number): void {
    for (let i = 0; i < size; i++) {
      const octet = bytes[HEADER + i]!
      this.#octets[to + i] = i < size - 4 && octet >= 0x41 && octet <= 0x5a ? octet | 0x20 : octet
    }
  }

  #placeFor(hash: number): number {
    const set = hash & (SETS - 1)
    const first = this.#words[2 * set * STRIDE_WORDS + W_HASH]
    if (first === 0 || first === hash) return 2 * set
    const second = this.#words[(2 * set + 1) * STRIDE_WORDS + W_HASH]
    if (second === 0 || second === hash) return 2 * set + 1
    return 2 * set + (1 - this.#recent[set]!)
  }

  #companyOf(passings: readonly Passing[]): Company {
    let company = this.#companies[0]!
    for (const [i, passing] of passings.entries()) {
      let next = company.and.get(passing)
      if (next === undefined) {
        next = new Company(this.#companies.length, passings.slice(0, i + 1))
        this.#companies.push(next)
        company.and.set(passing, next)
      }
      company = next
    }
    return company
  }

  #beginAnew(): void {
    this.#companies = [new Company(0, [])]
    this.#epochs = []
    this.#words.fill(0)
    this.#entries.fill(undefined)
  }

  /** -1: none. */
  #numberOf(epoch: (() => number) | undefined): number {
    if (epoch === undefined) return -1
    const known = this.#epochs.indexOf(epoch)
    return known >= 0 ? known : this.#epochs.push(epoch) - 1
  }

  /** Most listeners never answer anything twice. What is not written to is the kernel's zero page. */
  #allocate(): void {
    const memory = new ArrayBuffer(2 * SETS * STRIDE)
    this.#entries = new Array(2 * SETS).fill(undefined)
    this.#recent = new Uint8Array(SETS)
    this.#words = new Int32Array(memory)
    this.#doubles = new Float64Array(memory)
    this.#octets = new Uint8Array(memory)
  }

  #forget(place: number): false {
    this.#entries[place] = undefined
    this.#words[place * STRIDE_WORDS + W_HASH] = 0
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

const isAddressType = (octets: Uint8Array, at: number): boolean =>
  octets[at] === 0 && (octets[at + 1] === TYPE.A || octets[at + 1] === TYPE.AAAA)
