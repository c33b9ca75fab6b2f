/** A whole server on a fake API server. */
import { createServer } from 'node:net'
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

it('answers with a change as soon as it was read, denials too', async () => {
  const api = await fakeApi()
  const server = await serve(corefile(api))
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
