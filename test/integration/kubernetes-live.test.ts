/** A whole server on a fake API server. */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { startServer, type TestServer } from '../../src/server/testing.js'
import { FakeKubeApi, namespace, service, slice } from '../fakes/kube-api.js'

const cleanUp: (() => unknown)[] = []
afterEach(async () => {
  for (const end of cleanUp.splice(0).reverse()) await end()
})

async function fakeApi(): Promise<FakeKubeApi> {
  const api = await new FakeKubeApi().start()
  cleanUp.push(() => api.stop())
  for (const object of [
    namespace('ns1'),
    service('ns1', 'web', '10.0.0.1'),
    service('ns1', 'db', 'None'),
    slice('ns1', 'db', 'db-1', ['10.1.0.1']),
  ]) {
    api.put(object)
  }
  return api
}

async function serve(corefile: string): Promise<TestServer> {
  const server = await startServer({ corefile })
  cleanUp.push(() => server.close())
  return server
}

async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 10_000
  while (!(await what())) {
    if (performance.now() > end) throw new Error(`not in time: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 3))
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

const lists = (api: FakeKubeApi): number => api.asked(/sendInitialEvents|limit=/)
const corefile = (api: FakeKubeApi, options = '', more = '') =>
  `.:0 {\n errors\n ${more}\n kubernetes cluster.local in-addr.arpa {\n endpoint ${api.url}\n ${options}\n }\n}\n`

it('is not ready while it waits for the API server, nor before it was listed', async () => {
  const api = await fakeApi()
  await api.stop()
  const port = await freePort()
  const status = async () => {
    try {
      return (await fetch(`http://127.0.0.1:${port}/ready`)).status
    } catch {
      return 0
    }
  }
  const seen = new Set<number>()
  let starting = true
  const watching = (async () => {
    while (starting) seen.add(await status())
  })()
  const server = await serve(corefile(api, 'startup_timeout 700ms', `ready 127.0.0.1:${port}`))
  starting = false
  await watching
  expect(seen).not.toContain(200)
  expect(seen).toContain(503)
  expect(server.logs).toContain('[WARNING] plugin/kubernetes: starting server with unsynced Kubernetes API')
  expect((await server.query('web.ns1.svc.cluster.local.')).rcode).toBe(2)
  expect(await status()).toBe(503)
  await api.start()
  await until(async () => (await status()) === 200)
  expect((await server.query('web.ns1.svc.cluster.local.')).rcode).toBe(0)
})

it('answers with a change as soon as it was read, denials too, whatever the cache holds', async () => {
  const api = await fakeApi()
  const server = await serve(corefile(api, '', 'cache 30'))
  const { query } = server
  expect((await query('new.ns1.svc.cluster.local.')).rcode).toBe(3)
  api.put(service('ns1', 'new', '10.0.0.2'))
  const changed = performance.now()
  await until(async () => (await query('new.ns1.svc.cluster.local.')).rcode === 0)
  expect(performance.now() - changed).toBeLessThan(1000)
  api.delete(service('ns1', 'new', ''))
  await until(async () => (await query('new.ns1.svc.cluster.local.')).rcode === 3)
})

it('keeps the source over a reload that leaves its options alone', async () => {
  const api = await fakeApi()
  const server = await serve(corefile(api))
  const asked = api.requests.length
  expect(lists(api)).toBe(3)
  expect(await server.reload(corefile(api, 'ttl 60', 'log'))).toBeUndefined()
  expect((await server.query('web.ns1.svc.cluster.local.')).answers[0]?.ttl).toBe(60)
  expect(await server.reload(corefile(api, 'ttl 60\n nonsense'))).toBeInstanceOf(Error)
  expect(api.requests.length).toBe(asked)
  api.put(service('ns1', 'new', '10.0.0.2'))
  await until(async () => (await server.query('new.ns1.svc.cluster.local.')).rcode === 0)

  expect(await server.reload(corefile(api, 'pods verified'))).toBeUndefined()
  expect(lists(api)).toBe(7)
  await until(() => api.watches === 4)
})

it('is not ready while the API server answers 503, and without a restart as soon as it lists', async () => {
  const api = await fakeApi()
  api.faults.status = 503
  const port = await freePort()
  const server = await serve(corefile(api, 'startup_timeout 100ms', `ready 127.0.0.1:${port}`))
  const status = async () => (await fetch(`http://127.0.0.1:${port}/ready`)).status
  await until(() => api.requests.length > 6)
  expect(await status()).toBe(503)
  expect((await server.query('absent.ns1.svc.cluster.local.')).rcode).toBe(2)
  api.faults.status = undefined
  await until(async () => (await status()) === 200)
  expect((await server.query('absent.ns1.svc.cluster.local.')).rcode).toBe(3)
})

it('noendpoints asks for no endpoints and denies headless services', async () => {
  const api = await fakeApi()
  const { query } = await serve(corefile(api, 'noendpoints'))
  expect((await query('web.ns1.svc.cluster.local.')).rcode).toBe(0)
  for (const name of ['db', '10-1-0-1.db']) expect((await query(`${name}.ns1.svc.cluster.local.`)).rcode).toBe(3)
  expect(api.asked(/endpointslices/)).toBe(0)
})

it('logs "-" for the client pod where pods are not watched', async () => {
  const api = await fakeApi()
  const log = 'metadata\n log . "client {/kubernetes/client-namespace} of {/kubernetes/namespace}"'
  const { query, logs } = await serve(corefile(api, 'pods insecure', log))
  expect((await query('web.ns1.svc.cluster.local.')).rcode).toBe(0)
  await until(() => logs.some((line) => line.includes('client - of ns1')))
})

it('can be scraped after questions for names that are no UTF-8', async () => {
  const api = await fakeApi()
  const { query, metrics } = await serve(corefile(api, '', 'prometheus 127.0.0.1:0'))
  for (const name of ['\\255', 'a\\192\\128b']) expect((await query(`${name}.ns1.svc.cluster.local.`)).rcode).toBe(3)
  const text = await metrics()
  expect(text).toMatch(/coredns_dns_responses_total\{.*rcode="NXDOMAIN".*\} 2\n/)
  expect(text).toMatch(/coredns_kubernetes_rest_client_requests_total\{/)
})

it('never denies an endpoint that stays while its slices are written over', async () => {
  const api = await fakeApi()
  const address = (i: number) => `10.2.${i >> 8}.${i & 255}`
  const piece = (s: number, turn: number) => {
    const object = slice('ns1', 'nodes', `nodes-${s}`, [])
    // In every other turn the first endpoint stands in the next slice, too.
    const numbers = Array.from({ length: 100 + (turn & 1) }, (_, i) => (s * 100 + i) % 1500)
    return { ...object, endpoints: numbers.map((i) => ({ addresses: [address(i)], hostname: `n-${i}`, conditions: { ready: true } })) }
  }
  api.put(service('ns1', 'nodes', 'None'))
  for (let s = 0; s < 15; s++) api.put(piece(s, 0))
  const { query } = await serve(corefile(api, '', 'cache 30'))
  const wrong: string[] = []
  for (let turn = 1; turn <= 20; turn++) {
    for (let s = 0; s < 15; s++) api.put(piece(s, turn))
    for (let k = 0; k < 25; k++) {
      const i = (turn * 7919 + k * 613) % 1500
      const { rcode, answers } = await query(`n-${i}.nodes.ns1.svc.cluster.local.`)
      const data = answers[0]?.data
      if (rcode !== 0 || answers.length !== 1 || data?.kind !== 'A' || data.address !== address(i)) wrong.push(`n-${i}: ${rcode}`)
    }
  }
  expect(wrong).toEqual([])
})

it('starts from a snapshot without the API server: ready, marked with EDE 3, until the first list is in', async () => {
  const api = await fakeApi()
  const folder = mkdtempSync(join(tmpdir(), 'cairndns-live-'))
  cleanUp.push(() => rmSync(folder, { recursive: true }))
  const port = await freePort()
  const text = corefile(api, `startup_timeout 100ms\n snapshot ${folder}/snapshot`, `ready 127.0.0.1:${port}`)
  await (await startServer({ corefile: text })).close()
  await api.stop()
  api.put(service('ns1', 'new', '10.0.0.9'))
  api.delete(service('ns1', 'web', ''))

  const { query, logs } = await serve(text)
  const marks = async (name: string) => {
    const { rcode, edns } = await query(`${name}.ns1.svc.cluster.local.`, 'A', { size: 1232 })
    return [rcode, ...(edns?.options ?? []).filter(({ code }) => code === 15).map(({ data }) => Buffer.from(data).readUInt16BE(0))]
  }
  const ready = async () => {
    const response = await fetch(`http://127.0.0.1:${port}/ready`)
    return `${response.status} ${await response.text()}`
  }
  expect(await ready()).toMatch(/^200 OK\nkubernetes: serving a snapshot, .* old$/)
  expect([await marks('web'), await marks('new')]).toEqual([
    [0, 3],
    [3, 3],
  ])
  expect(logs.join('\n')).toMatch(/WARNING.*Serving \d+ objects of snapshot/)
  await api.start()
  await until(async () => (await ready()) === '200 OK')
  expect([await marks('web'), await marks('new')]).toEqual([[3], [0]])
})
