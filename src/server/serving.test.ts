import { afterEach, describe, expect, test } from 'vitest'
import { answering, module, portOf, ServingHarness } from '../../test/support/serving.js'
import { ask, tcp, udp } from '../../test/support/wire.js'
import { Message, parseRecord, RCODE } from '../dns/index.js'

const text = (value: string) =>
  answering(value, (query) => query.reply(value, 0, { answers: [parseRecord(`${query.name} 60 IN TXT "${value}"`)] }))
const harnesses: ServingHarness[] = []
const serve = (...args: ConstructorParameters<typeof ServingHarness>): ServingHarness => {
  const harness = new ServingHarness(...args)
  harnesses.push(harness)
  return harness
}
afterEach(async () => {
  for (const harness of harnesses.splice(0)) await harness.stop()
})

describe('a server', () => {
  test('answers by UDP and TCP, IPv4 and IPv6, from the address that was asked', async () => {
    const server = serve({ one: text('one') })
    const port = await server.load('.:0 {\n one\n}')
    for (const host of ['127.0.0.1', '127.0.0.2', '::1']) {
      for (const client of [udp, tcp]) {
        const reply = Message.view((await client(port, ask('www.example.org.', 'TXT'), host))!)
        expect(reply.rcode).toBe(0)
        expect(reply.id).toBe(4711)
        expect(String(reply.answers[0]?.name)).toBe('www.example.org.')
      }
    }
  })

  test('refuses a bad Corefile and serves on', async () => {
    const server = serve({ one: text('one'), two: text('two') })
    const port = await server.load('.:0 {\n one\n}')
    await expect(server.prepare('.:0 {\n tow\n}')).rejects.toThrow("Unknown directive 'tow' (column 2; did you mean 'two'?)")
    expect(Message.view((await udp(port, ask('a.', 'TXT')))!).answers.length).toBe(1)
  })
})

describe('start', () => {
  test('tells what is served', async () => {
    const server = serve({ one: text('one') })
    const lines = await server.prepare('b.test:0 a.test:0 {\n one\n}\n_x.test:0 {\n one\n}')
    expect(lines.map((line) => line.replace(/\d+$/, 'N'))).toEqual([
      'Warning: Domain "_x.test." does not follow RFC1035 preferred syntax',
      '_x.test.:N',
      'a.test.:N',
      'b.test.:N',
    ])
    await server.abort()
  })

  test('says which address is in use', async () => {
    const first = serve({ one: text('one') })
    const port = await first.load('.:0 {\n one\n}')
    const second = serve({ one: text('one') })
    await expect(second.prepare(`.:${port} {\n one\n}`)).rejects.toThrow(`listen tcp :${port}: bind: address already in use`)
  })
})

describe('routing', () => {
  test('takes the longest zone, refuses what no block covers, and a block without plugins', async () => {
    const server = serve({ one: text('one'), two: text('two') })
    const port = await server.load('example.org:0 {\n one\n}\nsub.example.org:0 {\n two\n}\nempty.example.org:0 {\n}')
    const by = async (name: string) => {
      const reply = Message.view((await udp(port, ask(name, 'TXT')))!)
      const data = reply.answers[0]?.data
      return reply.rcode === RCODE.REFUSED ? 'refused' : data?.kind === 'TXT' && String(data.strings[0])
    }
    expect(await by('example.org.')).toBe('one')
    expect(await by('X.Sub.Example.org.')).toBe('two')
    expect(await by('notsub.example.org.')).toBe('one')
    expect(await by('example.com.')).toBe('refused')
    expect(await by('a.empty.example.org.')).toBe('refused')
  })
})

test('plugins start in order of the table and shut down when their generation ends', async () => {
  const events: string[] = []
  const noting = (name: string) =>
    module(name, () => ({ name, onStartup: () => void events.push(`+${name}`), onShutdown: (why) => void events.push(`-${name} ${why}`) }))
  const server = serve({ a: noting('a'), b: noting('b'), one: text('one') })
  const lines = await server.prepare('.:0 {\n b\n one\n}\nx.:0 {\n a\n}')
  expect(portOf(lines[0]!)).toBeGreaterThan(0)
  await server.abort()
  expect(events).toEqual(['+a', '+b', '-a reload', '-b reload'])
})
