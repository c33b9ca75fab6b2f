import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { answering, module, portOf, ServingHarness } from '../../test/support/serving.js'
import { ask, TcpClient, tcp, udp } from '../../test/support/wire.js'
import { Message, parseRecord } from '../dns/index.js'
import type { Replica } from '../plugins/contract.js'

let server: ServingHarness
let waiting: (() => void)[] = []
let events: string[] = []
const taken: unknown[] = []

/** `tag WORD` answers TXT "WORD"; names that begin with "slow" wait. Its shared value and its end are written down. */
const tag = module('tag', (uses, ctx) => {
  const word = uses[0]!.args[0]!.text
  const shared = ctx.shared(
    'value',
    () => ({ made: events.push('made') }),
    () => void events.push('disposed'),
  )
  return {
    name: 'tag',
    onShutdown: (why) => void events.push(`${word} ended: ${why}`),
    serveDNS(query) {
      const reply = query.reply('tag', 0, { answers: [parseRecord(`a. 1 IN TXT "${word}" "${shared.made}"`)] })
      if (!query.name.label(0).startsWith('slow')) return reply
      return new Promise((resolve) => waiting.push(() => resolve(reply)))
    },
  }
})
const bad = module('bad', { onStartup: () => Promise.reject(new Error('plugin/bad: cannot begin')) })
const bind = module('bind', (uses, ctx) => {
  ctx.block.bind = uses[0]!.args.map(({ text }) => text)
  return null
})
const follow = module('follow', (_uses, ctx) => {
  const replica: Replica<number> = {
    begin: () => void taken.push('begin'),
    apply: (part) => void taken.push(...part),
    swap: () => void taken.push('swap'),
  }
  ctx.replica('numbers', replica)
  return null
})
const inner = answering('inner', (query) => query.reply('inner', 0, { answers: [parseRecord('inner. 1 IN TXT "inner"')] }))
const outer = module('outer', (_uses, ctx) => ({
  name: 'outer',
  serveDNS: (query) => ctx.resolve(query.derive(parseRecord('x.inner. 1 IN TXT "x"').name)) ?? query.reply('outer', 5),
}))

beforeEach(() => {
  waiting = []
  events = []
  taken.length = 0
  server = new ServingHarness({ bind, follow, bad, tag, inner, outer })
})
afterEach(() => server.stop())

const word = (reply: Buffer | undefined): string => {
  const data = reply && Message.view(reply).answers[0]?.data
  return data?.kind === 'TXT' ? String(data.strings[0]) : `rcode ${reply && Message.view(reply).rcode}`
}

describe('a reload', () => {
  test('changes over without losing a query, while many are asked', async () => {
    let port = await server.load('.:0 {\n tag w0\n}')
    const client = await TcpClient.open(port)
    let going = true
    let asked = 0
    const seen = new Set<string>()
    const asking = Array.from({ length: 4 }, async () => {
      while (going) {
        asked++
        seen.add(word(await udp(port, ask('a.', 'TXT'))))
      }
    })
    for (let i = 1; i <= 30; i++) {
      client.send(ask('b.', 'TXT'))
      for (const before = asked; asked < before + 8; ) await new Promise((resolve) => setImmediate(resolve))
      port = await server.load(`.:0 {\n tag w${i}\n}`)
      if (i % 3 === 0) await expect(server.prepare('.:0 {\n bad\n tag x\n}')).rejects.toThrow('plugin/bad: cannot begin')
    }
    going = false
    await Promise.all(asking)
    expect((await client.until(30)).length).toBe(30)
    expect(asked).toBeGreaterThan(30)
    expect([...seen].every((value) => /^w\d+$/.test(value))).toBe(true)
    client.socket.destroy()
  })

  test('lets queries of the old configuration finish with it, then ends its plugins', async () => {
    const port = await server.load('.:0 {\n tag old\n}')
    const slow = udp(port, ask('slow.', 'TXT'), '127.0.0.1', 3000)
    while (waiting.length === 0) await new Promise((resolve) => setImmediate(resolve))
    await server.load('.:0 {\n tag new\n}')
    expect(word(await udp(port, ask('a.', 'TXT')))).toBe('new')
    expect(events).toEqual(['made'])
    const retired = server.next('retired')
    waiting[0]?.()
    expect(word(await slow)).toBe('old')
    await retired
    expect(events).toEqual(['made', 'old ended: reload'])
  })

  test('that fails leaves everything as it was, also the shared values', async () => {
    const port = await server.load('.:0 {\n tag one\n}')
    await expect(server.prepare('.:0 {\n tag two\n bad\n}')).rejects.toThrow('plugin/bad: cannot begin')
    expect(word(await udp(port, ask('a.', 'TXT')))).toBe('one')
    expect(events).not.toContain('disposed')
  })

  test('that is called off closes what it had opened', async () => {
    await server.load('.:0 {\n tag one\n}')
    const lines = await server.prepare('.:0 {\n tag one\n}\nx.:0 {\n bind 127.0.0.1\n tag two\n}')
    const port = portOf(lines[1]!)
    expect(word(await tcp(port, ask('a.x.', 'TXT')))).toBe('two')
    await server.abort()
    await expect(tcp(port, ask('a.x.', 'TXT'))).rejects.toThrow('ECONNREFUSED')
    expect(await udp(port, ask('a.x.', 'TXT'), '127.0.0.1', 50)).toBeUndefined()
  })

  test('from the wildcard to one address of the same port, and back', async () => {
    const port = await server.load('.:0 {\n tag one\n}')
    await server.load(`.:${port} {\n bind 127.0.0.1\n tag two\n}`)
    for (const client of [udp, tcp]) expect(word(await client(port, ask('a.', 'TXT')))).toBe('two')
    expect(await udp(port, ask('a.', 'TXT'), '127.0.0.2', 50)).toBeUndefined()
    await server.load(`.:${port} {\n tag three\n}`)
    for (const host of ['127.0.0.1', '127.0.0.2', '::1'])
      for (const client of [udp, tcp]) expect(word(await client(port, ask('a.', 'TXT'), host))).toBe('three')
  })
})

test('a block on one address goes before the wildcard of its port', async () => {
  const port = await server.load('.:0 {\n tag one\n}')
  await server.load(`a.:${port} {\n tag any\n}\nb.:${port} {\n bind 127.0.0.2\n tag own\n}`)
  for (const client of [udp, tcp]) {
    expect(word(await client(port, ask('b.', 'TXT'), '127.0.0.2'))).toBe('own')
    expect(word(await client(port, ask('b.', 'TXT'), '127.0.0.1'))).toBe('rcode 5')
    expect(word(await client(port, ask('a.', 'TXT'), '127.0.0.1'))).toBe('any')
  }
})

test.each([
  ['a.:5301 {\n tag x\n}\na.:5301 {\n tag y\n}', 'cannot serve dns://a.:5301 - it is already defined'],
  [
    'a.:5301 {\n tag x\n}\na.:5301 {\n bind 127.0.0.1\n tag y\n}',
    'cannot serve dns://a.:5301 on 127.0.0.1 - zone overlap listener capacity with dns://a.:5301',
  ],
  [
    'a.:5301 {\n bind 127.0.0.1\n tag x\n}\na.:5301 {\n tag y\n}',
    'cannot serve dns://a.:5301 - zone overlap listener capacity with dns://a.:5301 on 127.0.0.1',
  ],
  ['grpc://a.:5301 {\n tag x\n}', "transport 'grpc' is known, not built yet"],
  ['dns://a.:5301 tls://a.:5301 {\n tag x\n}', 'address already in use (dns://:5301 and tls://:5301 share it)'],
])('%j is refused', async (corefile, message) => {
  await expect(server.prepare(corefile)).rejects.toThrow(message)
})

test('a plugin asks by the router, from any block', async () => {
  const port = await server.load('outer.:0 {\n outer\n}\ninner.:0 {\n inner\n}')
  expect(word(await udp(port, ask('a.outer.', 'TXT')))).toBe('inner')
})

test('a gap in what a source sends makes the replica ask anew', async () => {
  await server.load('.:0 {\n follow\n tag x\n}')
  const subscriptions = () => server.received.filter(({ kind }) => kind === 'subscribe').length
  const source = (number: number, op: 'begin' | 'apply' | 'swap', part: unknown[] = []) =>
    server.post({ kind: 'source', key: 'numbers', number, op, part })
  source(1, 'apply', [0])
  source(5, 'begin')
  source(6, 'apply', [1, 2])
  source(7, 'swap')
  source(8, 'apply', [3])
  expect(taken).toEqual(['begin', 1, 2, 'swap', 3])
  expect(subscriptions()).toBe(1)
  source(10, 'apply', [5])
  source(11, 'apply', [6])
  expect(subscriptions()).toBe(2)
  source(20, 'begin')
  source(21, 'swap')
  expect(taken).toEqual(['begin', 1, 2, 'swap', 3, 'begin', 'swap'])
  await server.load('.:0 {\n follow\n tag y\n}')
  expect(subscriptions()).toBe(2)
  const gone = server.next('unsubscribe')
  await server.load('.:0 {\n tag z\n}')
  expect((await gone).key).toBe('numbers')
})
