import { describe, expect, test } from 'vitest'
import { type Node, S3Fifo, use } from './s3fifo.js'

/** Numbers that are the same in every run (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Ranks 0…n-1 with Zipf's law, exponent 1: what names of a resolver look like. */
function zipf(n: number, random: () => number): () => number {
  const sums = new Float64Array(n)
  let sum = 0
  for (let i = 0; i < n; i++) {
    sum += 1 / (i + 1)
    sums[i] = sum
  }
  return () => {
    const wanted = random() * sum
    let low = 0
    let high = n - 1
    while (low < high) {
      const middle = (low + high) >> 1
      if (sums[middle]! < wanted) low = middle + 1
      else high = middle
    }
    return low
  }
}

interface Cache {
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

class Fifo implements Cache {
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
class RandomShards implements Cache {
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

/** Share of hits among the popular keys; every `flood`th question is one that is never asked again. */
function hitRate(cache: Cache, flood: number, questions = 300_000): number {
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

describe('S3-FIFO', () => {
  test('keeps more of what is asked often than random eviction does', () => {
    const ours = hitRate(new Fifo(2048), 0)
    const random = hitRate(new RandomShards(2048, randomFrom(3)), 0)
    expect(ours).toBeGreaterThan(random + 0.04)
  })

  test('a flood of names that nobody asks for twice takes little from the popular ones', () => {
    const calm = hitRate(new Fifo(2048), 0)
    const flooded = hitRate(new Fifo(2048), 0.8)
    const randomFlooded = hitRate(new RandomShards(2048, randomFrom(3)), 0.8)
    expect(calm - flooded).toBeLessThan(0.1)
    expect(flooded).toBeGreaterThan(randomFlooded + 0.1)
  })

  test('never holds more than its capacity, nor more octets than it may', () => {
    const cache = new Fifo(100, 5000)
    const random = randomFrom(11)
    for (let i = 0; i < 20_000; i++) {
      cache.get(Math.floor(random() * 400), 10 + Math.floor(random() * 200))
      expect(cache.room.size).toBeLessThanOrEqual(100)
      expect(cache.room.octets).toBeLessThanOrEqual(5000)
      expect(cache.entries.size).toBe(cache.room.size)
    }
  })

  test('what is dead goes first, however often it was used', () => {
    const dead = new Set<number>()
    const cache = new Fifo(10, Number.MAX_SAFE_INTEGER, (entry) => dead.has(entry.key))
    for (let round = 0; round < 4; round++) for (let key = 0; key < 10; key++) cache.get(key)
    for (let key = 0; key < 5; key++) dead.add(key)
    for (let key = 100; key < 105; key++) cache.get(key)
    for (let key = 5; key < 10; key++) expect(cache.entries.has(key)).toBe(true)
  })

  test('an entry larger than all the room is not kept', () => {
    const cache = new Fifo(10, 100)
    cache.get(1, 1000)
    expect(cache.room.size).toBe(0)
    expect(cache.entries.size).toBe(0)
  })
})
