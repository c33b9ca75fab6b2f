import { afterEach, describe, expect, it } from 'vitest'
import { FakeLog, FakeMetrics, realClock } from '../../../src/plugins/testing.js'
import { FakeKubeApi, type KubeObject, namespace, service, slice } from '../../../test/fakes/kube-api.js'
import type { ClusterRecord, ObjectPut, StateRecord } from '../objects.js'
import type { SourceOptions } from '../options.js'
import { openAccess } from './access-open.js'
import { apiSource } from './api-source.js'
import type { ReflectorTimes } from './reflector.js'

/** Fast, but with the proportions of real life. */
const TIMES: ReflectorTimes = { backoff: { first: 10, longest: 100 }, watch: 300_000, silence: 400, grace: 40 }
const NEEDS = { endpoints: true, pods: false, podNames: false, podLabels: false, zones: false, multicluster: false }

interface Running {
  readonly log: FakeLog
  readonly metrics: FakeMetrics
  /** Records by "kind namespace/name", as a replica would hold them. */
  readonly held: Map<string, ObjectPut>
  /** All that was emitted, in order. */
  readonly emitted: ClusterRecord[]
  state(): StateRecord | undefined
  snapshot(): ClusterRecord[]
  stop(): Promise<void>
}

const cleanUp: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of cleanUp.splice(0).reverse()) await end()
})

async function fakeApi(...objects: KubeObject[]): Promise<FakeKubeApi> {
  const api = await new FakeKubeApi().start()
  cleanUp.push(() => api.stop())
  for (const object of objects) api.put(object)
  return api
}

function run(api: FakeKubeApi, over: Partial<Omit<SourceOptions, 'needs'>> & { needs?: Partial<SourceOptions['needs']> } = {}): Running {
  const access = { kind: 'endpoint' as const, url: api.url, tls: undefined }
  const options: SourceOptions = {
    access,
    labels: undefined,
    namespaceLabels: undefined,
    qps: 0,
    burst: 0,
    maxInflight: 0,
    ...over,
    needs: { ...NEEDS, ...over.needs },
  } as SourceOptions
  const log = new FakeLog('kubernetes')
  const metrics = new FakeMetrics()
  const held = new Map<string, ObjectPut>()
  const emitted: ClusterRecord[] = []
  let state: StateRecord | undefined
  const source = apiSource({
    key: 'k',
    options,
    access: () => openAccess(access, realClock),
    log,
    clock: realClock,
    metrics,
    times: TIMES,
    limits: { connect: 500, head: 1000, idle: 1000 },
  })
  void source.start((part) => {
    emitted.push(...part)
    for (const record of part) {
      if (record.op === 'state') state = record
      else {
        const key = `${record.kind} ${'namespace' in record ? record.namespace : ''}/${record.name}`
        if (record.op === 'put') held.set(key, record)
        else held.delete(key)
      }
    }
  })
  cleanUp.push(async () => source.stop())
  const snapshot = () => [...source.snapshot()].flat()
  return { log, metrics, held, emitted, state: () => state, snapshot, stop: async () => source.stop() }
}

async function until(what: () => boolean, ms = 5000): Promise<void> {
  const end = performance.now() + ms
  while (!what()) {
    if (performance.now() > end) throw new Error(`not within ${ms} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
const synced = (r: Running) => until(() => r.state()?.synced === true)
const many = (n: number) => Array.from({ length: n }, (_, i) => service('ns1', `svc${i}`, `10.0.${i >> 8}.${i & 255}`))

describe('listing', () => {
  it.each([
    ['a streaming list', {}],
    ['pages, where streaming lists are refused', { streaming: 'refused' }],
    ['pages, where the stream of a list fails with code 500', { streaming: 'error' }],
    ['pages, where the question for a streaming list is lost', { streaming: 'lost' }],
    ['one body, where pages are ignored', { streaming: 'refused', noPages: true }],
    ['bodies in small pieces', { streaming: 'refused', pieces: 777 }],
    ['pages, some of which are gone when they are asked for', { streaming: 'refused', goneContinues: 2 }],
    ['one body, where every further page is gone', { streaming: 'refused', goneContinues: 100 }],
  ] as const)('takes up the whole state from %s', async (_, faults) => {
    const api = await fakeApi(namespace('ns1'), ...many(1203), slice('ns1', 'svc0', 'svc0-a', ['10.1.0.1', '10.1.0.2']))
    Object.assign(api.faults, faults)
    const r = run(api)
    await synced(r)
    expect(r.held.size).toBe(1205)
    expect(r.held.get('service ns1/svc1202')).toEqual({
      op: 'put',
      kind: 'service',
      namespace: 'ns1',
      name: 'svc1202',
      type: 'ClusterIP',
      addresses: ['10.0.4.178'],
      ports: [{ name: 'http', protocol: 'TCP', port: 80 }],
    })
    expect(r.held.get('slice ns1/svc0-a')).toMatchObject({ service: 'svc0', addresses: ['10.1.0.1', '10.1.0.2'] })
    const snapshot = r.snapshot()
    expect(snapshot).toHaveLength(1206)
    expect(snapshot.at(-1)).toEqual(r.state())
    api.put(service('ns1', 'late', '10.9.0.1'))
    await until(() => r.held.has('service ns1/late'))
  })

  it('asks only for what the options need, with selectors', async () => {
    const api = await fakeApi(
      { ...service('ns1', 'a', '10.0.0.1'), metadata: { name: 'a', namespace: 'ns1', labels: { app: 'x' } } },
      service('ns1', 'b', '10.0.0.2'),
    )
    const labels = { text: 'app=x', matches: () => true }
    const r = run(api, { labels, needs: { endpoints: false, multicluster: true } })
    await synced(r)
    expect([...r.held.keys()]).toEqual(['service ns1/a'])
    const paths = api.requests.map(({ url }) => url.replace(/\?.*/, '').replace(/.*\//, '')).sort()
    expect(paths).toEqual(['endpointslices', 'namespaces', 'serviceimports', 'services'])
    expect(api.asked(/endpointslices\?.*labelSelector=app%3Dx%2Cmulticluster.kubernetes.io%2Fservice-name/)).toBe(1)
    expect(api.asked(/namespaces\?.*labelSelector/)).toBe(0)
  })

  it('is synced only when every kind was listed', async () => {
    const api = await fakeApi(service('ns1', 'a', '10.0.0.1'))
    api.faults.missing = ['endpointslices']
    const r = run(api)
    await until(() => api.asked(/endpointslices/) > 3)
    expect(r.held.size).toBe(1)
    expect(r.state()?.synced).toBe(false)
    expect(r.log.lines).toEqual(['[ERROR] plugin/kubernetes: Failed to watch: failed to list *v1.EndpointSlice: not found'])
    api.faults.missing = []
    await synced(r)
  })

  it('keeps trying while there is no server, and does not turn hot', async () => {
    const api = await fakeApi(service('ns1', 'a', '10.0.0.1'))
    await api.stop()
    const r = run(api)
    await until(() => (r.metrics.values.get(requests('<error>', api)) ?? 0) > 6)
    expect(r.log.lines[0]).toMatch(/Failed to watch: failed to list \*v1\.\w+: Get "http:.*ECONNREFUSED/)
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(r.metrics.values.get(requests('<error>', api))).toBeLessThan(60)
    await api.start()
    await synced(r)
  })

  it('waits as long as a 429 asks', async () => {
    const api = await fakeApi(service('ns1', 'a', '10.0.0.1'))
    Object.assign(api.faults, { status: 429, retryAfter: '1' })
    const r = run(api)
    await until(() => api.requests.length === 3)
    api.faults.status = undefined
    const asked = api.requests[0]!.at
    await synced(r)
    expect(api.requests[3]!.at - asked).toBeGreaterThan(900)
  })

  it('begins again after a list that broke off, without emitting what it has', async () => {
    const api = await fakeApi(...many(300))
    Object.assign(api.faults, { streaming: 'refused', cutLists: 20_000 })
    const r = run(api)
    await until(() => api.asked(/services\?.*limit/) > 2)
    expect(r.state()?.synced ?? false).toBe(false)
    api.faults.cutLists = 0
    await synced(r)
    expect(r.emitted.filter((record) => record.op === 'put' && record.kind === 'service')).toHaveLength(300)
  })
})

const requests = (code: string, api: FakeKubeApi) =>
  `coredns_kubernetes_rest_client_requests_total{code="${code}",method="GET",host="${new URL(api.url).host}"}`

describe('watching', () => {
  it('hands on additions, changes and deletions, and nothing where nothing changed', async () => {
    const api = await fakeApi(service('ns1', 'a', '10.0.0.1'))
    const r = run(api)
    await synced(r)
    const before = r.emitted.length
    const relabelled = service('ns1', 'a', '10.0.0.1')
    relabelled.metadata.labels = { x: 'y' }
    api.put(relabelled)
    api.put(service('ns1', 'b', '10.0.0.2'))
    api.put(service('ns1', 'b', '10.0.0.3'))
    api.delete(service('ns1', 'a', ''))
    await until(() => !r.held.has('service ns1/a'))
    const news = r.emitted.slice(before).filter((record) => record.op !== 'state')
    expect(news).toMatchObject([
      { op: 'put', name: 'b', addresses: ['10.0.0.2'] },
      { op: 'put', name: 'b', addresses: ['10.0.0.3'] },
      { op: 'delete', kind: 'service', namespace: 'ns1', name: 'a' },
    ])
  })

  it('goes on from the last version after watches were cut, without listing', async () => {
    const api = await fakeApi(service('ns1', 'a', '10.0.0.1'))
    const r = run(api)
    await synced(r)
    api.cutWatches()
    api.put(service('ns1', 'b', '10.0.0.2'))
    api.delete(service('ns1', 'a', ''))
    await until(() => r.held.has('service ns1/b') && !r.held.has('service ns1/a'))
    expect(api.asked(/services\?.*sendInitialEvents/)).toBe(1)
    expect(api.asked(/limit=/)).toBe(0)
  })

  it('goes on from the last bookmark after a compaction', async () => {
    const api = await fakeApi(namespace('n'), service('ns1', 'a', '10.0.0.1'))
    const r = run(api)
    await synced(r)
    api.put(slice('ns1', 'x', 'x-1', ['10.1.0.1']))
    api.compact()
    api.bookmark()
    await until(() => r.held.has('slice ns1/x-1'))
    await new Promise((resolve) => setTimeout(resolve, 20))
    api.cutWatches()
    await until(() => api.watches === 3)
    api.put(service('ns1', 'b', '10.0.0.2'))
    await until(() => r.held.has('service ns1/b'))
    expect(api.asked(/sendInitialEvents/)).toBe(3)
  })

  it.each(['status', 'event'] as const)('lists again after a 410 as %s, and never holds less than what is there', async (gone) => {
    const api = await fakeApi(...many(50))
    api.faults.gone = gone
    const r = run(api)
    await synced(r)
    const before = r.emitted.length
    await api.stop()
    api.delete(service('ns1', 'svc7', ''))
    api.put(service('ns1', 'new', '10.9.0.1'))
    api.compact()
    await api.start()
    await until(() => r.held.has('service ns1/new') && !r.held.has('service ns1/svc7'))
    const news = r.emitted.slice(before).filter((record) => record.op !== 'state')
    expect(news.map((record) => record.op)).toEqual(['put', 'delete'])
  })

  it('sees through a watch that went silent by a second one beside it', async () => {
    const api = await fakeApi(service('ns1', 'a', '10.0.0.1'))
    const r = run(api)
    await synced(r)
    api.stallWatches()
    api.put(service('ns1', 'b', '10.0.0.2'))
    await until(() => r.held.has('service ns1/b'), 2000)
    await until(() => (r.metrics.values.get('coredns_kubernetes_watch_reopened_total{resource="services",reason="stalled"}') ?? 0) === 1)
    expect(api.asked(/sendInitialEvents/)).toBe(3)
    api.put(service('ns1', 'c', '10.0.0.3'))
    await until(() => r.held.has('service ns1/c'))
  })

  it('keeps the first watch where it is only quiet, and lets no event come twice', async () => {
    const api = await fakeApi(service('ns1', 'a', '10.0.0.1'))
    const r = run(api)
    await synced(r)
    await until(() => api.asked(/services\?.*resourceVersion=/) === 1)
    api.put(service('ns1', 'b', '10.0.0.2'))
    api.put(service('ns1', 'b', '10.0.0.3'))
    await until(() => r.emitted.some((record) => record.op === 'put' && record.name === 'b'))
    await until(() => r.emitted.some((record) => record.op === 'put' && 'addresses' in record && record.addresses?.[0] === '10.0.0.3'))
    const news = r.emitted.filter((record) => record.op === 'put' && record.name === 'b')
    expect(news).toHaveLength(2)
    expect([...r.metrics.values.keys()].filter((key) => /reopened.*services/.test(key))).toEqual([])
  })

  it('survives lines that are no events', async () => {
    const api = await fakeApi(service('ns1', 'a', '10.0.0.1'))
    const r = run(api)
    await synced(r)
    for (const garbage of ['{"type":"ADDED","object":{"metadata":\n', 'x\n', '{"type":"STRANGE","object":{}}\n', 'null\n', '[1]\n']) {
      await until(() => api.watches === 3)
      api.say(garbage)
      await until(() => api.watches < 3)
    }
    api.put(service('ns1', 'b', '10.0.0.2'))
    await until(() => r.held.has('service ns1/b'))
    expect(r.log.lines.join('\n')).toContain('unreadable event in a watch')
    expect(r.held.has('service ns1/a')).toBe(true)
  })

  it('does not turn hot where every watch is closed at once', async () => {
    const api = await fakeApi(service('ns1', 'a', '10.0.0.1'))
    api.faults.streaming = 'refused'
    const r = run(api)
    await synced(r)
    api.faults.shortWatches = true
    api.cutWatches()
    const before = api.requests.length
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(api.requests.length - before).toBeLessThan(60)
    api.faults.shortWatches = false
    api.put(service('ns1', 'b', '10.0.0.2'))
    await until(() => r.held.has('service ns1/b'))
  })

  it('leaves a bad object out, keeps what was known of it, and says so', async () => {
    const api = await fakeApi(service('ns1', 'bad', 'nonsense'), service('ns1', 'good', '10.0.0.1'))
    const r = run(api)
    await synced(r)
    expect([...r.held.keys()]).toEqual(['service ns1/good'])
    api.put(service('ns1', 'good', '10.0.0.300'))
    api.put(service('ns1', 'bad', '10.0.0.2'))
    await until(() => r.held.has('service ns1/bad'))
    expect(r.held.get('service ns1/good')).toMatchObject({ addresses: ['10.0.0.1'] })
    expect(r.log.lines[0]).toBe(
      '[WARNING] plugin/kubernetes: ignoring a bad object of services, "ns1/bad": spec.clusterIPs: "nonsense" is no IP address',
    )
  })

  it('goes on with other credentials after a 401', async () => {
    const api = await fakeApi(service('ns1', 'a', '10.0.0.1'))
    const r = run(api)
    await synced(r)
    api.faults.token = 'secret'
    api.cutWatches()
    await until(() => (r.metrics.values.get(requests('401', api)) ?? 0) > 3)
    expect(r.log.lines).toContain('[ERROR] plugin/kubernetes: Failed to watch: Unauthorized')
    expect(r.held.size).toBe(1)
    api.faults.token = undefined
    api.put(service('ns1', 'b', '10.0.0.2'))
    await until(() => r.held.has('service ns1/b'))
  })
})

describe('pods', () => {
  const pod = (name: string, podIP: string | undefined, over: object = {}): KubeObject => ({
    kind: 'Pod',
    metadata: { name, namespace: 'ns1', labels: { a: 'b' }, ...over },
    status: { phase: 'Running', ...(podIP && { podIP }) },
  })
  it('come when they have an address, stay while they terminate, go when they are gone', async () => {
    const api = await fakeApi(
      pod('a', '10.1.0.1'),
      pod('b', undefined),
      pod('c', '10.1.0.3', { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    )
    const r = run(api, { needs: { pods: true } })
    await synced(r)
    expect([...r.held.keys()]).toEqual(['pod ns1/a'])
    expect(api.asked(/pods\?.*fieldSelector=status.phase%21%3DSucceeded/)).toBe(1)
    api.put(pod('a', '10.1.0.1', { deletionTimestamp: '2026-01-01T00:00:00Z' }))
    api.put(pod('b', '10.1.0.2'))
    await until(() => r.held.has('pod ns1/b'))
    expect(r.held.has('pod ns1/a')).toBe(true)
    api.delete(pod('a', ''))
    await until(() => !r.held.has('pod ns1/a'))
  })
})

describe('programming latency', () => {
  const TRIGGER = 'endpoints.kubernetes.io/last-change-trigger-time'
  it('is counted by the kind of the service', async () => {
    const api = await fakeApi(service('ns1', 'a', '10.0.0.1'), service('ns1', 'h', 'None'))
    const r = run(api)
    await synced(r)
    for (const [name, time] of [
      ['a', new Date().toISOString()],
      ['h', '2026-01-01T00:00:00.123456789+02:00'],
      ['unknown', new Date().toISOString()],
      ['a', 'yesterday'],
    ] as const) {
      const object = slice('ns1', name, `${name}-${time.length}`, ['10.1.0.1'])
      object.metadata.annotations = { [TRIGGER]: time }
      api.put(object)
    }
    await until(() => r.held.has('slice ns1/a-9'))
    const count = (kind: string) =>
      r.metrics.values.get(`coredns_kubernetes_dns_programming_duration_seconds_count{service_kind="${kind}"}`)
    expect(count('cluster_ip')).toBe(1)
    expect(count('headless_with_selector')).toBe(1)
    expect(r.log.lines).toEqual([
      `[WARNING] DnsProgrammingLatency cannot be calculated for Endpoints 'ns1/a-9'; invalid "${TRIGGER}" annotation RFC3339 value of "yesterday"`,
    ])
  })
})
