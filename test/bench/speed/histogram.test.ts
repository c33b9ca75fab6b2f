import { expect, test } from 'vitest'
import { Histogram } from './histogram.js'

test.each([0.0001, 0.0127, 0.0128, 0.0129, 0.05, 1, 17.3, 399, 60_000])('%f ms come back within 1.6 %%', (ms) => {
  const histogram = new Histogram()
  histogram.record(ms)
  expect(Math.abs(histogram.percentile(0.5) - ms)).toBeLessThanOrEqual(ms * 0.016 + 0.00005)
})

test('percentiles are of the values recorded', () => {
  const histogram = new Histogram()
  for (let i = 1; i <= 1000; i++) histogram.record(i)
  expect(histogram.count).toBe(1000)
  for (const share of [0.001, 0.5, 0.9, 0.99, 0.999, 1]) {
    const value = histogram.percentile(share)
    expect(Math.abs(value - share * 1000)).toBeLessThanOrEqual(share * 16 + 0.001)
  }
})

test('nothing recorded has no percentile; neither negative nor endless times break it', () => {
  const histogram = new Histogram()
  expect(histogram.percentile(0.5)).toBeNaN()
  histogram.record(-1)
  expect(histogram.percentile(1)).toBe(0)
  histogram.record(Number.POSITIVE_INFINITY)
  expect(histogram.percentile(1)).toBeGreaterThan(400_000)
  histogram.clear()
  expect(histogram.count).toBe(0)
})
