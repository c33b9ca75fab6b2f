import { expect, test } from 'vitest'
import { Ask, Ids } from './ask.js'
import { Pending } from './pending.js'

const ask = (id: number): Ask => {
  const made = new Ask('udp', { settled: () => undefined })
  made.id = id
  return made
}

test('what waits is found by its id, whatever came and went', () => {
  const pending = new Pending()
  const known = new Map<number, Ask>()
  const ids = new Ids()
  for (let round = 0; round < 20_000; round++) {
    // Few different ids, so that they collide and are neighbours; now and then nearly all of them go.
    const id = ids.below(600) * 3
    const before = known.get(id)
    expect(pending.get(id)).toBe(before)
    if (before === undefined) {
      const made = ask(id)
      known.set(id, made)
      pending.add(made)
    } else if (round % 3000 < 1500 || ids.below(4) === 0) {
      known.delete(id)
      pending.remove(before)
      pending.remove(before)
    }
    expect(pending.size).toBe(known.size)
  }
  for (const [id, made] of known) expect(pending.get(id)).toBe(made)
  expect(new Set(pending.take())).toEqual(new Set(known.values()))
  expect(pending.size).toBe(0)
})
