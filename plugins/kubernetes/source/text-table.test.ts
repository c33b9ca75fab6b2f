import { describe, expect, it } from 'vitest'
import { NONE, TextTable } from './text-table.js'

/** A fixed sequence of numbers below `below`. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % below
  }
}

describe('TextTable', () => {
  it('holds what a Map would hold, after many changes of all sizes', () => {
    const table = new TextTable()
    const map = new Map<string, string>()
    const next = numbers(7)
    for (let step = 0; step < 8000; step++) {
      const key = `namespace-${next(5)}/ñame-${next(150)}`
      const entry = table.find(key)
      if ((entry === NONE) === map.has(key)) expect.fail(`${key} at step ${step}`)
      const text = `${step} é ${'x'.repeat(next(20) === 0 ? next(40_000) : next(600))}`
      if (entry === NONE) table.add(key, text, step)
      else if (next(3) === 0) table.remove(entry)
      else table.replace(entry, text)
      if (table.find(key) === NONE) map.delete(key)
      else map.set(key, text)
    }
    const held = new Map([...table.entries()].map((entry) => [table.key(entry), table.text(entry)]))
    expect(held).toEqual(map)
    expect(table.size).toBe(map.size)
  })

  it('takes texts larger than a chunk', () => {
    const table = new TextTable()
    const text = 'y'.repeat(1_000_000)
    const entry = table.add('a/b', text, 0)
    table.add('a/c', 'small', 0)
    expect(table.text(entry)).toBe(text)
    table.replace(entry, 'short')
    expect(table.text(table.find('a/b'))).toBe('short')
    expect(table.octets).toBeLessThan(600_000)
  })

  it('tells whether a text is the one it holds', () => {
    const table = new TextTable()
    const entry = table.add('a/b', 'text', 0)
    expect(table.holds(entry, 'text')).toBe(true)
    expect(table.holds(entry, 'texts')).toBe(false)
    expect(table.holds(entry, 'tex')).toBe(false)
  })

  it('keeps the place of a text that becomes shorter for a while', () => {
    const table = new TextTable()
    for (let i = 0; i < 2000; i++) table.add(`ns/${i}`, 'x'.repeat(500), 0)
    const before = table.octets
    for (let round = 0; round < 10; round++)
      for (let i = 0; i < 2000; i++) table.replace(table.find(`ns/${i}`), 'z'.repeat(round % 2 === 0 ? 480 : 500))
    expect(table.octets).toBe(before)
    expect(table.text(table.find('ns/1234'))).toBe('z'.repeat(500))
  })

  it('does not grow with changes', () => {
    const table = new TextTable()
    const next = numbers(11)
    for (let i = 0; i < 2000; i++) table.add(`ns/${i}`, 'x'.repeat(500), 0)
    const before = table.octets
    for (let i = 0; i < 20_000; i++) table.replace(table.find(`ns/${next(2000)}`), 'z'.repeat(400 + next(200)))
    expect(table.octets).toBeLessThan(2.5 * before)
  })

  it('keeps marks with their entries', () => {
    const table = new TextTable()
    const first = table.add('a', '', 1)
    table.add('b', '', 1)
    table.setMark(first, 2)
    expect([...table.entries()].filter((entry) => table.mark(entry) !== 2).map((entry) => table.key(entry))).toEqual(['b'])
  })
})
