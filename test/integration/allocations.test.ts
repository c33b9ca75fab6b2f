/**
 * What a query costs, in a measure that does not depend on the machine: octets of heap. The whole chain of a cluster's Corefile, without
 * sockets. A change that makes this test fail makes the collector work more for every query of every cluster.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Message, Name, parseRecord } from '../../src/dns/index.js'
import type { PluginModule } from '../../src/plugins/contract.js'
import { type HandedServer, handedServer } from '../support/handed.js'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const folder = mkdtempSync(path.join(tmpdir(), 'cairndns-allocations-'))
const SERVICES = 500
const COREFILE = `.:0 {
  errors
  health 127.0.0.1:0
  ready 127.0.0.1:0
  cloud_ndots cluster.local {
    domains github.example
  }
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    manifests ${folder}
    pods insecure
    fallthrough in-addr.arpa ip6.arpa
  }
  prometheus 127.0.0.1:0
  forward . 127.0.0.1:1
  cache 30
  loop
  reload
  loadbalance
}`

/** Stands for the upstream: every name has one address, after a turn. */
const forward: PluginModule = {
  name: 'forward',
  apiVersion: 1,
  setup: () => ({
    name: 'forward',
    serveDNS: async (q) => {
      const answers = [parseRecord(`${q.name} 3600 IN A 192.0.2.1`), parseRecord(`${q.name} 3600 IN A 192.0.2.2`)]
      return Message.view(q.reply('forward', 0, { answers }).toBuffer())
    },
  }),
}

let server: HandedServer
beforeAll(async () => {
  const objects: object[] = [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'prod' } }]
  for (let i = 0; i < SERVICES; i++)
    objects.push({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: `web-${i}`, namespace: 'prod' },
      spec: { type: 'ClusterIP', clusterIP: `10.0.${i >> 8}.${i & 255}`, ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
    })
  writeFileSync(path.join(folder, 'cluster.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
  server = await handedServer(COREFILE, { forward })
})
afterAll(async () => {
  await server.close()
  rmSync(folder, { recursive: true })
})

const BATCH = 200
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Octets of heap per query once all is warm: the least of many batches, as other things may happen beside. */
async function octetsPerQuery(names: readonly string[], size: number | undefined): Promise<number> {
  const edns = size === undefined ? undefined : { size, extendedRcode: 0, version: 0, dnssecOk: false, z: 0, options: [] }
  const queries = names.map((name) => Message.query(Name.parse(name), 1, { id: 1, edns }).toBuffer())
  const slot = Buffer.alloc(512)
  const ask = (i: number): void => {
    const query = queries[i % queries.length]!
    query.copy(slot)
    server.hand(slot, query.length)
  }
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i < queries.length; i++) ask(i)
    await turn()
  }
  for (let i = 0; i < 20_000; i++) ask(i)
  let least = Number.POSITIVE_INFINITY
  for (let batch = 0; batch < 30; batch++) {
    collect()
    const before = process.memoryUsage().heapUsed
    for (let i = 0; i < BATCH; i++) ask(batch * BATCH + i)
    least = Math.min(least, (process.memoryUsage().heapUsed - before) / BATCH)
  }
  return least
}

const numbered = (text: string): string[] => Array.from({ length: SERVICES }, (_, i) => text.replace('#', String(i)))

test.each([
  ['a cluster name', 'web-#.prod.svc.cluster.local.', undefined, 1],
  ['a cluster name, with EDNS', 'web-#.prod.svc.cluster.local.', 1232, 1],
  ['a name that the cluster lacks', 'gone-#.prod.svc.cluster.local.', undefined, 0],
  ['an external name out of the cache', 'www-#.example.org.', undefined, 2],
  ['an external name out of the cache, with EDNS', 'www-#.example.org.', 1232, 2],
])('%s', async (_, name, size, answers) => {
  const octets = await octetsPerQuery(numbered(name), size)
  const reply = Message.view(server.sent.subarray(0, server.sentLength))
  expect([reply.qr, reply.answers.length, reply.edns?.size]).toEqual([true, answers, size])
  expect(octets).toBeLessThan(600)
})
