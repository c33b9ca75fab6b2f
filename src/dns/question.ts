/**
 * Questions, and a table of those that come often. Nearly all questions of a cluster are repetitions: one that is in the table costs a walk
 * over its octets and makes nothing. A question is put there when it comes for the second time, so a flood of names that nobody asks twice
 * passes by. The table never changes what is answered, only who makes it.
 */
import { WireError } from './errors.js'
import { Name } from './name.js'

export interface Question {
  readonly name: Name
  readonly type: number
  readonly class: number
  /** Offset of the octet behind the question, counted from the start of the message; 0 if the message was not read from octets. */
  readonly end: number
  /** Of a question that comes often: room for what others worked out about it. */
  readonly kept?: Kept | undefined
}

/** What its owners know of a question; two of them at once. Lost with the question, at any time. */
export class Kept {
  #owner: object | undefined
  #value: unknown
  #other: object | undefined
  #otherValue: unknown

  /** What `owner` left here, or undefined. */
  get(owner: object): unknown {
    if (this.#owner === owner) return this.#value
    return this.#other === owner ? this.#otherValue : undefined
  }

  /** Takes the place of what `owner` left here before; or else of what was left longest ago, whose owner may be gone since a reload. */
  set(owner: object, value: unknown): void {
    if (this.#other === owner) {
      this.#otherValue = value
      return
    }
    if (this.#owner !== owner) {
      this.#other = this.#owner
      this.#otherValue = this.#value
      this.#owner = owner
    }
    this.#value = value
  }
}

class FrequentQuestion implements Question {
  readonly name: Name
  readonly type: number
  readonly class: number
  readonly end: number
  readonly kept: Kept = new Kept()
  constructor(name: Name, type: number, cls: number, end: number) {
    this.name = name
    this.type = type
    this.class = cls
    this.end = end
  }
}

/** Sets of two places. Together some 10,000 names and types of a large cluster find room; full, the table takes a few MiB. */
const SETS = 8192
/** Longest name that is kept, in octets. */
const LONGEST = 128
const table: (FrequentQuestion | undefined)[] = new Array(2 * SETS).fill(undefined)
const hashes = new Int32Array(2 * SETS)
/** Hashes of questions that were seen once, each until another takes its place. */
const SEEN = 32_768
const seen = new Int32Array(SEEN)
/** Other in every process, so that nobody outside can choose names that drive each other out. */
const SEED = (Math.random() * 0x7fffffff) | 0

/** The first question of the message at `offset`. Throws WireError if it is malformed. */
export function readQuestion(bytes: Buffer, offset: number, length: number): Question {
  const start = offset + 12
  const end = offset + length
  // A name that is longer is rare, and the general reader's, as is whatever is wrong.
  const last = Math.min(end - 5, start + LONGEST)
  let at = start
  let hash = SEED
  let upper = 0
  while (at <= last) {
    const size = bytes[at]!
    if (size === 0) break
    if (size > 63) return readAny(bytes, offset, length)
    hash = Math.imul(hash ^ size, 0x01000193)
    const stop = at + size
    if (stop > last) break
    while (at < stop) {
      let octet = bytes[++at]!
      if (octet <= 0x5a && octet >= 0x41) {
        octet |= 0x20
        upper = 1
      }
      hash = Math.imul(hash ^ octet, 0x01000193)
    }
    at++
  }
  if (at > last || bytes[at] !== 0) return readAny(bytes, offset, length)
  const size = at - start
  const type = (bytes[at + 1]! << 8) | bytes[at + 2]!
  const cls = (bytes[at + 3]! << 8) | bytes[at + 4]!
  hash = Math.imul(hash ^ type ^ (cls << 16), 0x01000193)
  hash ^= hash >>> 15
  const place = (hash & (SETS - 1)) * 2
  const known = hashes[place] === hash ? table[place] : hashes[place + 1] === hash ? table[place + 1] : undefined
  const question =
    known !== undefined && known.type === type && known.class === cls && isWritten(known.name.wire, bytes, start, size)
      ? known
      : remember(hash, bytes, start, size, upper !== 0, type, cls)
  return upper === 0 ? question : inLettersOf(question, bytes, start, size)
}

/** Whether the octets before `size` fold to those of `wire`, which has no upper-case letter. */
function isWritten(wire: Buffer, bytes: Buffer, start: number, size: number): boolean {
  if (wire.length !== size + 1) return false
  for (let i = 0; i < size; i++) {
    const octet = bytes[start + i]!
    if (octet !== wire[i] && (octet > 0x5a || octet < 0x41 || (octet | 0x20) !== wire[i])) return false
  }
  return true
}

function inLettersOf(question: Question, bytes: Buffer, start: number, size: number): Question {
  const wire = Buffer.allocUnsafe(size + 1)
  bytes.copy(wire, 0, start, start + size + 1)
  return { name: question.name.spelledAs(wire), type: question.type, class: question.class, end: question.end }
}

/** The question made anew; at its second time it is put in the table. */
function remember(hash: number, bytes: Buffer, start: number, size: number, upper: boolean, type: number, cls: number): Question {
  const name = Name.fromKey(upper ? fold(bytes, start, size) : bytes.toString('latin1', start, start + size))
  const end = 12 + size + 5
  const sight = (hash >>> 8) & (SEEN - 1)
  if (seen[sight] !== hash) {
    seen[sight] = hash
    return { name, type, class: cls, end }
  }
  const question = new FrequentQuestion(name.kept(), type, cls, end)
  const at = 2 * (hash & (SETS - 1))
  table[at + 1] = table[at]
  hashes[at + 1] = hashes[at]!
  table[at] = question
  hashes[at] = hash
  return question
}

/** The octets as a key (see Name). */
function fold(bytes: Buffer, start: number, size: number): string {
  const folded = Buffer.from(bytes.subarray(start, start + size))
  for (let i = 0; i < size; i++) {
    const octet = folded[i]!
    if (octet >= 0x41 && octet <= 0x5a) folded[i] = octet | 0x20
  }
  return folded.toString('latin1')
}

function readAny(bytes: Buffer, offset: number, length: number): Question {
  const end = offset + length
  const name = Name.read(bytes, offset + 12, offset, end)
  const at = Name.lastEnd
  if (at + 4 > end) throw new WireError('SHORT', 'question cut off')
  return { name, type: bytes.readUInt16BE(at), class: bytes.readUInt16BE(at + 2), end: at + 4 - offset }
}
