import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FakeLog, FakeMetrics, realClock } from '../../../src/plugins/testing.js'
import { CA, CERT, KEY } from '../../../test/fakes/certificate.js'
import { FakeKubeApi, service } from '../../../test/fakes/kube-api.js'
import type { ClusterRecord } from '../objects.js'
import type { Access } from '../options.js'
import { openAccess, type Surroundings } from './access-open.js'
import { apiSource } from './api-source.js'
import { REFLECTOR_TIMES } from './reflector.js'

type ApiKind = Exclude<Access, { kind: 'manifests' }>

let folder = ''
const cleanUp: (() => unknown)[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'access-'))
})
afterEach(async () => {
  for (const end of cleanUp.splice(0).reverse()) await end()
  rmSync(folder, { recursive: true })
})

const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

async function api(tls?: object, host?: string): Promise<FakeKubeApi> {
  const server = await new FakeKubeApi(tls, host).start()
  cleanUp.push(() => server.stop())
  server.put(service('ns1', 'a', '10.0.0.1'))
  return server
}

async function run(access: ApiKind, around?: Surroundings) {
  const log = new FakeLog('kubernetes')
  const names = new Set<string>()
  let synced = false
  const source = apiSource({
    key: 'k',
    options: {
      access,
      needs: { endpoints: true, pods: false, podNames: false, podLabels: false, zones: false, multicluster: false },
      labels: undefined,
      namespaceLabels: undefined,
      qps: 0,
      burst: 0,
      maxInflight: 0,
    },
    access: () => openAccess(access, realClock, around),
    log,
    clock: realClock,
    metrics: new FakeMetrics(),
    times: { ...REFLECTOR_TIMES, backoff: { first: 10, longest: 50 } },
  })
  const emit = (part: readonly ClusterRecord[]) => {
    for (const record of part) {
      if (record.op === 'state') synced = record.synced
      else names.add(record.name)
    }
  }
  await source.start(emit)
  cleanUp.push(() => source.stop())
  return { log, names, synced: () => synced, remark: () => source.remark?.() }
}

async function until(what: () => boolean): Promise<void> {
  const end = performance.now() + 8000
  while (!what()) {
    if (performance.now() > end) throw new Error(`not in time: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 3))
  }
}

describe('endpoint with tls', () => {
  it('shows its certificate and trusts the authority that is named', async () => {
    const server = await api({ key: KEY, cert: CERT, ca: CA, requestCert: true, rejectUnauthorized: true })
    const tls = { cert: file('cert', CERT), key: file('key', KEY), ca: file('ca', CA) }
    const r = await run({ kind: 'endpoint', url: server.url, tls })
    await until(r.synced)
  })

  it('does not trust another one, and goes on trying', async () => {
    const server = await api({ key: KEY, cert: CERT })
    const r = await run({ kind: 'endpoint', url: server.url, tls: undefined })
    await until(() => r.log.lines.length > 2)
    expect(r.log.lines[0]).toMatch(/unable to (verify|get local issuer)/)
    expect(r.synced()).toBe(false)
  })
})

describe('access from inside the cluster', () => {
  it.each(['127.0.0.1', '::1'])('uses the service account, and takes up a renewed token after a 401 (%s)', async (host) => {
    const server = await api({ key: KEY, cert: CERT }, host)
    file('ca.crt', CA)
    file('token', 'first\n')
    server.faults.token = 'first'
    const env = { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: String(server.port) }
    const r = await run({ kind: 'cluster' }, { env, serviceAccount: folder })
    await until(r.synced)
    file('token', 'second\n')
    server.faults.token = 'second'
    server.cutWatches()
    server.put(service('ns1', 'b', '10.0.0.2'))
    await until(() => r.names.has('b'))
    expect(server.requests.at(-1)!.headers.authorization).toBe('Bearer second')
  })
})

describe('kubeconfig', () => {
  const config = (server: string, user: object, over: object = {}) =>
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'one',
      clusters: [{ name: 'c', cluster: { server, ...over } }],
      users: [{ name: 'u', user }],
      contexts: [
        { name: 'one', context: { cluster: 'c', user: 'u' } },
        { name: 'lost', context: { cluster: 'gone', user: 'u' } },
      ],
    })
  const base64 = (text: string) => Buffer.from(text).toString('base64')

  it('knows certificates, tokens and plain HTTP', async () => {
    const secure = await api({ key: KEY, cert: CERT, ca: CA, requestCert: true, rejectUnauthorized: true })
    const user = { 'client-certificate-data': base64(CERT), 'client-key-data': base64(KEY) }
    const path = file('config', config(secure.url, user, { 'certificate-authority-data': base64(CA) }))
    await until((await run({ kind: 'kubeconfig', file: path, context: '' })).synced)

    const plain = await api()
    plain.faults.token = 'secret'
    const other = file('other', config(plain.url, { token: 'secret' }))
    await until((await run({ kind: 'kubeconfig', file: other, context: 'one' })).synced)
  })

  it('takes up a file that changes', async () => {
    const server = await api()
    server.faults.token = 'new'
    const path = file('config', config(server.url, { token: 'old' }))
    const r = await run({ kind: 'kubeconfig', file: path, context: '' })
    await until(() => r.log.lines.length > 0)
    file('config', config(server.url, { token: 'new' }))
    await until(r.synced)
  })

  it('runs the command of an exec user', async () => {
    const server = await api({ key: KEY, cert: CERT })
    server.faults.token = 'from-exec'
    const credential = { kind: 'ExecCredential', apiVersion: 'client.authentication.k8s.io/v1', status: { token: 'from-exec' } }
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: 'echo',
      args: [JSON.stringify(credential)],
      interactiveMode: 'Never',
    }
    const path = file('config', config(server.url, { exec }, { 'certificate-authority-data': base64(CA) }))
    await until((await run({ kind: 'kubeconfig', file: path, context: '' })).synced)
  })

  it('shows the token of an OIDC user', async () => {
    const server = await api({ key: KEY, cert: CERT })
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const token = `${part({ alg: 'none' })}.${part({ exp: Math.floor(Date.now() / 1000) + 3600 })}.signature`
    server.faults.token = token
    const user = { 'auth-provider': { name: 'oidc', config: { 'id-token': token, 'client-id': 'dns' } } }
    const path = file('config', config(server.url, user, { 'certificate-authority-data': base64(CA) }))
    await until((await run({ kind: 'kubeconfig', file: path, context: '' })).synced)
  })

  it.each([
    ['two', /context "two" does not exist/],
    ['lost', /context "lost" names no cluster/],
  ])('says what is wrong with context %s', async (context, message) => {
    const path = file('config', config('https://127.0.0.1:1', {}))
    await expect(openAccess({ kind: 'kubeconfig', file: path, context }, realClock)).rejects.toThrow(message)
  })
})

it('403 names verb and resource until they are granted', async () => {
  const server = await api()
  server.faults.status = 403
  const r = await run({ kind: 'endpoint', url: server.url, tls: undefined })
  await until(() => r.remark()?.split('\n').length === 3)
  expect(r.remark()).toContain('kubernetes: permission is missing: verb "watch" on resource "services" of API group ""')
  expect(r.remark()).toContain('verb "watch" on resource "endpointslices" of API group "discovery.k8s.io"')
  server.faults.status = undefined
  await until(() => r.synced() && r.remark() === undefined)
})
