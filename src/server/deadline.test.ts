import { expect, test } from 'vitest'
import { FakeClock } from '../plugins/testing.js'
import { Deadlines, Waiting } from './deadline.js'

class Entry extends Waiting {
  readonly deadline: number
  expired = false
  constructor(deadline: number) {
    super()
    this.deadline = deadline
  }
  expire(): void {
    this.expired = true
  }
}

test('what is not taken out in time expires, once, and not much later', () => {
  const clock = new FakeClock(1000)
  const deadlines = new Deadlines(clock)
  const entries = Array.from({ length: 6 }, (_, i) => new Entry(11_000 + 100 * i))
  for (const entry of entries) deadlines.add(entry)
  const [first, , third, , , last] = entries
  expect([deadlines.remove(first!), deadlines.remove(first!)]).toEqual([true, false])
  deadlines.remove(third!)
  deadlines.remove(last!)
  expect(deadlines.size).toBe(3)
  clock.advance(9_750)
  expect(entries.filter(({ expired }) => expired)).toEqual([])
  clock.advance(1_000)
  expect(entries.map(({ expired }) => expired)).toEqual([false, true, false, true, true, false])
  expect([deadlines.size, deadlines.remove(entries[1]!)]).toEqual([0, false])
  deadlines.add(new Entry(clock.monotonic() + 100))
  clock.advance(500)
  expect(deadlines.size).toBe(0)
})
