import { describe, expect, test } from 'vitest'
import { Name } from '../dns/index.js'
import type { Plugin, Query } from '../plugins/contract.js'
import { query } from '../plugins/testing.js'
import type { Block } from './block.js'
import { Router, type Site } from './router.js'

/** A block as far as the router looks into it. */
const block = (viewName = '', over: Partial<Block> = {}): Block =>
  ({
    config: { viewName },
    handler: () => {
      throw new Error('not called')
    },
    filters: [],
    collector: undefined,
    chaos: false,
    ...over,
  }) as unknown as Block

const site = (zone: string, over?: Block): Site => ({ zone, name: Name.parse(zone), block: over ?? block() })

/** Zone of the block that takes the question; '-' if it is refused. */
function routed(router: Router, name: string, type = 'A'): string {
  const asked: Query = query(name, type)
  return router.route(asked) === undefined ? '-' : asked.zone
}

const few = ['example.org.', 'a.example.org.', 'b.a.example.org.']
const many = [...few, ...Array.from({ length: 20 }, (_, i) => `zone-${i}.test.`)]

describe.each([
  ['a few zones', few],
  ['many zones', many],
])('%s', (_, zones) => {
  const router = new Router(zones.map((zone) => site(zone)))
  const rooted = new Router([...zones, '.'].map((zone) => site(zone)))

  test.each([
    ['example.org.', 'A', 'example.org.', 'example.org.'],
    ['www.EXAMPLE.org.', 'A', 'example.org.', 'example.org.'],
    ['x.b.a.example.org.', 'A', 'b.a.example.org.', 'b.a.example.org.'],
    ['xa.example.org.', 'A', 'example.org.', 'example.org.'],
    ['anexample.org.', 'A', '-', '.'],
    ['org.', 'A', '-', '.'],
    ['.', 'A', '-', '.'],
    // DS lives at the parent, as far up as one is served here; the root is asked only for want of another.
    ['b.a.example.org.', 'DS', 'example.org.', 'example.org.'],
    ['example.org.', 'DS', 'example.org.', 'example.org.'],
    ['org.', 'DS', '-', '.'],
  ])('%s %s', (name, type, without, withRoot) => {
    expect([routed(router, name, type), routed(rooted, name, type)]).toEqual([without, withRoot])
  })
})

test('a block without plugins ends the search, but at the root it is passed over', () => {
  const empty = block('', { handler: undefined })
  expect(routed(new Router([site('a.example.', empty), site('example.')]), 'www.a.example.')).toBe('-')
  expect(routed(new Router([site('.', empty), site('.', block('second'))]), 'www.example.')).toBe('.')
})

test('of the blocks of a zone the first counts whose filter takes the query; if none does, the next zone', () => {
  const filter = (label: string): Plugin => ({ name: 'view', filter: (asked) => asked.name.label(0) === label })
  const router = new Router([
    site('example.', block('one', { filters: [filter('one')] })),
    site('example.', block('two', { filters: [filter('two')] })),
    site('.', block('rest')),
  ])
  const view = (name: string): string => {
    const asked = query(name, 'A')
    router.route(asked)
    return `${asked.view} ${asked.zone}`
  }
  expect(['one.example.', 'two.example.', 'three.example.'].map(view)).toEqual(['one example.', 'two example.', 'rest .'])
})
