import { hostname } from 'node:os'
import { describe, expect, it } from 'vitest'
import type { Message } from '../../dns/index.js'
import { lastHandler, query, setUp } from '../testing.js'
import chaos from './index.js'

it('lets class CH in on the listener, and refuses a body', () => {
  expect(setUp(chaos, 'chaos').context.block.chaos).toBe(true)
  expect(() => setUp(chaos, 'chaos {\n foo\n}')).toThrow("plugin/chaos: Corefile:3 - Error during parsing: unknown property 'foo'")
})

/** The texts of the answer; undefined if the query was passed on. */
function texts(text: string, name: string, type = 'TXT', cls = 3): string[] | undefined {
  const { plugin } = setUp(chaos, text)
  const end = lastHandler((q) => q.reply('next', 0))
  const reply = plugin.serveDNS!(query(name, type, { class: cls }), end.next) as Message
  if (end.calls.length > 0) return undefined
  expect([reply.aa, reply.by]).toEqual([false, 'chaos'])
  return reply.answers.map(({ data, class: c, ttl }) => {
    expect([c, ttl]).toEqual([3, 0])
    return data.kind === 'TXT' ? Buffer.concat(data.strings).toString() : ''
  })
}

describe('serving', () => {
  it('tells version, host and authors', () => {
    expect(texts('chaos', 'version.bind.')).toEqual([expect.stringMatching(/^CairnDNS-\d/)])
    expect(texts('chaos x-1', 'VERSION.server.')).toEqual(['x-1'])
    expect(texts('chaos', 'hostname.bind.')).toEqual([hostname()])
    expect(texts('chaos', 'id.server.')).toEqual([hostname()])
    expect(texts('chaos x b a b', 'authors.bind.')?.sort()).toEqual(['a', 'b'])
  })

  it('cuts texts to what one string holds', () => {
    expect(texts(`chaos ${'v'.repeat(300)}`, 'version.bind.')?.[0]).toHaveLength(255)
  })

  it.each([
    ['version.bind.', 'A', 3],
    ['version.bind.', 'TXT', 1],
    ['example.org.', 'TXT', 3],
  ])('passes %s %s of class %d on', (name, type, cls) => {
    expect(texts('chaos', name, type, cls)).toBeUndefined()
  })
})
