/**
 * What is the process's and what each thread's (the table in docs/operating.md), with two threads: counts, max_concurrent, probes of an
 * upstream, the loop guard, the cluster, the log.
 */
import fs from 'node:fs'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { rcodeName } from '../../src/dns/index.js'
import { FakeUpstream, reply, silent } from '../fakes/upstream.js'
import { udp } from '../support/client.js'
import { freePorts, type Running, run, until } from '../support/process.js'
import { metricSum, outcomes, shout, threadFiles } from '../support/threads.js'

let server: Running | undefined
let upstream: FakeUpstream | undefined
let port = 0
let metricsPort = 0
beforeEach(async () => {
  ;[port, metricsPort] = (await freePorts(2)) as [number, number]
})
afterEach(async () => {
  await server?.stop()
  await upstream?.down()
  server = upstream = undefined
})

async function start(text: string, files: Readonly<Record<string, string>> = {}): Promise<Running> {
  const corefile = `.:${port} {\n multisocket 2\n kill\n errors\n prometheus 127.0.0.1:${metricsPort}\n ${text}\n}\n`
  server = await run(corefile, port, { args: ['-plugin-cfg', 'table.cfg'], files: { ...threadFiles, ...files } })
  await server.saw(/node\d+/)
  return server
}

test('max_concurrent holds over all threads together', async () => {
  let release = (): void => undefined
  const gate = new Promise<void>((resolve) => {
    release = resolve
  })
  upstream = await FakeUpstream.start((asked) => gate.then(() => reply(asked)))
  await start(`forward . ${upstream.address} {\n  max_concurrent 5\n  max_fails 0\n }`)
  const clients = await Promise.all(Array.from({ length: 16 }, () => udp(port)))
  let refused = 0
  const waiting = clients.map((client, i) =>
    client.ask(`n${i}.example.org.`, 'A').then(
      ({ rcode }) => (refused += rcode === 5 ? 1 : 0),
      () => undefined,
    ),
  )
  await until(
    () => refused === 11,
    5_000,
    () => `${refused} of 16 were refused`,
  )
  expect(await metricSum(metricsPort, 'coredns_forward_max_concurrent_rejects_total')).toBe(11)
  release()
  await Promise.all(waiting)
  for (const client of clients) client.close()
})

test('one thread probes a dead upstream, and all know when it is back', async () => {
  upstream = await FakeUpstream.start(silent)
  const { address } = upstream
  await upstream.down()
  await start(`forward . ${address} {\n  health_check 100ms\n }`)
  const ask = () =>
    outcomes(
      () => udp(port),
      'a.example.org.',
      'A',
      ({ rcode }) => rcodeName(rcode),
    )
  expect(await ask()).toEqual(['SERVFAIL'])
  const failures = () => metricSum(metricsPort, 'coredns_proxy_healthcheck_failures_total')
  await until(
    async () => (await failures()) >= 3,
    5_000,
    () => 'no probe failed',
  )
  const [from, began] = [await failures(), performance.now()]
  await until(
    async () => (await failures()) >= from + 8,
    5_000,
    () => 'no more probes',
  )
  // Two threads would need half the time.
  expect(performance.now() - began).toBeGreaterThan(600)
})

test('a loop is found by one thread and cut in all', async () => {
  const { saw, output } = await start(`loop\n forward . 127.0.0.1:${port}`)
  await saw(/sends our queries back to us and is asked no more/)
  await until(
    async () =>
      (
        await outcomes(
          () => udp(port),
          'a.example.org.',
          'A',
          ({ rcode }) => rcodeName(rcode),
        )
      ).join() === 'SERVFAIL',
    5_000,
    () => 'still asked',
  )
  expect(output().match(/Loop \(/g)).toHaveLength(1)
  expect(await metricSum(metricsPort, 'coredns_forward_max_concurrent_rejects_total')).toBe(0)
})

const service = (ip: string): string => `apiVersion: v1
kind: Namespace
metadata: { name: default }
---
apiVersion: v1
kind: Service
metadata: { name: web, namespace: default }
spec: { clusterIP: ${ip}, ports: [{ name: http, port: 80, protocol: TCP }] }
`

test('the cluster is the same in all threads, also in one that came later', async () => {
  const { folder, saw } = await start('kubernetes cluster.local {\n  manifests cluster.yaml\n }', { 'cluster.yaml': service('10.0.0.1') })
  const addresses = () =>
    outcomes(
      () => udp(port),
      'web.default.svc.cluster.local.',
      'A',
      ({ answers }) => answers.map(({ data }) => ('address' in data ? data.address : '')).join(),
    )
  expect(await addresses()).toEqual(['10.0.0.1'])
  const change = (ip: string) => fs.writeFileSync(path.join(folder, 'cluster.yaml'), service(ip))
  const all = async (ip: string) =>
    until(
      async () => (await addresses()).join() === ip,
      10_000,
      () => `not everywhere ${ip}`,
    )
  change('10.0.0.2')
  await all('10.0.0.2')
  await shout(port, 'die.')
  change('10.0.0.3')
  await saw(/Serving thread \d is back/)
  await all('10.0.0.3')
})

test('log lines of several threads are whole', async () => {
  const { output } = await start('log\n thread w')
  await outcomes(
    () => udp(port),
    'a.example.org.',
    'TXT',
    () => '',
    64,
  )
  const lines = () => output().split('\n').slice(0, -1)
  const isQuery = (line: string) =>
    /^\[INFO\] 127\.0\.0\.1:\d+ - \d+ "TXT IN a\.example\.org\. udp 31 false 512" NOERROR \S+ \d+ \S+s$/.test(line)
  await until(
    () => lines().filter(isQuery).length === 64,
    5_000,
    () => output(),
  )
  expect(lines().filter((line) => line.startsWith('[') && !isQuery(line))).toEqual([])
})
