import { expect, test } from 'vitest'
import { randomFrom, shuffled, zipf } from './random.js'

test('the same seed gives the same numbers', () => {
  const [a, b] = [randomFrom(5), randomFrom(5)]
  for (let i = 0; i < 100; i++) {
    const value = a()
    expect(value).toBe(b())
    expect(value >= 0 && value < 1).toBe(true)
  }
})

test("ranks follow Zipf's law: the first twice as often as the second, all within bounds", () => {
  const next = zipf(100, randomFrom(1))
  const counts = new Array<number>(100).fill(0)
  for (let i = 0; i < 100_000; i++) counts[next()]!++
  expect(counts[0]! / counts[1]!).toBeGreaterThan(1.8)
  expect(counts[0]! / counts[1]!).toBeLessThan(2.2)
  expect(counts[0]! / counts[9]!).toBeGreaterThan(8.5)
  expect(counts.reduce((sum, count) => sum + count)).toBe(100_000)
})

test('a shuffle keeps everything', () => {
  const items = Array.from({ length: 50 }, (_, i) => i)
  const result = shuffled(items, randomFrom(1))
  expect(result).not.toEqual(items)
  expect([...result].sort((a, b) => a - b)).toEqual(items)
})
