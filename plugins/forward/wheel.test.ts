import { expect, test } from 'vitest'
import { FakeClock } from '../../src/plugins/testing.js'
import { type Waiter, Wheel } from './wheel.js'

class Note implements Waiter {
  due = 0
  grain = -1
  earlier: Waiter | undefined = undefined
  later: Waiter | undefined = undefined
  readonly at: number[] = []
  readonly fired: (now: number) => void
  constructor(fired: (now: number) => void = () => undefined) {
    this.fired = fired
  }
  fire(now: number): void {
    this.at.push(now)
    this.fired(now)
  }
}
const START = 1_000_003

function begin(): { clock: FakeClock; wheel: Wheel; add: (ms: number, note?: Note) => Note } {
  const clock = new FakeClock(START)
  const wheel = new Wheel(clock)
  const add = (ms: number, note = new Note()): Note => {
    wheel.add(note, clock.monotonic() + ms, clock.monotonic())
    return note
  }
  return { clock, wheel, add }
}

test('each fires once, within a grain after its time, however long that is', () => {
  const { clock, add } = begin()
  const delays = [0, 3, 10, 11, 200, 2000, 4999, 5200, 60_000]
  const notes = delays.map((ms) => add(ms))
  clock.advance(61_000)
  for (const [i, { at }] of notes.entries()) {
    expect(at).toHaveLength(1)
    const late = at[0]! - START - delays[i]!
    expect(late).toBeGreaterThanOrEqual(-1)
    expect(late).toBeLessThanOrEqual(10)
  }
})

test('what was taken out, or put in anew, does not fire at its old time', () => {
  const { clock, wheel, add } = begin()
  const [gone, moved, other] = [add(100), add(100), add(100)]
  wheel.remove(gone)
  wheel.remove(gone)
  wheel.add(moved, START + 300, START)
  clock.advance(150)
  expect([gone.at.length, moved.at.length, other.at.length]).toEqual([0, 0, 1])
  clock.advance(200)
  expect([gone.at.length, moved.at.length, other.at.length]).toEqual([0, 1, 1])
})

test('one that fires may take out its neighbours and begin again', () => {
  const { clock, wheel, add } = begin()
  const a: Note = new Note(() => wheel.remove(b))
  const b: Note = new Note(() => wheel.remove(a))
  add(50, a)
  add(50, b)
  let rounds = 0
  const again: Note = new Note((now) => {
    if (++rounds < 3) wheel.add(again, now + 1, now)
  })
  add(50, again)
  clock.advance(100)
  expect(a.at.length + b.at.length).toBe(1)
  expect(again.at).toHaveLength(3)
})

test('there is one timer, and none once nothing waits', () => {
  const { clock, wheel, add } = begin()
  let timers = 0
  const timer = clock.timer.bind(clock)
  clock.timer = (ms, fn) => {
    timers++
    return timer(ms, fn)
  }
  for (let i = 0; i < 1000; i++) wheel.remove(add(200))
  for (let i = 0; i < 100; i++) add(200)
  expect(timers).toBe(1)
  clock.advance(10_000)
  expect(timers).toBe(1)
})
