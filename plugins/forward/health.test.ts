/** What several serving threads make of one upstream together. */
import { beforeEach, expect, test } from 'vitest'
import { Name } from '../../src/dns/index.js'
import { FakeClock } from '../../src/plugins/testing.js'
import type { Ask } from './ask.js'
import { Health, type Word } from './health.js'

const settings = { maxFails: 2, probeInterval: 500, probeDomain: Name.parse('.'), probeRecursion: true, forceTcp: false }

let clock: FakeClock
let threads: Thread[]
/** The upstream answers. */
let alive: boolean
beforeEach(() => {
  clock = new FakeClock()
  threads = []
  alive = false
})

/** A thread whose probes are kept, on a line with all others. */
class Thread {
  readonly probes: Ask[] = []
  failed = 0
  silent = false
  readonly #hear: (word: Word) => void
  readonly health: Health

  constructor() {
    const index = threads.push(this) - 1
    let hear: (word: Word) => void = () => undefined
    this.health = new Health(settings, {
      clock,
      thread: index,
      line: (receive) => {
        hear = receive
        return { tell: (word) => this.#tell(word), close: () => undefined }
      },
      send: (ask) => {
        this.probes.push(ask)
        if (alive) ask.settle({} as never, undefined)
      },
      probeFailed: () => this.failed++,
    })
    this.#hear = hear
  }
  #tell(word: Word): void {
    if (!this.silent) for (const other of threads) if (other !== this) other.#hear(word)
  }
  /** The upstream is dead: a question that failed. */
  fail(): void {
    this.health.suspected(clock.monotonic())
  }
}

test('one thread probes, and all know what comes of it', () => {
  const [a, b] = [new Thread(), new Thread()]
  a.fail()
  clock.advance(10)
  b.fail()
  clock.advance(10_000)
  expect(a.probes.length).toBeGreaterThan(4)
  expect(b.probes).toEqual([])
  expect([a.health.down, b.health.down, b.health.suspect, b.failed]).toEqual([true, true, true, 0])
  alive = true
  clock.advance(2_000)
  expect([a.health.down, b.health.down, b.health.suspect]).toEqual([false, false, false])
  const before = a.probes.length
  clock.advance(10_000)
  expect([a.probes.length, b.probes.length]).toEqual([before, 0])
})

test('a reply in one thread frees the upstream in all', () => {
  const [a, b] = [new Thread(), new Thread()]
  a.fail()
  clock.advance(10_000)
  b.health.answered()
  expect([a.health.down, a.health.suspect]).toEqual([false, false])
})

test('of two that begin at once the first goes on', () => {
  const [a, b] = [new Thread(), new Thread()]
  b.silent = true
  a.silent = true
  a.fail()
  b.fail()
  expect([a.probes.length, b.probes.length]).toEqual([1, 1])
  a.silent = b.silent = false
  clock.advance(20_000)
  expect(b.probes.length).toBeLessThanOrEqual(2)
  expect(a.probes.length).toBeGreaterThan(8)
})

test('another takes over when the one that probes falls silent, so that nobody stays down for good', () => {
  const [a, b] = [new Thread(), new Thread()]
  a.fail()
  clock.advance(10_000)
  expect(b.health.down).toBe(true)
  a.silent = true
  a.health.close()
  clock.advance(3_000)
  expect(b.probes.length).toBeGreaterThan(0)
  alive = true
  clock.advance(2_000)
  expect(b.health.down).toBe(false)
})
