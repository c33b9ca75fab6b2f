/** Caches of numbers, and what of a trace they hit: for what the way of evicting is worth. */
import { type Node, S3Fifo, use } from '../../plugins/cache/s3fifo.js'
import { randomFrom, zipf } from './random.js'

interface Cache {
  /** Whether it was there; it is afterwards. */
  get(key: number): boolean
}

class Entry implements Node {
  readonly key: number
  readonly cost: number
  readonly hash: number
  uses = 0
  queue: Node['queue'] = undefined
  newer: Node | undefined
  older: Node | undefined
  constructor(key: number, cost = 1) {
    this.key = key
    this.cost = cost
    this.hash = Math.imul(key + 1, 0x9e3779b1) >>> 0
  }
}

export class Fifo implements Cache {
  readonly entries = new Map<number, Entry>()
  readonly room: S3Fifo<Entry>
  constructor(capacity: number, octets = Number.MAX_SAFE_INTEGER, isDead: (entry: Entry) => boolean = () => false) {
    this.room = new S3Fifo<Entry>(capacity, octets, isDead, (entry) => this.entries.delete(entry.key))
  }
  get(key: number, cost = 1): boolean {
    const found = this.entries.get(key)
    if (found !== undefined) {
      use(found)
      return true
    }
    const entry = new Entry(key, cost)
    this.entries.set(key, entry)
    this.room.add(entry)
    return false
  }
}

/** CoreDNS's way: 256 shards, out goes any one of a full shard. */
export class RandomShards implements Cache {
  readonly #shards: number[][] = Array.from({ length: 256 }, () => [])
  readonly #known = new Set<number>()
  readonly #each: number
  readonly #random: () => number
  constructor(capacity: number, random: () => number) {
    this.#each = Math.floor(capacity / 256)
    this.#random = random
  }
  get(key: number): boolean {
    if (this.#known.has(key)) return true
    const shard = this.#shards[(Math.imul(key + 1, 0x9e3779b1) >>> 8) & 255]!
    if (shard.length < this.#each) shard.push(key)
    else {
      const at = Math.floor(this.#random() * shard.length)
      this.#known.delete(shard[at]!)
      shard[at] = key
    }
    this.#known.add(key)
    return false
  }
}

/** Share of hits among 100,000 names asked by Zipf's law; `flood` (0–1): the share of questions for names that are never asked again. */
export function hitRate(cache: Cache, flood: number, questions = 300_000): number {
  const random = randomFrom(7)
  const next = zipf(100_000, random)
  let fresh = 1_000_000
  let hits = 0
  let asked = 0
  for (let i = 0; i < questions; i++) {
    if (random() < flood) {
      cache.get(fresh++)
      continue
    }
    const hit = cache.get(next())
    if (i < questions / 3) continue
    asked++
    if (hit) hits++
  }
  return hits / asked
}
