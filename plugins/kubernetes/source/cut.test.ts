import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CutError, LineCutter, ListCutter } from './cut.js'

function cutList(body: string, sizes: readonly number[], maxItem?: number): { items: unknown[]; frame: unknown } {
  const items: unknown[] = []
  const cutter = new ListCutter((text) => items.push(JSON.parse(text)), maxItem)
  const bytes = Buffer.from(body)
  let at = 0
  for (let n = 0; at < bytes.length; n++) {
    const size = sizes[n % sizes.length]!
    cutter.write(bytes.subarray(at, at + size))
    at += size
  }
  return { items, frame: JSON.parse(cutter.end()) }
}

describe('ListCutter', () => {
  const tricky = {
    kind: 'ServiceList',
    other: [{ items: [1] }, '"items":['],
    metadata: { resourceVersion: '12', items: ['x'] },
    items: [{ a: '}]"\\' }, { b: { items: [[], {}] }, c: 'ü\u2028' }, {}],
    after: '"',
  }
  it.each([[1], [2, 3], [7], [1000]])('cuts items out of a body that comes in chunks of %d', (...sizes) => {
    const { items, frame } = cutList(JSON.stringify(tricky, null, 1), sizes)
    expect(items).toEqual(tricky.items)
    expect(frame).toEqual({ ...tricky, items: [] })
  })

  it('takes a list without items, and null for items', () => {
    expect(cutList('{"metadata":{},"items":null}', [5])).toEqual({ items: [], frame: { metadata: {}, items: null } })
    expect(cutList('{"items":[]}', [100])).toEqual({ items: [], frame: { items: [] } })
  })

  it('cuts any list at any place', () => {
    fc.assert(
      fc.property(
        fc.array(fc.dictionary(fc.string(), fc.jsonValue())),
        fc.jsonValue(),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
        (items, metadata, sizes) => {
          const cut = cutList(JSON.stringify({ metadata, items }), sizes)
          expect(cut.items).toEqual(JSON.parse(JSON.stringify(items)))
          expect(cut.frame).toEqual({ metadata: JSON.parse(JSON.stringify(metadata)), items: [] })
        },
      ),
      { numRuns: 200 },
    )
  })

  it('refuses what ends in the middle and what is too large', () => {
    expect(() => cutList('{"items":[{"a":1}', [4])).toThrow(CutError)
    expect(() => cutList(`{"items":[{"a":"${'x'.repeat(200)}"}]}`, [10], 100)).toThrow(/more than 100 octets/)
  })
})

describe('LineCutter', () => {
  it('gives whole lines, however they arrive', () => {
    for (const size of [1, 2, 5, 100]) {
      const lines: string[] = []
      const cutter = new LineCutter((text) => lines.push(text))
      const bytes = Buffer.from('{"a":"ü"}\n\n\r\n{"b":2}\n{"cut')
      for (let at = 0; at < bytes.length; at += size) cutter.write(bytes.subarray(at, at + size))
      expect(lines).toEqual(['{"a":"ü"}', '{"b":2}'])
    }
  })
  it('refuses a line without end', () => {
    const cutter = new LineCutter(() => undefined, 50)
    expect(() => {
      for (let i = 0; i < 10; i++) cutter.write(Buffer.alloc(10, 0x20))
    }).toThrow(CutError)
  })
})
