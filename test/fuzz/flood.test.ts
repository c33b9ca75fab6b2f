/** The running server against mutated packets, over either transport: it goes on answering right, and keeps no memory of them. */
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { formatRecord, Message, Name, parseRecord } from '../../src/dns/index.js'
import { type Client, tcp, udp } from '../support/client.js'
import { freePorts, type Running, root, run } from '../support/process.js'

/** Ten million (PACKETS=10000000) take a quarter of an hour. */
const PACKETS = Number(process.env.PACKETS ?? 100_000)
const WARM_UP = 50_000

/** Collects all garbage of its serving thread many times a second, so that memory that somebody still looks at does not live by luck. */
const COLLECTOR = `import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
export default {
  name: 'collector',
  apiVersion: 1,
  setup(_uses, ctx) {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc')
    const again = () => ctx.clock.timer(300, () => { collect(); again() })
    return { name: 'collector', onStartup: again, serveDNS: (query, next) => next(query) }
  },
}
`

async function start(transport: string): Promise<{ server: Running; port: number }> {
  const [port, health, ready, metrics, upstream] = (await freePorts(5)) as [number, number, number, number, number]
  const corefile = `.:${port} {
    errors
    health 127.0.0.1:${health}
    ready 127.0.0.1:${ready}
    prometheus 127.0.0.1:${metrics}
    collector
    cloud_ndots {
        domains corp.example
    }
    cache 30
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        manifests ${root}/examples/cluster
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    hosts {
        10.0.0.1 host.example
        fallthrough
    }
    forward . 127.0.0.1:${upstream}
    loadbalance
}
`
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairndns-flood-'))
  fs.writeFileSync(path.join(folder, 'collector.mjs'), COLLECTOR)
  fs.writeFileSync(path.join(folder, 'plugins'), `collector:${path.join(folder, 'collector.mjs')}\n`)
  const args = ['-transport', transport, '-plugin-cfg', path.join(folder, 'plugins')]
  const server = await run(corefile, port, { args, env: { CAIRNDNS_POISON: '1' } })
  await server.saw(/CairnDNS/)
  fs.rmSync(folder, { recursive: true })
  return { server, port }
}

const NAMES = [
  'manual-trigger.ci-system.svc.cluster.local.',
  'db.shop.svc.cluster.local.',
  '_http._tcp.web.shop.svc.cluster.local.',
  '249.134.168.192.in-addr.arpa.',
  'host.example.',
]

/** Real queries and replies, to be broken. */
const seeds: Buffer[] = [
  ...NAMES.flatMap((name) => [1, 28, 33, 12, 255, 65].map((type) => Message.query(Name.parse(name), type, { id: 7 }).toBuffer())),
  Message.query(Name.parse(NAMES[0]!), 1, {
    edns: { size: 4096, extendedRcode: 0, version: 0, dnssecOk: true, z: 0, options: [{ code: 10, data: Buffer.alloc(8, 1) }] },
  }).toBuffer(),
  Message.reply(Message.query(Name.parse(NAMES[0]!), 1))
    .with({ answers: [parseRecord(`${NAMES[0]} 5 IN A 10.0.0.1`)] })
    .toBuffer(),
]

/** A small generator of its own, so that a failing run can be played again. */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

function mutate(next: () => number): Buffer {
  const octets = Buffer.from(seeds[Math.floor(next() * seeds.length)]!)
  for (let i = Math.floor(next() * 6); i >= 0; i--) octets[Math.floor(next() * octets.length)] = Math.floor(next() * 256)
  const kind = next()
  if (kind < 0.1) return octets.subarray(0, Math.floor(next() * octets.length))
  if (kind < 0.2) return Buffer.concat([octets, Buffer.alloc(Math.floor(next() * 400), Math.floor(next() * 256))])
  return octets
}

async function answersRight(client: Client): Promise<void> {
  const reply = await client.ask(NAMES[0]!)
  expect(reply.answers.map(formatRecord)).toEqual([`${NAMES[0]}\t30\tIN\tA\t192.168.134.249`])
}

async function warmUp(client: Client, count: number): Promise<void> {
  for (let i = 0; i < count; i += 50) await Promise.all(Array.from({ length: 50 }, (_, j) => client.ask(NAMES[j % 4]!, 'A')))
}

describe.each(['batch', 'dgram'])('over %s', (transport) => {
  let server: Running
  let port: number
  beforeAll(async () => {
    ;({ server, port } = await start(transport))
  }, 30_000)
  afterAll(async () => {
    await server?.stop()
  })

  test(`${PACKETS} mutated packets over UDP and TCP leave it answering, and no larger`, { timeout: 120_000 + PACKETS }, async () => {
    const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31)
    const client = await udp(port)
    await warmUp(client, 20_000)
    // Ordinary answers allocate next to nothing: V8's young generation takes the size that it keeps only with queries like these.
    await flood(port, client, random(seed + 1), WARM_UP)
    const before = server.rss()
    await flood(port, client, random(seed), PACKETS)
    await warmUp(client, 5000)
    client.close()
    const grown = server.rss() - before
    expect(grown, `seed ${seed}: grew by ${grown.toFixed(1)} MiB from ${before.toFixed(1)}`).toBeLessThan(10)
    expect(server.output()).not.toMatch(/TypeError|RangeError|at .*\.js:\d+/)
  })
})

async function flood(port: number, client: Client, next: () => number, packets: number): Promise<void> {
  // A socket of its own: replies to junk carry ids that the questions have as well.
  const junk = await udp(port)
  let stream = await tcp(port)
  for (let sent = 0; sent < packets; sent++) {
    const octets = mutate(next)
    if (sent % 20 === 0) {
      if (stream.cut) stream = await tcp(port)
      stream.raw(octets)
    } else junk.raw(octets)
    // In step with the server: what the kernel drops tests nothing.
    if (sent % 100 === 99) await answersRight(client)
  }
  stream.close()
  await answersRight(client)
  junk.close()
}
