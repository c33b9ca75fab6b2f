/**
 * What a forwarded question costs, in octets of heap, as for answers of our own in allocations.test.ts: errors, prometheus and forward, with
 * an upstream that answers in the same turn and no sockets.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, expect, test } from 'vitest'
import { Message, Name, parseRecord } from '../../src/dns/index.js'
import type { ConnectDatagram } from '../../src/plugins/contract.js'
import { type HandedServer, handedServer } from '../support/handed.js'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const BATCH = 200
const QUERY = Message.query(Name.parse('www-00000.example.org.'), 1, {
  id: 1,
  edns: { size: 1232, extendedRcode: 0, version: 0, dnssecOk: false, z: 0, options: [] },
}).toBuffer()
/** Digits of the name in the query. */
const DIGITS = 12 + 5

/** What came to the upstream, as octets that it turns into replies where they lie. */
const asked = Buffer.alloc(BATCH * 512)
const askers: ((data: Buffer, length: number) => void)[] = []
const slots = Array.from({ length: BATCH }, (_, i) => asked.subarray(i * 512, (i + 1) * 512))
const record = Message.reply(Message.query(Name.parse('a.'), 1))
  .with({ answers: [parseRecord('a. 60 IN A 192.0.2.1')] })
  .toBuffer()
  .subarray(-16)

const connect: ConnectDatagram = ({ onMessage }) => ({
  local: '127.0.0.1:4242',
  room: () => undefined,
  send: (data, offset, length) => {
    const slot = slots[askers.length]!
    data.copy(slot, 0, offset, offset + length)
    askers.push(onMessage)
  },
  close: () => undefined,
})

function answer(): void {
  const question = QUERY.length - 11
  for (let i = 0; i < askers.length; i++) {
    const slot = slots[i]!
    slot.writeUInt16BE(0x8180, 2)
    slot.writeUInt32BE(0x0001_0000, 6)
    slot.writeUInt16BE(0, 10)
    record.copy(slot, question)
    askers[i]!(slot, question + record.length)
    slot.fill(0xa5)
  }
  askers.length = 0
}

let server: HandedServer
afterEach(() => server.close())

async function octetsPerMiss(corefile: string): Promise<number> {
  server = await handedServer(corefile, {}, { connectDatagram: connect })
  const queries = Array.from({ length: BATCH }, () => Buffer.from(QUERY))
  let number = 0
  const turn = async (): Promise<void> => {
    for (const query of queries) {
      query.write(String(number++ % 100_000).padStart(5, '0'), DIGITS, 'latin1')
      server.hand(query, query.length)
    }
    answer()
    for (let i = 0; i < 12; i++) await null
  }
  for (let i = 0; i < 100; i++) await turn()
  let least = Number.POSITIVE_INFINITY
  for (let i = 0; i < 20; i++) {
    collect()
    const before = process.memoryUsage().heapUsed
    await turn()
    least = Math.min(least, (process.memoryUsage().heapUsed - before) / BATCH)
  }
  expect(server.replies).toBe(120 * BATCH)
  const reply = Message.view(server.sent.subarray(0, server.sentLength))
  expect([reply.rcode, reply.answers.length, reply.edns?.size]).toEqual([0, 1, 1232])
  return least
}

test.each([
  ['a forwarded question', '.:0 {\n errors\n prometheus 127.0.0.1:0\n forward . 127.0.0.1:1\n}', 3200],
  [
    'a forwarded question whose answer is kept',
    '.:0 {\n errors\n prometheus 127.0.0.1:0\n cache\n forward . 127.0.0.1:1\n loadbalance\n}',
    6000,
  ],
])('%s', async (_, corefile, most) => {
  const octets = await octetsPerMiss(corefile)
  expect(octets).toBeLessThan(most)
})
