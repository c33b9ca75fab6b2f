import { expect, test } from 'vitest'
import { Estimate } from './estimate.js'

test('the 95th percentile of the last 128 replies, looked at after every 16th', () => {
  const estimate = new Estimate()
  const all: number[] = []
  for (let i = 1; i <= 700; i++) {
    const ms = ((i * 7919) % 1013) / 10
    all.push(ms)
    estimate.add(ms)
    if (i < 16) expect(estimate.p95).toBe(0)
    if (i % 16 !== 0) continue
    const last = all.slice(-128).sort((a, b) => a - b)
    expect(estimate.p95).toBe(last[Math.ceil(last.length * 0.95) - 1])
  }
})
