import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { formatRecord, Message, parseRecord } from '../../dns/index.js'
import type { Plugin } from '../contract.js'
import { directives, FakeClock, type FakeContext, fakeContext, query } from '../testing.js'
import module from './index.js'
import { parseWeights } from './weights.js'

const folder = mkdtempSync(join(tmpdir(), 'loadbalance-'))
afterAll(() => rmSync(folder, { recursive: true }))

const setup = (text: string, ctx: FakeContext = fakeContext('loadbalance')): Plugin => module.setup(directives(text), ctx) as Plugin

async function order(plugin: Plugin, lines: string[], form: string, additional: string[] = [], type = 'A', rcode = 0): Promise<string[]> {
  const q = query('example.org.', type)
  const parse = (all: string[]) => all.map((line) => parseRecord(line))
  const made = q.reply('file', rcode, { answers: parse(lines), additionals: parse(additional) })
  const reply = Message.view(
    ((await plugin.serveDNS!(q, () => (form === 'records' ? made : Message.view(made.toBuffer())))) as Message).toBuffer(),
  )
  return [...reply.answers, ...reply.additionals].map((rr) =>
    formatRecord(rr)
      .replace(/\s+/g, ' ')
      .replace(/ 60 IN/, ''),
  )
}

/** How often each record came first. */
async function firsts(times: number, ask: () => Promise<string[]>): Promise<Map<string, number>> {
  const tally = new Map<string, number>()
  for (let i = 0; i < times; i++) {
    const first = (await ask())[0]!
    tally.set(first, (tally.get(first) ?? 0) + 1)
  }
  return tally
}

const ADDRESSES = [1, 2, 3, 4].map((i) => `example.org. 60 IN A 10.0.0.${i}`)

describe.each(['records', 'octets'])('round robin over a reply made of %s', (form) => {
  const plugin = setup('loadbalance')

  test('puts each address first about equally often', async () => {
    const tally = await firsts(4000, () => order(plugin, ADDRESSES, form))
    expect(tally.size).toBe(4)
    for (const times of tally.values()) expect(Math.abs(times - 1000)).toBeLessThan(150)
  })

  test('CNAMEs come first, then all else, addresses and MX', async () => {
    const lines = [
      'b. 60 IN A 10.0.0.1',
      'example.org. 60 IN MX 1 m.',
      'example.org. 60 IN CNAME b.',
      'b. 60 IN TXT "x"',
      'b. 60 IN AAAA ::1',
      'example.org. 60 IN MX 2 n.',
    ]
    for (let i = 0; i < 20; i++) {
      const types = (await order(plugin, lines, form)).map((line) => line.split(' ')[1])
      expect(types.slice(0, 2)).toEqual(['CNAME', 'TXT'])
      expect(types.slice(2, 4).sort()).toEqual(['A', 'AAAA'])
      expect(types.slice(4)).toEqual(['MX', 'MX'])
    }
  })

  test('the additional section turns as well', async () => {
    const glue = [1, 2, 3].map((i) => `t.example.org. 60 IN A 10.0.0.${i}`)
    const seen = new Set<string>()
    for (let i = 0; i < 60; i++) seen.add((await order(plugin, ['example.org. 60 IN SRV 1 1 1 t.example.org.'], form, glue, 'SRV'))[1]!)
    expect(seen.size).toBe(3)
  })

  test('errors are left as they are', async () => {
    for (let i = 0; i < 10; i++) expect((await order(plugin, ADDRESSES, form, [], 'A', 2))[0]).toBe('example.org. A 10.0.0.1')
  })

  test('prefer: addresses of the networks come first, in the order of the networks', async () => {
    const prefer = setup('loadbalance round_robin {\n prefer 10.0.0.4/32 10.0.0.2/31\n prefer 2001:db8::/32\n}')
    for (let i = 0; i < 20; i++) {
      const [first, ...rest] = await order(prefer, ADDRESSES, form)
      expect(first).toBe('example.org. A 10.0.0.4')
      expect(rest.slice(0, 2).sort()).toEqual(['example.org. A 10.0.0.2', 'example.org. A 10.0.0.3'])
    }
  })
})

describe('weighted', () => {
  async function started(text: string, reload = '1s'): Promise<{ plugin: Plugin; ctx: FakeContext; clock: FakeClock; path: string }> {
    const path = join(folder, `weights-${Math.random()}`)
    writeFileSync(path, text)
    const clock = new FakeClock()
    const ctx = fakeContext('loadbalance', { clock })
    const corefile = `loadbalance weighted ${path} {\n reload ${reload}\n}`
    const plugin = setup(corefile, ctx)
    const control = module.control!(directives(corefile), ctx)
    await control?.onStartup?.()
    const ready = plugin.onStartup?.()
    const source = ctx.sources[0]!
    const replica = ctx.replicas.get(source.key)!
    replica.begin()
    for (const part of source.snapshot()) replica.apply(part)
    replica.swap()
    void source.start((part) => replica.apply(part))
    await ready
    return { plugin, ctx, clock, path }
  }

  test('the first address follows the weights, and changes with the file', async () => {
    const { plugin, clock, ctx, path } = await started('# weights\nExample.org\n10.0.0.1 3\n10.0.0.2 1\n\n10.0.0.3 2\n')
    const tally = await firsts(3500, () => order(plugin, ADDRESSES, 'octets'))
    const share = (i: number): number => (tally.get(`example.org. A 10.0.0.${i}`) ?? 0) / 500
    for (const [i, weight] of [
      [1, 3],
      [2, 1],
      [3, 2],
      [4, 1],
    ] as const)
      expect(Math.abs(share(i) - weight)).toBeLessThan(0.4)
    writeFileSync(path, 'example.org\n10.0.0.4 255\n10.0.0.1 1\n')
    clock.advance(1000)
    const after = await firsts(500, () => order(plugin, ADDRESSES, 'octets'))
    expect(after.get('example.org. A 10.0.0.4')).toBeGreaterThan(450)
    writeFileSync(path, 'example.org\n10.0.0.4 256 \n')
    clock.advance(1000)
    expect(ctx.log.lines.at(-1)).toContain(`[ERROR] plugin/loadbalance: wrong weight value:"256" in weight file ${path}`)
  })

  test('MX and other types are left as they are', async () => {
    const { plugin } = await started('example.org\n10.0.0.2 255\n')
    expect((await order(plugin, ADDRESSES, 'octets', [], 'MX'))[0]).toBe('example.org. A 10.0.0.1')
  })

  test('a file that is missing is waited for, unless it is never looked for again', () => {
    const ctx = fakeContext('loadbalance')
    const wait = module.control!(directives('loadbalance weighted /no/file'), ctx)
    void wait?.onStartup?.()
    expect(ctx.log.lines).toEqual([
      '[WARNING] plugin/loadbalance: Failed to open weight file:weight file open error. Will try again in 30s',
    ])
    const never = module.control!(directives('loadbalance weighted /no/file {\n reload 0s\n}'), fakeContext('loadbalance'))
    expect(() => never?.onStartup?.()).toThrow('plugin/loadbalance: weight file open error')
  })

  test.each([
    ['10.0.0.1', 'wrong domain name:"10.0.0.1" in weight file f. (Maybe a missing weight value?)'],
    ['a\n10.0.0 3', 'wrong IP address:"10.0.0" in weight file f'],
    ['a\n10.0.0.1 0', 'wrong weight value:"0" in weight file f'],
    ['10.0.0.1 3', 'missing domain name in weight file f'],
    ['a\n10.0.0.1 3 4', 'could not parse weight line:"10.0.0.1 3 4" in weight file f'],
  ])('%j is refused', (text, message) => {
    expect(() => parseWeights(text, 'f')).toThrow(message)
  })
})

test.each([
  ['loadbalance fleeb', 'unknown policy: fleeb'],
  ['loadbalance round_robin x', 'unknown property for round_robin'],
  ['loadbalance weighted', 'missing weight file argument'],
  ['loadbalance weighted a b', 'unexpected argument(s)'],
  ['loadbalance weighted a {\n susu\n}', "unknown property 'susu'"],
  ['loadbalance weighted a {\n reload\n}', 'reload duration value is missing'],
  ['loadbalance weighted a {\n reload x\n}', "invalid reload duration 'x'"],
  ['loadbalance weighted a {\n reload 30s a\n}', 'unexpected argument'],
  ['loadbalance {\n prefer 10.0.0.0\n}', 'invalid CIDR "10.0.0.0": invalid CIDR address: 10.0.0.0'],
  ['loadbalance {\n reload 30s\n}', "unknown property 'reload'"],
])('%s is refused', (text, message) => {
  expect(() => setup(text)).toThrow(message)
})
