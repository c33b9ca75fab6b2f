import { describe, expect, test } from 'vitest'
import { Naps } from './naps.js'

/** Plays `ms` milliseconds of rounds; `arrivals` says how many datagrams came in a span of milliseconds. Returns microseconds slept, datagrams, rounds. */
function play(naps: Naps, ms: number, arrivals: (from: number, to: number) => number, from = 1000) {
  let now = from
  let slept = 0
  let rounds = 0
  let last = now
  while (now < from + ms) {
    // Waking up and answering take some time; then the thread waits for at least one more.
    now += 0.02
    while (arrivals(last, now) === 0) now += 0.001
    const count = arrivals(last, now)
    last = now
    const nap = naps.after(count, now) / 1e6
    now += nap
    slept += nap * 1000
    rounds++
  }
  return { slept, rounds }
}
const steady = (perMs: number) => (from: number, to: number) => Math.floor(to * perMs) - Math.floor(from * perMs)

describe('naps', () => {
  test('there are none at low load', () => {
    expect(play(new Naps(), 500, steady(2)).slept).toBe(0)
  })

  test('at medium load several queries come to a round', () => {
    for (const perMs of [20, 60]) {
      const { slept, rounds } = play(new Naps(), 500, steady(perMs))
      expect(slept).toBeGreaterThan(0)
      expect((perMs * 500) / rounds).toBeGreaterThan(1.5)
    }
  })

  test('there are none where rounds are full anyway', () => {
    const naps = new Naps()
    let slept = 0
    for (let now = 0; now < 200; now += 0.2) slept += naps.after(64, now)
    expect(slept).toBe(0)
  })

  test('a client that waits for each answer is soon let alone', () => {
    const naps = new Naps()
    let slept = 0
    for (let now = 0; now < 2000; ) {
      const nap = naps.after(1, now) / 1e6
      slept += nap
      now += 0.05 + nap
    }
    expect(slept).toBeLessThan(200)
  })
})
