import { describe, expect, test } from 'vitest'
import type { Plugin } from '../contract.js'
import { directives, fakeContext, lastHandler, query } from '../testing.js'
import module from './index.js'

const setup = (text: string): Plugin => module.setup(directives(text), fakeContext('bufsize')) as Plugin

describe('bufsize', () => {
  test.each([
    ['bufsize', 4096, 1232],
    ['bufsize 512', 4096, 512],
    ['bufsize "1220"', 1221, 1220],
    ['bufsize 1220', 1000, 1000],
  ])('%s: a client that takes %i is asked for as if it took %i', async (text, size, wanted) => {
    const end = lastHandler((q) => q.reply('', 0))
    const q = query('example.org.', 'A', { size, dnssecOk: true })
    await setup(text).serveDNS!(q, end.next)
    expect(end.calls[0]?.message.edns).toMatchObject({ size: wanted, dnssecOk: true })
    expect(end.calls[0]?.size).toBe(wanted)
    expect(q.lowered).toBe(wanted < size ? wanted : undefined)
  })

  test('a query without EDNS is left alone', async () => {
    const end = lastHandler((q) => q.reply('', 0))
    const q = query('example.org.', 'A')
    await setup('bufsize 512').serveDNS!(q, end.next)
    expect(end.calls[0]).toBe(q)
  })

  test.each(['bufsize 511', 'bufsize 4097', 'bufsize x', 'bufsize 512 1232'])('%s is refused', (text) => {
    expect(() => setup(text)).toThrow('Wrong argument count or unexpected line ending after')
  })
})
