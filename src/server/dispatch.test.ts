import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { answering, ServingHarness } from '../../test/support/serving.js'
import { ask, opt, TcpClient, tcp, udp } from '../../test/support/wire.js'
import { Message, RCODE } from '../dns/index.js'
import { DROP, ServeError, type ServerReply } from '../plugins/contract.js'

const QUESTION = '076578616d706c65036f72670000010001'
let server: ServingHarness
let port: number
const reported: ServerReply[] = []

beforeAll(async () => {
  const echo = answering('echo', (query) => {
    switch (query.name.label(0)) {
      case 'drop':
        return DROP
      case 'refuse':
        throw new ServeError('not for you', RCODE.REFUSED)
      case 'fail':
        return Promise.reject(new Error('no luck'))
      case 'crash':
        throw new TypeError('x is not a function')
      case 'nothing':
        return undefined as never
      default:
        return query.reply('echo', 0, { additionals: [] })
    }
  })
  const counting = {
    name: 'counting',
    apiVersion: 1 as const,
    setup: (_: unknown, ctx: { onServerReply(fn: (reply: ServerReply) => void): void }) => {
      ctx.onServerReply((reply) => reported.push(reply))
      return null
    },
  }
  server = new ServingHarness({ counting, echo })
  port = await server.load('example.org:0 {\n counting\n echo\n}')
})
afterAll(() => server.stop())

/** What comes back for these octets, as hex. */
describe.each([
  ['UDP', udp],
  ['TCP', tcp],
])('by %s', (_, client) => {
  test.each([
    ['a query', `beef01000001000000000000${QUESTION}`, `beef85000001000000000000${QUESTION}`],
    ['no question counted', 'beef01000000000000000000', 'beef81010000000000000000'],
    ['a question counted, and nothing there', 'beef01000001000000000000', 'beef81020000000000000000'],
    ['two questions', `beef01000002000000000000${QUESTION}${QUESTION}`, 'beef81010000000000000000'],
    ['two answers counted', `beef01000001000200000000${QUESTION}`, 'beef81010000000000000000'],
    ['two authorities counted', `beef01000001000000020000${QUESTION}`, 'beef81010000000000000000'],
    ['three additional records counted', `beef01000001000000000003${QUESTION}`, 'beef81010000000000000000'],
    ['an additional record counted that is not there', `beef01000001000000000001${QUESTION}`, `beef85000001000000000000${QUESTION}`],
    ['octets behind the message', `beef01000001000000000000${QUESTION}deadbeef`, `beef85000001000000000000${QUESTION}`],
    ['a name cut short', 'beef010000010000000000000765786d', 'beef81010000000000000000'],
    ['a pointer to itself', 'beef01000001000000000000c00c00010001', 'beef81010000000000000000'],
    ['a label of a reserved type', 'beef0100000100000000000080610000010001', 'beef81010000000000000000'],
    ['OPT that runs past the end', `beef01000001000000000001${QUESTION}0000290200000000000010aa`, `beef81010001000000000000${QUESTION}`],
    [
      'a client subnet that is none',
      `beef01000001000000000001${QUESTION}0000290200000000000006000800020001`,
      `beef81010001000000000000${QUESTION}`,
    ],
    ['all flags of a query', `beef07b50001000000000000${QUESTION}`, `beef85100001000000000000${QUESTION}`],
    ['IQUERY', `beef09000001000000000000${QUESTION}`, 'beef89040000000000000000'],
    ['STATUS with flags', `beef17f00001000000000000${QUESTION}`, 'beef93b40000000000000000'],
    ['UPDATE', `beef28000001000000000000${QUESTION}`, 'beefa8040000000000000000'],
    ['NOTIFY', `beef21100001000000000000${QUESTION}`, `beefa4000001000000000000${QUESTION}`],
    [
      'class CH',
      'beef01000001000000000000076578616d706c65036f72670000010003',
      'beef81050001000000000000076578616d706c65036f72670000010003',
    ],
    ['a zone that nobody serves', 'beef01000001000000000000036f72670000010001', 'beef81050001000000000000036f72670000010001'],
    [
      'EDNS version 1',
      `beef01000001000000000001${QUESTION}0000291000000180000000`,
      `beef81000001000000000001${QUESTION}0000290000010000000000`,
    ],
    [
      'EDNS flags and options: DO, cookie and padding stay, the rest goes',
      `beef01000001000000000001${QUESTION}00002904d00000802a001e000a00080011223344556677fde90002abcd0008000400010000000c0000`,
      `beef85000001000000000001${QUESTION}00002904d0000080000010000a00080011223344556677000c0000`,
    ],
  ])('%s', async (_name, query, reply) => {
    expect((await client(port, Buffer.from(query, 'hex')))?.toString('hex')).toBe(reply)
  })
})

test.each([
  ['less than a header', 'beef0100000100'],
  ['a reply', `beef81800001000000000000${QUESTION}`],
  ['a reply with an unknown opcode', `beeff8000001000000000000${QUESTION}`],
])('%s gets no answer, and a connection lives on', async (_, octets) => {
  expect(await udp(port, Buffer.from(octets, 'hex'), '127.0.0.1', 50)).toBeUndefined()
  const client = await TcpClient.open(port)
  client.send(Buffer.from(octets, 'hex'), Buffer.alloc(0), ask('a.example.org.'))
  expect(Message.view((await client.until(1))[0]!).rcode).toBe(0)
  client.socket.destroy()
})

describe('what a chain does', () => {
  const rcodeOf = async (name: string) => Message.view((await udp(port, ask(name, 'A', { edns: opt() })))!).rcode

  test('an error is SERVFAIL, a ServeError its rcode', async () => {
    expect(await rcodeOf('fail.example.org.')).toBe(RCODE.SERVFAIL)
    expect(await rcodeOf('refuse.example.org.')).toBe(RCODE.REFUSED)
  })

  test('a fault in a plugin costs one answer, and is logged and counted', async () => {
    expect(await rcodeOf('crash.example.org.')).toBe(RCODE.SERVFAIL)
    expect(await rcodeOf('nothing.example.org.')).toBe(RCODE.SERVFAIL)
    expect(server.log.filter((line) => line.includes('Recovered from panic in server: "dns://:0"')).length).toBe(2)
    expect(server.metrics.values.get('coredns_panics_total{}')).toBe(2)
  })

  test('DROP is silence', async () => {
    expect(await udp(port, ask('drop.example.org.'), '127.0.0.1', 50)).toBeUndefined()
  })

  test('answers of the server itself are reported to those who count', async () => {
    reported.length = 0
    await udp(port, ask('other.', 'TXT', { edns: opt(1232, { dnssecOk: true }) }))
    await udp(port, ask('a.example.org.', 'AAAA'))
    expect(reported.map(({ type, dnssecOk, querySize, replySize, rcode }) => ({ type, dnssecOk, querySize, replySize, rcode }))).toEqual([
      { type: 16, dnssecOk: true, querySize: 34, replySize: 34, rcode: RCODE.REFUSED },
    ])
    expect(reported[0]?.arrival).toMatchObject({ server: 'dns://:0', proto: 'udp' })
  })
})
