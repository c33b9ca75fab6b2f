import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import { formatRecord, Message, Name, OPCODE, parseRecord, type RR, rcodeName, TYPE } from '../../dns/index.js'
import { isMessage, type MessageStream, type Plugin, type Reply } from '../contract.js'
import { directives, type FakeContext, fakeBlock, fakeContext, lastHandler, type QueryOptions, query } from '../testing.js'
import type { TransferPlugin } from './handler.js'
import module from './index.js'
import { notifyAll } from './notify.js'

const SOA = parseRecord('example.org. 3600 IN SOA ns.example.org. host.example.org. 7 7200 1800 86400 30')
const small = (count: number): RR[] => Array.from({ length: count }, (_, i) => parseRecord(`n${i}.example.org. 60 IN A 192.0.2.${i % 256}`))

/** A plugin with one zone. */
function zone(name: string, records: readonly RR[], serial = 7): Plugin & { asked: number[] } {
  const asked: number[] = []
  return {
    name: 'file',
    asked,
    transfer(wanted, has) {
      if (wanted.key !== Name.parse(name).key) return undefined
      asked.push(has)
      return has === serial ? [SOA] : [SOA, ...records, SOA]
    },
  }
}

function setUp(text: string, siblings: readonly Plugin[] = [], zones = ['example.org.']): { plugin: TransferPlugin; ctx: FakeContext } {
  const ctx = fakeContext('transfer', { siblings, block: fakeBlock(zones) })
  return { plugin: module.setup(directives(text), ctx) as TransferPlugin, ctx }
}

const refuse = lastHandler((q) => q.reply('last', 5))

async function ask(plugin: TransferPlugin, name: string, type: string, options: QueryOptions = {}): Promise<Reply> {
  return plugin.serveDNS(query(name, type, { proto: 'tcp', address: '127.0.0.1', ...options }), refuse.next)
}

async function messages(reply: Reply): Promise<Message[]> {
  const all: Message[] = []
  for await (const message of (reply as MessageStream).stream) all.push(message)
  return all
}

function ixfr(serial: number | undefined): ReturnType<typeof query> {
  const plain = query('example.org.', 'IXFR', { proto: 'tcp', address: '127.0.0.1' })
  if (serial === undefined) return plain
  const soa = parseRecord(`example.org. 0 IN SOA a. b. ${serial} 1 1 1 1`)
  return plain.carrying(Message.view(plain.message.with({ authorities: [soa] }).toBuffer()))
}

describe('set-up', () => {
  it.each([
    ['transfer example.net example.org {\n to 1.2.3.4 5.6.7.8:1053 [1::2]:34 [fe80::1%eth0]:53\n source 2001:db8::53\n}'],
    ['transfer {\n to 1.2.3.4\n to *\n}'],
  ])('takes %j', (text) => {
    expect(() => setUp(text)).not.toThrow()
  })

  it.each([
    ['transfer', "'to' is required"],
    ['transfer example.org {\n}', "'to' is required"],
    ['transfer {\n to\n}', "Wrong argument count or unexpected line ending after 'to'"],
    ['transfer {\n too *\n}', 'unknown property "too"'],
    ['transfer {\n to example.com\n}', "must specify an IP address: `example.com'"],
    ['transfer {\n to *\n source example.org\n}', 'invalid source address "example.org"'],
    ['transfer {\n to *\n source ::1\n source ::1\n}', 'source already specified'],
    ['transfer {\n to *\n source\n}', "Wrong argument count or unexpected line ending after 'source'"],
  ])('refuses %j', (text, message) => {
    expect(() => setUp(text)).toThrow(message)
  })
})

describe('AXFR', () => {
  it('begins and ends with the SOA, authoritative, with the records in between', async () => {
    const { plugin, ctx } = setUp('transfer {\n to *\n}', [zone('example.org.', small(3))])
    const all = await messages(await ask(plugin, 'EXAMPLE.org.', 'AXFR'))
    expect(all).toHaveLength(1)
    expect(all[0]?.aa).toBe(true)
    expect(all[0]?.by).toBe('transfer')
    expect(all[0]?.answers.map((rr) => rr.type)).toEqual([TYPE.SOA, TYPE.A, TYPE.A, TYPE.A, TYPE.SOA])
    expect(ctx.log.lines).toEqual([
      '[INFO] plugin/transfer: Outgoing transfer of 5 records of zone "example.org." to 127.0.0.1 for 7 SOA serial',
    ])
  })

  it('is cut by size into messages of at most 65,535 octets, nothing lost', async () => {
    const text = 'x'.repeat(250)
    const big = Array.from({ length: 240 }, (_, i) => parseRecord(`big.example.org. 60 IN TXT "${i} ${text}"`))
    const { plugin } = setUp('transfer {\n to *\n}', [zone('example.org.', [...big, ...small(20_000)])])
    const all = await messages(await ask(plugin, 'example.org.', 'AXFR'))
    const sizes = all.map((message) => message.toBuffer().length)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(65_535)
    expect(all.length).toBeGreaterThan(5)
    expect(all.flatMap((message) => Message.view(message.toBuffer()).answers)).toHaveLength(20_242)
    expect(all.every((message) => !message.tc)).toBe(true)
  })

  it('is refused by UDP, left unwritten', async () => {
    const { plugin } = setUp('transfer {\n to *\n}', [zone('example.org.', [])])
    const reply = (await ask(plugin, 'example.org.', 'AXFR', { proto: 'udp' })) as Message
    expect([reply.rcode, reply.by, reply.aa]).toEqual([5, '', false])
  })

  it('goes on down the chain where no sibling has a zone of that name, or no rule covers it', async () => {
    const { plugin } = setUp('transfer {\n to *\n}', [zone('example.org.', [])])
    for (const name of ['www.example.org.', 'example.net.']) expect(((await ask(plugin, name, 'AXFR')) as Message).by).toBe('last')
    expect(((await ask(plugin, 'example.org.', 'SOA')) as Message).by).toBe('last')
  })

  it('stops enumerating when the client goes away', async () => {
    let ended = false
    const endless: Plugin = {
      name: 'file',
      *transfer() {
        try {
          for (;;) yield SOA
        } finally {
          ended = true
        }
      },
    }
    const { plugin } = setUp('transfer {\n to *\n}', [endless])
    for await (const _ of ((await ask(plugin, 'example.org.', 'AXFR')) as MessageStream).stream) break
    expect(ended).toBe(true)
  })
})

describe('who may', () => {
  it.each([
    ['to 127.0.0.1', '127.0.0.1', 'NOERROR'],
    ['to 127.0.0.1', '127.0.0.2', 'REFUSED'],
    ['to 2001:DB8:0::1', '2001:db8::1', 'NOERROR'],
    ['to [2001:db8::1]:5300', '2001:db8::1', 'NOERROR'],
    ['to 127.0.0.1 *', '10.0.0.1', 'NOERROR'],
  ])('%s for %s: %s', async (to, address, outcome) => {
    const { plugin } = setUp(`transfer {\n ${to}\n}`, [zone('example.org.', [])])
    const reply = await ask(plugin, 'example.org.', 'AXFR', { address })
    expect(isMessage(reply) ? rcodeName(reply.rcode) : 'NOERROR').toBe(outcome)
  })

  it('is decided by the longest zone that matches', async () => {
    const text = 'transfer example.org {\n to 127.0.0.9\n}\ntransfer sub.example.org {\n to *\n}'
    const { plugin } = setUp(text, [zone('example.org.', []), zone('sub.example.org.', [])], ['.'])
    expect(isMessage(await ask(plugin, 'sub.example.org.', 'AXFR'))).toBe(false)
    expect(((await ask(plugin, 'example.org.', 'AXFR')) as Message).rcode).toBe(5)
  })
})

describe('IXFR', () => {
  const { plugin, ctx } = setUp('transfer {\n to *\n}', [zone('example.org.', small(2))])
  it('is one SOA for a client that is up to date', async () => {
    const reply = (await plugin.serveDNS(ixfr(7), refuse.next)) as Message
    expect(reply.answers.map(formatRecord)).toEqual([formatRecord(SOA)])
    expect(ctx.log.lines.at(-1)).toContain('Outgoing noop, incremental transfer for up to date zone "example.org." to 127.0.0.1')
  })
  it('is a whole transfer for any other serial', async () => {
    const all = await messages(await plugin.serveDNS(ixfr(6), refuse.next))
    expect(all.flatMap((message) => message.answers)).toHaveLength(4)
  })
  it('without an SOA is SERVFAIL', async () => {
    const reply = (await plugin.serveDNS(ixfr(undefined), refuse.next)) as Message
    expect([reply.rcode, reply.by]).toEqual([2, ''])
  })
})

describe('NOTIFY', () => {
  const sockets: Socket[] = []
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.close()
  })
  /** A secondary that answers with these rcodes, one after the other; the last repeats. */
  async function secondary(...rcodes: number[]): Promise<{ port: number; heard: { message: Message; from: string }[] }> {
    const heard: { message: Message; from: string }[] = []
    const socket = createSocket('udp4')
    sockets.push(socket)
    socket.on('message', (octets, from) => {
      const message = Message.view(octets)
      heard.push({ message, from: from.address })
      const rcode = rcodes[Math.min(heard.length, rcodes.length) - 1] ?? 0
      socket.send(Message.reply(message, rcode).toBuffer(), from.port, from.address)
    })
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    return { port: socket.address().port, heard }
  }

  it('reaches every secondary but *, from the source address', async () => {
    const [one, two] = [await secondary(0), await secondary(2, 0)]
    const { plugin } = setUp(`transfer {\n to 127.0.0.1:${one.port} 127.0.0.1:${two.port} *\n source 127.0.0.5\n}`)
    await plugin.notify(Name.parse('example.org.'))
    expect(one.heard).toHaveLength(1)
    expect(one.heard[0]?.from).toBe('127.0.0.5')
    expect(one.heard[0]?.message.opcode).toBe(OPCODE.NOTIFY)
    expect(one.heard[0]?.message.aa).toBe(true)
    expect(two.heard).toHaveLength(2)
    await plugin.notify(Name.parse('example.net.'))
    expect(one.heard).toHaveLength(1)
  })

  it('names who did not take it, after three attempts', async () => {
    const { port, heard } = await secondary(4)
    const { plugin } = setUp(`transfer {\n to 127.0.0.1:${port}\n}`)
    await expect(plugin.notify(Name.parse('example.org.'))).rejects.toThrow(
      `notify for zone "example.org." was not accepted by "127.0.0.1:${port}": rcode was "NOTIMP"`,
    )
    expect(heard).toHaveLength(3)
  })

  it('gives up on one that is silent', async () => {
    const socket = createSocket('udp4')
    sockets.push(socket)
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    const host = { text: 'it', host: '127.0.0.1', port: socket.address().port, octets: '' }
    await expect(notifyAll(Name.parse('example.org.'), [host], undefined, 20)).rejects.toThrow('"it": "i/o timeout"')
  })
})
