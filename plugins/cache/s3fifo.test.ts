import { describe, expect, test } from 'vitest'
import { Fifo, hitRate, RandomShards } from '../../test/support/evictions.js'
import { randomFrom } from '../../test/support/random.js'

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
