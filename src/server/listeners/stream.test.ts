import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { answering, module, ServingHarness } from '../../../test/support/serving.js'
import { ask, frame, TcpClient } from '../../../test/support/wire.js'
import { Message, parseRecord } from '../../dns/index.js'

/** Answers of names that begin with "slow" wait here until they are let go. */
let waiting: (() => void)[] = []
let server: ServingHarness
const big = Array.from({ length: 3000 }, (_, i) => parseRecord(`big. 60 IN A 10.1.${i >> 8}.${i & 255}`))

const echo = answering('echo', (query) => {
  const reply = query.reply('echo', 0, { answers: query.name.label(0) === 'big' ? big : [] })
  if (!query.name.label(0).startsWith('slow')) return reply
  return new Promise((resolve) => waiting.push(() => resolve(reply)))
})
const quick = module('quick', (_uses, ctx) => {
  Object.assign(ctx.block.timeouts, { read: 300, write: 300, idle: 700 })
  return null
})
const two = module('two', (_uses, ctx) => {
  ctx.block.maxTcpQueries = 2
  return null
})

beforeEach(() => {
  waiting = []
  server = new ServingHarness({ quick, two, echo })
})
afterEach(() => server.stop())

const names = (replies: readonly Buffer[]): string[] => replies.map((reply) => String(Message.view(reply).question?.name))
const waits = async (count: number): Promise<void> => {
  while (waiting.length < count) await new Promise((resolve) => setImmediate(resolve))
}

describe('a connection', () => {
  test('carries many queries, answered as they are ready', async () => {
    const client = await TcpClient.open(await server.load('.:0 {\n echo\n}'))
    client.send(ask('slow1.'), ask('b.'), ask('slow2.'), ask('d.'))
    expect(names(await client.until(2))).toEqual(['b.', 'd.'])
    waiting[1]?.()
    expect(names(await client.until(3))[2]).toBe('slow2.')
    waiting[0]?.()
    expect(names(await client.until(4))[3]).toBe('slow1.')
    client.socket.destroy()
  })

  test('takes frames in pieces of any size', async () => {
    const client = await TcpClient.open(await server.load('.:0 {\n echo\n}'))
    const octets = Buffer.concat([frame(ask('a.')), frame(ask('b.')), frame(ask('c.'))])
    for (const octet of octets) {
      client.socket.write(Buffer.from([octet]))
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(names(await client.until(3))).toEqual(['a.', 'b.', 'c.'])
    client.socket.destroy()
  })

  test('answers what was asked before the client closed its side, then ends', async () => {
    const client = await TcpClient.open(await server.load('.:0 {\n echo\n}'))
    client.send(ask('slow.'), ask('b.'))
    client.socket.end()
    await client.until(1)
    await waits(1)
    waiting[0]?.()
    expect(names(await client.until(2))).toEqual(['b.', 'slow.'])
    await client.ended()
  })

  test('has no more than 128 queries waiting, and loses none', async () => {
    const client = await TcpClient.open(await server.load('.:0 {\n echo\n}'))
    client.send(...Array.from({ length: 300 }, (_, i) => ask(`slow${i}.`)))
    await waits(128)
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(waiting.length).toBe(128)
    for (let i = 0; i < 300; i++) {
      await waits(i + 1)
      waiting[i]?.()
    }
    expect((await client.until(300)).length).toBe(300)
    client.socket.destroy()
  })

  test('ends when the first query is not whole in time, however slowly octets drip', async () => {
    const client = await TcpClient.open(await server.load('.:0 {\n quick\n echo\n}'))
    const drip = setInterval(() => client.socket.write(Buffer.from([0])), 50)
    client.socket.write(Buffer.from([0xff]))
    await client.ended(2000)
    clearInterval(drip)
  })

  test('ends when idle, not while an answer is awaited', async () => {
    const client = await TcpClient.open(await server.load('.:0 {\n quick\n echo\n}'))
    client.send(ask('slow.'))
    await waits(1)
    await new Promise((resolve) => setTimeout(resolve, 1300))
    expect(client.closed).toBe(false)
    waiting[0]?.()
    await client.until(1)
    await client.ended(3000)
  })

  test('ends after the number of queries that is allowed', async () => {
    const client = await TcpClient.open(await server.load('.:0 {\n two\n echo\n}'))
    client.send(ask('a.'), ask('slow.'), ask('c.'))
    await waits(1)
    waiting[0]?.()
    await client.until(2)
    await client.ended()
    expect(names(client.replies)).toEqual(['a.', 'slow.'])
  })

  test('is cut off when the client does not read, having held little', async () => {
    const client = await TcpClient.open(await server.load('.:0 {\n quick\n echo\n}'))
    client.socket.pause()
    const before = process.memoryUsage().rss
    for (let i = 0; i < 20; i++) client.send(...Array.from({ length: 100 }, () => ask('big.')))
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect(process.memoryUsage().rss - before).toBeLessThan(64 << 20)
    client.socket.resume()
    await client.ended(3000)
    expect(client.replies.length).toBeLessThan(2000)
  })
})
