/**
 * Which entry goes when there is no room: S3-FIFO (Yang et al., SOSP 2023). New entries wait in a small queue; only what was asked for again
 * moves on to the main queue, so a flood of names that nobody asks for twice washes through the small queue and leaves the popular ones where they
 * are. A hit costs one saturating increment. `s3fifo.test.ts`
 * measures it: 2,048 entries, 100,000 names by Zipf's law: 66 % hits where random eviction has 54 %; with four never repeated names to each of
 * these, 57 % against 34 %.
 */

/** What the queues need to know of an entry. The links and `queue` belong to the policy. */
export interface Node {
  /** Octets that the entry counts for. */
  readonly cost: number
  /** Recent uses, 0…3; raised by the owner on a hit. */
  uses: number
  /** 32 bits that tell the key from most others. */
  readonly hash: number
  queue: Queue | undefined
  newer: Node | undefined
  older: Node | undefined
}

/** A share of the room that newcomers get, and the uses that take an entry on from there. */
const SMALL_SHARE = 0.1
const MAX_USES = 3

export class S3Fifo<T extends Node> {
  readonly #small = new Queue()
  readonly #main = new Queue()
  readonly #capacity: number
  readonly #octets: number
  readonly #ghosts: Ghosts
  readonly #isDead: (node: T) => boolean
  readonly #onEvict: (node: T) => void

  /** `isDead`: of no use any more, whatever its uses. `onEvict` hears of every entry that is thrown out. */
  constructor(capacity: number, octets: number, isDead: (node: T) => boolean, onEvict: (node: T) => void) {
    this.#capacity = capacity
    this.#octets = octets
    this.#ghosts = new Ghosts(capacity)
    this.#isDead = isDead
    this.#onEvict = onEvict
  }

  get size(): number {
    return this.#small.count + this.#main.count
  }
  get octets(): number {
    return this.#small.octets + this.#main.octets
  }

  /** Takes a new entry in and throws others out as needed. One that is larger than all the room is thrown out itself. */
  add(node: T): void {
    const queue = this.#ghosts.take(node.hash) ? this.#main : this.#small
    queue.push(node)
    this.trim()
  }

  remove(node: T): void {
    node.queue?.remove(node)
  }

  /** Throws out until what is left fits; to be called after an entry's cost has grown. */
  trim(): void {
    while (this.size > this.#capacity || (this.octets > this.#octets && this.size > 0)) this.#evict()
  }

  #evict(): void {
    const small = this.#small
    if (small.count > this.#capacity * SMALL_SHARE || small.octets > this.#octets * SMALL_SHARE || this.#main.count === 0) {
      if (this.#evictSmall()) return
    }
    this.#evictMain()
  }

  /** From the old end of the small queue: on to the main one what was used, out what was not. False if all moved on. */
  #evictSmall(): boolean {
    for (let node = this.#small.oldest as T | undefined; node !== undefined; node = this.#small.oldest as T | undefined) {
      this.#small.remove(node)
      if (node.uses > 0 && !this.#isDead(node)) {
        node.uses = 0
        this.#main.push(node)
        continue
      }
      this.#ghosts.add(node.hash)
      this.#onEvict(node)
      return true
    }
    return false
  }

  /** From the old end of the main queue: what was used goes round again, once for each use at most. */
  #evictMain(): void {
    for (let node = this.#main.oldest as T | undefined; node !== undefined; node = this.#main.oldest as T | undefined) {
      this.#main.remove(node)
      if (node.uses > 0 && !this.#isDead(node)) {
        node.uses--
        this.#main.push(node)
        continue
      }
      this.#onEvict(node)
      return
    }
  }
}

/** A hit on `node`. */
export function use(node: Node): void {
  if (node.uses < MAX_USES) node.uses++
}

/** Entries in the order they came, linked through themselves. */
class Queue {
  count = 0
  octets = 0
  newest: Node | undefined
  oldest: Node | undefined

  push(node: Node): void {
    node.queue = this
    node.newer = undefined
    node.older = this.newest
    if (this.newest === undefined) this.oldest = node
    else this.newest.newer = node
    this.newest = node
    this.count++
    this.octets += node.cost
  }

  remove(node: Node): void {
    if (node.newer === undefined) this.newest = node.older
    else node.newer.older = node.older
    if (node.older === undefined) this.oldest = node.newer
    else node.older.newer = node.newer
    node.queue = undefined
    node.newer = undefined
    node.older = undefined
    this.count--
    this.octets -= node.cost
  }
}

/** Fingerprints of the last entries that left the small queue unused; eight octets for each, no more. */
class Ghosts {
  readonly #mask: number
  readonly #memory: number
  /** Pairs of fingerprint and the turn it came in. */
  readonly #table: Uint32Array
  #turn = 1

  constructor(capacity: number) {
    const slots = 2 ** Math.ceil(Math.log2(Math.max(16, capacity * 2)))
    this.#mask = slots - 1
    this.#memory = capacity
    this.#table = new Uint32Array(slots * 2)
  }

  add(hash: number): void {
    const at = (hash & this.#mask) * 2
    this.#table[at] = hash
    this.#table[at + 1] = this.#turn
    this.#turn = (this.#turn + 1) >>> 0
  }

  /** Whether the fingerprint is among the last `capacity`; if so it is forgotten. */
  take(hash: number): boolean {
    const at = (hash & this.#mask) * 2
    if (this.#table[at] !== hash >>> 0 || this.#table[at + 1] === 0) return false
    const age = (this.#turn - this.#table[at + 1]!) >>> 0
    this.#table[at + 1] = 0
    return age <= this.#memory
  }
}
