import { hostname } from 'node:os'
import { describe, expect, it } from 'vitest'
import type { Message } from '../../dns/index.js'
import { query, setUp } from '../testing.js'
import nsid from './index.js'

it.each([
  ['nsid\nnsid', 'plugin/nsid: this plugin can only be used once per Server Block'],
  ['nsid {\n foo\n}', "unknown property 'foo'"],
])('refuses %j', (text, error) => {
  expect(() => setUp(nsid, text)).toThrow(error)
})

describe('serving', () => {
  const ask = (text: string, options?: { code: number; data: Buffer }[]): Message =>
    setUp(nsid, text).plugin.serveDNS!(query('a.', 'A', options === undefined ? {} : { options }), (q) => q.reply('x', 0)) as Message
  const asked = [{ code: 3, data: Buffer.alloc(0) }]

  it.each([
    ['nsid', hostname()],
    ['nsid ps0', 'ps0'],
    ['nsid Use The Force', 'Use The Force'],
  ])('%j answers %j', (text, data) => {
    expect(ask(text, asked).edns?.options).toEqual([{ code: 3, data: Buffer.from(data) }])
  })

  it('says nothing to those who do not ask', () => {
    expect(ask('nsid ps0').edns).toBeUndefined()
    expect(ask('nsid ps0', [{ code: 10, data: Buffer.alloc(8) }]).edns).toBeUndefined()
  })
})
