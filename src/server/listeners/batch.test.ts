import dgram from 'node:dgram'
import { afterAll, describe, expect, test } from 'vitest'
import type { Logger } from '../../plugins/contract.js'
import { FakeMetrics } from '../../plugins/testing.js'
import { type Libc, loadLibc } from '../native/libc.js'
import { Loop } from '../native/loop.js'
import { Batches } from './batch.js'
import { Clients } from './batch-client.js'
import { BatchWatch } from './batch-watch.js'

const libc: Libc | undefined = await loadLibc().catch(() => undefined)
const loop = libc === undefined ? undefined : await Loop.make(libc)
const stopAttending = loop?.attend()
loop?.run()
afterAll(() => {
  stopAttending?.()
  loop?.stop()
})

const silentLog: Logger = { debug() {}, info() {}, warning() {}, error() {}, plain() {} }

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5))
}

describe.skipIf(libc === undefined)('batches', () => {
  test('replies of any size leave whole, in any order, to whom they are for', async () => {
    const batches = new Batches(libc!, loop!, true)
    const sizes = [1, 4096, 9000, 200, 30_000, 4097]
    const port = batches.open('127.0.0.1', 0, 'alone', (data, _length, origin) => {
      const size = sizes[data[0]!]!
      const room = origin.room(size)
      const out = room ?? Buffer.alloc(2 + size)
      out.fill(data[0]!, 2, 2 + size)
      origin.send(out, 2, size)
      origin.end()
    })
    const client = dgram.createSocket('udp4')
    const got: [number, number, boolean][] = []
    client.on('message', (data) => got.push([data[0]!, data.length, data.every((octet) => octet === data[0])]))
    for (let i = 0; i < sizes.length; i++) client.send(Buffer.from([i]), port.port, '127.0.0.1')
    await until(() => got.length === sizes.length)
    expect(got.sort(([a], [b]) => a - b)).toEqual(sizes.map((size, i) => [i, size, true]))
    client.close()
    port.close()
  })

  test('a query that is kept has its octets and its peer to itself', async () => {
    const batches = new Batches(libc!, loop!, true)
    const kept: (() => void)[] = []
    const port = batches.open('::1', 0, 'alone', (data, length, origin) => {
      origin.retain()
      kept.push(() => {
        const text = `${origin.peer.address}#${origin.peer.port} ${data.toString('latin1', 0, length)}`
        origin.send(Buffer.from(`..${text}`), 2, text.length)
        origin.end()
      })
    })
    const client = dgram.createSocket('udp6')
    const got: string[] = []
    client.on('message', (data) => got.push(String(data)))
    const count = 100
    for (let i = 0; i < count; i++) client.send(`query ${i} ${'x'.repeat(i * 3)}`, port.port, '::1')
    await until(() => kept.length === count)
    for (const answer of kept) answer()
    await until(() => got.length === count)
    const from = `::1#${client.address().port}`
    expect(got.sort()).toEqual(Array.from({ length: count }, (_, i) => `${from} query ${i} ${'x'.repeat(i * 3)}`).sort())
    client.close()
    port.close()
  })

  test('a query that is too long is not read, and counted', async () => {
    const batches = new Batches(libc!, loop!, true)
    const metrics = new FakeMetrics()
    new BatchWatch(batches, new Clients(libc!, loop!, true), metrics, silentLog)
    let heard = 0
    const port = batches.open('127.0.0.1', 0, 'alone', () => heard++)
    const client = dgram.createSocket('udp4')
    client.send(Buffer.alloc(5000), port.port, '127.0.0.1')
    await until(() => batches.tally.truncated === 1)
    await until(() => metrics.values.get('cairndns_udp_lost_total{reason="too_long"}') === 1)
    expect(heard).toBe(0)
    client.close()
    port.close()
  })
})
