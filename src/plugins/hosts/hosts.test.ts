import { mkdtempSync, rmSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { formatRecord, type Message } from '../../dns/index.js'
import type { Plugin, Query, Reply } from '../contract.js'
import { directives, FakeClock, type FakeContext, fakeBlock, fakeContext, lastHandler, query } from '../testing.js'
import module from './index.js'

const folder = mkdtempSync(join(tmpdir(), 'hosts-'))
afterAll(() => rmSync(folder, { recursive: true }))
let files = 0
function fileWith(text: string): string {
  const path = join(folder, `hosts-${files++}`)
  writeFileSync(path, text)
  return path
}

interface Bench {
  readonly ctx: FakeContext
  readonly clock: FakeClock
  readonly passed: Query[]
  /** "RCODE: records", or "next" if the query went on. */
  ask(name: string, type?: string): Promise<string[] | string>
}

/** Both halves over a direct line. */
async function bench(text: string, zones: readonly string[] = ['.']): Promise<Bench> {
  const clock = new FakeClock()
  const ctx = fakeContext('hosts', { clock, block: fakeBlock(zones) })
  const plugin = module.setup(directives(text), ctx) as Plugin
  module.control!(directives(text), ctx)
  const started = plugin.onStartup?.()
  const source = ctx.sources[0]!
  const replica = ctx.replicas.get(source.key)!
  replica.begin()
  for (const part of source.snapshot()) replica.apply(part)
  replica.swap()
  void source.start((part) => replica.apply(part))
  await started
  const end = lastHandler((q): Reply => q.reply('next', 5))
  return {
    ctx,
    clock,
    passed: end.calls,
    async ask(name, type = 'A') {
      const reply = (await plugin.serveDNS!(query(name, type), end.next)) as Message
      if (reply.by === 'next') return 'next'
      if (reply.rcode !== 0) return `rcode ${reply.rcode}${reply.aa ? ' aa' : ''}`
      expect([reply.aa, reply.live]).toEqual([true, true])
      return reply.answers.map((rr) => formatRecord(rr).replace(/\s+/g, ' '))
    },
  }
}

describe('the file', () => {
  const text = [
    '127.0.0.1 localhost localhost.domain',
    '::1 localhost localhost.domain',
    '10.0.0.1 example.org',
    '::FFFF:10.0.0.2 example.com',
    '5.6.7.8 *.apps.example.com',
    '1.2.3.4 aa.example.com # a comment',
    'fe80::1%lo0 zoned',
    '123.123.123 loki',
    '321.321.321.321',
    'reload 5s',
  ].join('\n')

  test.each<[string, string, string[] | string]>([
    ['example.org.', 'A', ['example.org. 3600 IN A 10.0.0.1']],
    ['eXample.org.', 'A', ['eXample.org. 3600 IN A 10.0.0.1']],
    ['example.com.', 'A', ['example.com. 3600 IN A 10.0.0.2']],
    ['example.com.', 'AAAA', []],
    ['example.org.', 'AAAA', []],
    ['example.org.', 'MX', []],
    ['localhost.', 'AAAA', ['localhost. 3600 IN AAAA ::1']],
    ['zoned.', 'AAAA', ['zoned. 3600 IN AAAA fe80::1']],
    ['1.0.0.10.in-addr.arpa.', 'PTR', ['1.0.0.10.in-addr.arpa. 3600 IN PTR example.org.']],
    [
      '1.0.0.127.in-addr.arpa.',
      'PTR',
      ['1.0.0.127.in-addr.arpa. 3600 IN PTR localhost.', '1.0.0.127.in-addr.arpa. 3600 IN PTR localhost.domain.'],
    ],
    [
      `${'0.'.repeat(0)}1.${'0.'.repeat(31)}ip6.arpa.`,
      'PTR',
      [`1.${'0.'.repeat(31)}ip6.arpa. 3600 IN PTR localhost.`, `1.${'0.'.repeat(31)}ip6.arpa. 3600 IN PTR localhost.domain.`],
    ],
    ['8.7.6.5.in-addr.arpa.', 'PTR', 'next'],
    ['0.0.10.in-addr.arpa.', 'PTR', 'next'],
    ['9.9.9.9.in-addr.arpa.', 'PTR', 'next'],
    ['one.apps.example.com.', 'A', ['one.apps.example.com. 3600 IN A 5.6.7.8']],
    ['apps.example.com.', 'A', 'rcode 2'],
    ['two.one.apps.example.com.', 'A', 'rcode 2'],
    ['aa.example.com.', 'A', ['aa.example.com. 3600 IN A 1.2.3.4']],
    ['nosuch.example.org.', 'A', 'rcode 2'],
    ['loki.', 'A', 'rcode 2'],
  ])('%s %s', async (name, type, wanted) => {
    const b = await bench(`hosts ${fileWith(text)}`)
    expect(await b.ask(name, type)).toEqual(wanted)
  })

  test('is looked at again; one that has gone keeps its entries', async () => {
    const path = fileWith('10.0.0.1 a.example.\n')
    const b = await bench(`hosts ${path} {\n reload 1s\n}`)
    writeFileSync(path, '10.0.0.2 a.example. b.example.\n')
    b.clock.advance(1000)
    expect(await b.ask('a.example.')).toEqual(['a.example. 3600 IN A 10.0.0.2'])
    expect(b.ctx.metrics.values.get(`coredns_hosts_entries{hostsfile="${path}"}`)).toBe(4)
    unlinkSync(path)
    b.clock.advance(5000)
    expect(await b.ask('a.example.')).toEqual(['a.example. 3600 IN A 10.0.0.2'])
    writeFileSync(path, '10.0.0.3 a.example.\n')
    utimesSync(path, 1000, 1000)
    b.clock.advance(1000)
    expect(await b.ask('a.example.')).toEqual(['a.example. 3600 IN A 10.0.0.3'])
    expect(b.ctx.metrics.values.get('coredns_hosts_reload_timestamp_seconds{}')).toBe(1000)
  })

  test('reload 0: is read once', async () => {
    const path = fileWith('10.0.0.1 a.example.\n')
    const b = await bench(`hosts ${path} {\n reload 0\n}`)
    writeFileSync(path, '10.0.0.22 a.example.\n')
    b.clock.advance(60_000)
    expect(await b.ask('a.example.')).toEqual(['a.example. 3600 IN A 10.0.0.1'])
  })

  test('10,000 lines come in parts and show all at once', async () => {
    const b = await bench(
      `hosts ${fileWith(Array.from({ length: 10_000 }, (_, i) => `10.1.${i >> 8}.${i & 255} n${i}.example.`).join('\n'))}`,
    )
    expect(await b.ask('n9999.example.')).toEqual(['n9999.example. 3600 IN A 10.1.39.15'])
  })
})

describe('options', () => {
  const none = fileWith('')

  test('inline entries come behind those of the file', async () => {
    const b = await bench(`hosts ${fileWith('10.0.0.1 a.example.')} {\n 10.0.0.2 a.example.\n ttl 60\n fallthrough\n}`)
    expect(await b.ask('a.example.')).toEqual(['a.example. 60 IN A 10.0.0.1', 'a.example. 60 IN A 10.0.0.2'])
    expect(await b.ask('other.example.')).toBe('next')
  })

  test('only names in the zones count, but reverse zones need not be among them', async () => {
    const b = await bench(`hosts ${none} example.org {\n 10.0.0.1 a.example.org a.example.net\n}`)
    expect(await b.ask('a.example.net.')).toBe('next')
    expect(await b.ask('1.0.0.10.in-addr.arpa.', 'PTR')).toEqual(['1.0.0.10.in-addr.arpa. 3600 IN PTR a.example.org.'])
  })

  test('no_reverse', async () => {
    const b = await bench(`hosts ${none} {\n 10.0.0.1 a.example.\n no_reverse\n}`)
    expect(await b.ask('1.0.0.10.in-addr.arpa.', 'PTR')).toBe('next')
  })

  test('fallthrough for some zones', async () => {
    const b = await bench(`hosts ${none} {\n 10.0.0.1 a.example.\n fallthrough example.net\n}`)
    expect(await b.ask('b.example.net.')).toBe('next')
    expect(await b.ask('b.example.')).toBe('rcode 2')
  })

  test('fallthrough_unsupported hands on types that hosts data has none of', async () => {
    const b = await bench(`hosts ${none} {\n 10.0.0.1 a.example.\n fallthrough\n fallthrough_unsupported\n}`)
    expect(await b.ask('a.example.', 'MX')).toBe('next')
    expect(await b.ask('a.example.', 'AAAA')).toEqual([])
  })

  test.each([
    ['hosts /etc/hosts example.org {\n fallthrough\n 10.0.0.1 example.org\n}', "unknown property '10.0.0.1'"],
    ['hosts {\n fallthrough_unsupported\n}', 'fallthrough_unsupported requires fallthrough'],
    ['hosts {\n fallthrough\n fallthrough_unsupported example.org\n}', 'Wrong argument count'],
    ['hosts {\n ttl\n}', 'ttl needs a time in second'],
    ['hosts {\n ttl x\n}', 'ttl needs a number of second'],
    ['hosts {\n ttl 0\n}', 'ttl provided is invalid'],
    ['hosts {\n reload\n}', 'reload needs a duration (zero seconds to disable)'],
    ['hosts {\n reload 5\n}', "invalid duration for reload '5'"],
    ['hosts {\n reload -5s\n}', "invalid negative duration for reload '-5s'"],
    ['hosts\nhosts', 'this plugin can only be used once per Server Block'],
  ])('%s is refused', (text, message) => {
    expect(() => module.setup(directives(text), fakeContext('hosts'))).toThrow(message)
  })

  test('a file that is missing is a warning at a start and a note in a check', () => {
    const started = fakeContext('hosts')
    module.setup(directives('hosts /no/such/file'), started)
    expect(started.log.lines).toEqual(['[WARNING] plugin/hosts: File does not exist: /no/such/file'])
    const checked = fakeContext('hosts', { checking: true })
    module.setup(directives('hosts /no/such/file'), checked)
    expect(checked.notes).toEqual(['File does not exist: /no/such/file'])
  })
})
