/**
 * Answers that the server gives again without asking the chain: to clients and to those who count they must be the very answers that the
 * chain would have given. Two servers get the same datagrams; in the front of one of them stands a plugin that lets no answer stand.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { formatRecord, layoutOf, Message, Name, parseRecord, scanMessage, TYPE } from '../../src/dns/index.js'
import { realClock } from '../../src/plugins/clock.js'
import { AS_GIVEN, type Clock, type PluginModule, UNTOUCHED } from '../../src/plugins/contract.js'
import { type HandedServer, handedServer } from '../support/handed.js'
import { randomFrom } from '../support/random.js'

const folder = mkdtempSync(path.join(tmpdir(), 'cairndns-standing-'))
afterAll(() => rmSync(folder, { recursive: true }))

const object = (kind: string, name: string, more: object): object => ({
  apiVersion: kind === 'EndpointSlice' ? 'discovery.k8s.io/v1' : 'v1',
  kind,
  metadata: { name, namespace: 'prod', ...(kind === 'EndpointSlice' ? { labels: { 'kubernetes.io/service-name': 'wide' } } : {}) },
  ...more,
})
const ports = [{ name: 'http', port: 80, protocol: 'TCP' }]
const service = (name: string, clusterIP: string): object => object('Service', name, { spec: { type: 'ClusterIP', clusterIP, ports } })
const writeCluster = (address: string): void =>
  writeFileSync(
    path.join(folder, 'cluster.json'),
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'List',
      items: [
        { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'prod' } },
        service('web', address),
        service('db', '10.0.0.2'),
        service('wide', 'None'),
        object('EndpointSlice', 'wide-1', {
          addressType: 'IPv4',
          ports,
          endpoints: ['10.1.0.1', '10.1.0.2', '10.1.0.3'].map((one) => ({ addresses: [one], conditions: { ready: true } })),
        }),
      ],
    }),
  )
writeCluster('10.0.0.1')

const corefile = (options = '', more = ''): string => `.:0 {
  front
  errors
  nsid
  bufsize 1232
  prometheus 127.0.0.1:0
  any
  chaos
  loadbalance
  cloud_ndots cluster.local {
    domains github.example
  }
  cache 30 {
    success 1000 30
    ${options}
  }
  transfer {
    to *
  }
  hosts {
    192.0.2.200 host.example.org
    fallthrough
  }
  kubernetes cluster.local in-addr.arpa {
    manifests ${folder}
    fallthrough in-addr.arpa
  }
  loop
  forward . 127.0.0.1:1
  reload
  ${more}
}`

/** Time as the test has it. */
class Time implements Clock {
  ms = 1_000_000
  now(): number {
    return 1_700_000_000_000 + this.ms
  }
  monotonic(): number {
    return this.ms
  }
  recent(): number {
    return this.ms
  }
  timer = realClock.timer
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

interface Rig {
  readonly server: HandedServer
  /** How often the chain was asked. */
  readonly chain: () => number
  /** How often the upstream was. */
  readonly upstream: () => number
}

async function rig(time: Time, stands: boolean, text: string): Promise<Rig> {
  let chain = 0
  let upstream = 0
  const front: PluginModule = {
    name: 'front',
    apiVersion: 1,
    setup: () => ({
      name: 'front',
      serveDNS(q, next) {
        chain++
        return next(q)
      },
      ...(stands ? { stands: () => UNTOUCHED } : {}),
    }),
  }
  const forward: PluginModule = {
    name: 'forward',
    apiVersion: 1,
    setup: () => ({
      name: 'forward',
      serveDNS: async (q) => {
        upstream++
        await null
        const lines = q.name.key.startsWith('\x04none') ? [] : q.type === TYPE.A ? ['3600 IN A 192.0.2.1'] : ['50 IN AAAA 2001:db8::1']
        if (q.name.key.startsWith('\x03two')) lines.push('40 IN A 192.0.2.2')
        const answers = lines.map((line) => parseRecord(`${q.name} ${line}`))
        const authorities = lines.length > 0 ? [] : [parseRecord('example.org. 30 IN SOA ns. host. 1 2 3 4 20')]
        const reply = q.reply('forward', lines.length > 0 ? 0 : 3, { answers, authorities, aa: false })
        return Message.view(reply.with({ ra: true, ad: q.authentic }).toBuffer())
      },
    }),
  }
  const server = await handedServer(text, { front, forward }, {}, time)
  return { server, chain: () => chain, upstream: () => upstream }
}

async function hand({ server }: Rig, octets: Buffer): Promise<Buffer> {
  const before = server.replies
  const slot = Buffer.concat([octets, Buffer.alloc(64)])
  server.hand(slot, octets.length)
  // What is refreshed behind the answer is done as well by then.
  for (let i = 0; i < 4; i++) await turn()
  return server.replies === before ? Buffer.alloc(0) : Buffer.from(server.sent.subarray(0, server.sentLength))
}

/** A reply with the addresses in order: which comes first is chance. */
function ordered(octets: Buffer): unknown {
  if (octets.length < 12) return octets.toString('hex')
  const message = Message.view(octets)
  if (message.answers.length < 2) return octets.toString('hex')
  const { answers, authorities, additionals, edns, question } = message
  const sections = [answers, authorities, additionals].map((records) => records.map(formatRecord).sort())
  return [octets.subarray(0, 12).toString('hex'), question?.name.toString(), ...sections, edns]
}

const query = (name: string, type: number = TYPE.A, flags = 0x100, opt: Buffer = Buffer.alloc(0)): Buffer => {
  const message = Message.query(Name.parse(name), type, { id: 7, flags }).toBuffer()
  if (opt.length > 0) message[11] = 1
  return Buffer.concat([message, opt])
}
const opt = (size = 1232, flags = 0, version = 0, options = ''): Buffer => {
  const data = Buffer.from(options, 'hex')
  return Buffer.concat([Buffer.from([0, 0, 41, size >> 8, size & 255, 0, version, flags >> 8, flags & 255, 0, data.length]), data])
}

const NAMES = [
  'web.prod.svc.cluster.local.',
  'db.prod.svc.cluster.local.',
  'wide.prod.svc.cluster.local.',
  '_http._tcp.web.prod.svc.cluster.local.',
  'gone.prod.svc.cluster.local.',
  'cluster.local.',
  '1.0.0.10.in-addr.arpa.',
  'www.example.org.',
  'two.example.org.',
  'none.example.org.',
  'host.example.org.',
  'api.github.example.prod.svc.cluster.local.',
]
const TYPES = [TYPE.A, TYPE.A, TYPE.A, TYPE.AAAA, TYPE.SRV, TYPE.PTR, TYPE.ANY, TYPE.HINFO]
const OPTS = [
  Buffer.alloc(0),
  Buffer.alloc(0),
  opt(),
  opt(512),
  opt(100),
  opt(4096),
  opt(1232, 0x8000),
  opt(1400, 0x40ff),
  opt(1232, 0, 1),
  opt(1232, 0, 0, '00030000'),
]

describe('answers are what the chain would give, and are counted as such', () => {
  test.each([
    ['with the usual options', '', ''],
    ['with prefetching', 'prefetch 3 1m 50%', ''],
    ['where expired entries are served', 'serve_stale 1h immediate', ''],
    ['where success is preferred', 'serve_stale 1h\n    serve_stale_policy prefer_positive', ''],
    ['where TTLs are kept', 'keepttl', ''],
    ['with log', '', 'log'],
    ['with metadata', '', 'metadata'],
  ])('%s', async (_, options, more) => {
    // One after the other: what is remembered of a question has room for one server.
    const lane = await play(corefile(options, more), true)
    const chain = await play(corefile(options, more), false)
    for (const [i, { query: asked, reply }] of lane.replies.entries())
      expect(reply, `${i}: ${asked.toString('latin1')}`).toEqual(chain.replies[i]!.reply)
    expect(lane.upstream).toBe(chain.upstream)
    expect(lane.counts).toEqual(chain.counts)
    if (more !== '') expect(lane.chain).toBe(chain.chain)
    else expect(lane.chain).toBeLessThan((options.includes('prefer') ? 0.9 : 0.7) * chain.chain)
  })
})

interface Played {
  readonly replies: { query: Buffer; reply: unknown }[]
  readonly upstream: number
  readonly chain: number
  readonly counts: string[]
}

/** Always the same questions at the same times. */
async function play(text: string, stands: boolean): Promise<Played> {
  const time = new Time()
  const one = await rig(time, stands, text)
  const random = randomFrom(20_261)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
  const replies: Played['replies'] = []
  for (let i = 0; i < 4000; i++) {
    // Most questions come as most clients ask them.
    const plain = random() < 0.6
    const flags = plain ? 0x100 : pick([0x100, 0, 0x120, 0x110, 0x130, 0x140])
    const octets = query(pick(NAMES), plain ? TYPE.A : pick(TYPES), flags, plain ? OPTS[0] : pick(OPTS))
    const spelt = random() < 0.1 ? mixedCase(octets, random) : octets
    if (random() < 0.02) spelt[Math.floor(random() * spelt.length)]! ^= 1 << Math.floor(random() * 8)
    replies.push({ query: spelt, reply: ordered(await hand(one, spelt)) })
    time.ms += random() < 0.02 ? 30_000 * random() : 200 * random()
  }
  const counts = (await one.server.metrics()).split('\n').filter(isCount).sort()
  await one.server.close()
  return { replies, upstream: one.upstream(), chain: one.chain(), counts }
}

/** How long an answer took is not the same twice. */
const isCount = (line: string): boolean => /^coredns_(dns|cache|cloud)/.test(line) && !/duration_seconds_(bucket|sum)/.test(line)

function mixedCase(octets: Buffer, random: () => number): Buffer {
  const copy = Buffer.from(octets)
  for (let at = 12; copy[at]! > 0; ) {
    const stop = at + copy[at]!
    while (at < stop) if (copy[++at]! >= 0x61 && copy[at]! <= 0x7a && random() < 0.5) copy[at]! ^= 0x20
    at++
  }
  return copy
}

describe('an answer that stood is given up', () => {
  const time = new Time()
  let one: Rig
  beforeAll(async () => {
    one = await rig(time, true, corefile())
  })
  afterAll(() => one.server.close())

  const ask = async (name: string): Promise<string[]> => Message.view(await hand(one, query(name))).answers.map(formatRecord)
  /** Until the chain is asked no more. */
  const settle = async (name: string): Promise<string[]> => {
    for (let i = 0; i < 30; i++) await ask(name)
    const before = one.chain()
    const answers = await ask(name)
    expect(one.chain(), 'the answer stands').toBe(before)
    return answers
  }

  test('when its time in the cache is over', async () => {
    const name = 'www.example.org.'
    const asked = one.upstream()
    expect(await settle(name)).toEqual(['www.example.org.\t30\tIN\tA\t192.0.2.1'])
    time.ms += 29_000
    expect(await ask(name)).toEqual(['www.example.org.\t1\tIN\tA\t192.0.2.1'])
    expect(one.upstream()).toBe(asked + 1)
    time.ms += 1000
    expect(await ask(name)).toEqual(['www.example.org.\t30\tIN\tA\t192.0.2.1'])
    expect(one.upstream()).toBe(asked + 2)
  })

  test('when the configuration is another', async () => {
    const name = 'db.prod.svc.cluster.local.'
    expect(await settle(name)).toEqual(['db.prod.svc.cluster.local.\t5\tIN\tA\t10.0.0.2'])
    expect(await one.server.reload(corefile().replace('manifests', 'ttl 17\n    manifests'))).toBeUndefined()
    expect(await settle(name)).toEqual(['db.prod.svc.cluster.local.\t17\tIN\tA\t10.0.0.2'])
  })

  test('when the service has another address', async () => {
    const name = 'web.prod.svc.cluster.local.'
    expect(await settle(name)).toEqual([expect.stringContaining('10.0.0.1')])
    writeCluster('10.0.0.77')
    await expect.poll(() => ask(name), { timeout: 10_000, interval: 50 }).toEqual([expect.stringContaining('10.0.0.77')])
    expect(await settle(name)).toEqual([expect.stringContaining('10.0.0.77')])
  })
})

test('a plugin that says something else of every answer gets right answers, and no more memory than for some thousand', async () => {
  const passed = new Map<string, number>()
  let epochs = 0
  const front: PluginModule = {
    name: 'front',
    apiVersion: 1,
    setup: () => ({
      name: 'front',
      serveDNS: (q, next) => next(q),
      stands: ({ name }) => ({ passed: () => void passed.set(name.key, (passed.get(name.key) ?? 0) + 1) }),
    }),
  }
  const own: PluginModule = {
    name: 'forward',
    apiVersion: 1,
    setup: () => ({
      name: 'forward',
      serveDNS(q) {
        const octets = q.reply('forward', 0, { answers: [parseRecord(`${q.name} 7 IN A 192.0.2.9`)] }).toBuffer()
        return Message.stored(octets, layoutOf(scanMessage(octets, 0, octets.length), octets, 0, octets.length), q.message, 0x8580, 7)
      },
      stands() {
        const number = ++epochs
        return { again: () => AS_GIVEN, epoch: () => number }
      },
    }),
  }
  const server = await handedServer('.:0 {\n front\n forward . 127.0.0.1:1\n}', { front, forward: own })
  const one: Rig = { server, chain: () => 0, upstream: () => 0 }
  for (let i = 0; i < 5000; i++) {
    const asked = query(`n${i}.example.org.`)
    for (let time = 0; time < 4; time++) {
      const reply = Message.view(await hand(one, asked))
      expect(reply.answers.map(formatRecord)).toEqual([`n${i}.example.org.\t7\tIN\tA\t192.0.2.9`])
    }
  }
  // From the third time on each question is known to come often; then its answer stands.
  expect(passed.size).toBeGreaterThan(4500)
  expect(Math.max(...passed.values())).toBeLessThan(4)
  await server.close()
})
