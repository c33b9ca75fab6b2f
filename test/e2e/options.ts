/** What the options of the plugin show and hide, by selectors of the real API server; CoreDNS with the same options beside. */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { until } from '../support/process.js'
import { alike, type Question } from './compare.js'
import { ApiFailure, type Json } from './harness/api.js'
import { namespace, service, slice } from './harness/objects.js'
import { type Subject, type SubjectOptions, startSubject } from './harness/subject.js'
import type { World } from './world.js'

const A = 'e2e-options-a'
const B = 'e2e-options-b'
const SET = 'e2e-options-set'
const name = (labels: string, ns = A): string => `${labels}.${ns}.svc.cluster.local`

const labelled = (object: Json, labels: Json): Json => ({
  ...object,
  metadata: { ...object.metadata, labels: { ...object.metadata.labels, ...labels } },
})

export function options(get: () => World): void {
  const subjects: Subject[] = []
  /** Ours with these options, and CoreDNS if there is one: `alike` takes both. */
  const start = async (kubernetes: string, over: Partial<SubjectOptions> = {}): Promise<Pick<World, 'ours' | 'theirs'>> => {
    const whole = { kubernetes: `endpoint ${get().proxy.url}\n        ttl 5\n        ${kubernetes}`, ...over }
    const command = process.env.COREDNS
    const ours = await startSubject(whole)
    subjects.push(ours)
    const theirs = command ? await startSubject({ ...whole, command }) : undefined
    if (theirs !== undefined) subjects.push(theirs)
    return { ours, theirs }
  }
  const same = async (both: Pick<World, 'ours' | 'theirs'>, ...owners: string[]): Promise<void> =>
    alike(
      both,
      owners.map((owner): Question => [owner, 'A']),
    )

  beforeAll(async () => {
    const { api } = get()
    for (const [ns, team, net] of [
      [A, 'a', '10.248.1'],
      [B, 'b', '10.248.2'],
    ] as const) {
      await api.create('namespaces', labelled(namespace(ns), { team }))
      for (const [i, app] of ['web', 'db'].entries()) {
        await api.create('services', labelled(service(ns, app, { clusterIP: 'None' }), { app }))
        await api.create('endpointslices', labelled(slice(ns, `${app}-1`, app, [{ address: `${net}.${i + 1}` }]), { app }))
      }
    }
    await api.create('services', service(A, 'plain', { ipFamilyPolicy: 'SingleStack' }))
  })
  afterEach(async () => {
    for (const subject of subjects.splice(0)) await subject.stop()
  })
  afterAll(async () => {
    for (const ns of [A, B]) await get().api.delete('namespaces', '', ns)
  })

  it('namespaces', async () => {
    const both = await start(`namespaces ${A}`)
    await both.ours.sees(['NOERROR', '10.248.1.1'], name('web'))
    await both.ours.sees(['NXDOMAIN'], name('web', B))
    await same(both, name('web'), name('web', B), `${A}.svc.cluster.local`, `${B}.svc.cluster.local`)
  })

  it('namespace_labels, followed while labels change', async () => {
    const { api } = get()
    const both = await start('namespace_labels team=b')
    await both.ours.sees(['NXDOMAIN'], name('web'))
    await both.ours.sees(['NOERROR', '10.248.2.1'], name('web', B))
    await api.patch('namespaces', '', A, { metadata: { labels: { team: 'b' } } })
    await both.ours.sees(['NOERROR', '10.248.1.1'], name('web'))
    await same(both, name('web'), name('web', B))
    await api.patch('namespaces', '', A, { metadata: { labels: { team: 'a' } } })
    await both.ours.sees(['NXDOMAIN'], name('web'))
    await same(both, name('web'), name('web', B))
  })

  it('labels, followed while labels change', async () => {
    const { api } = get()
    const both = await start('labels app in (web)')
    await both.ours.sees(['NOERROR', '10.248.1.1'], name('web'))
    await both.ours.sees(['NXDOMAIN'], name('db'))
    for (const [kind, object] of [
      ['services', 'db'],
      ['endpointslices', 'db-1'],
    ] as const)
      await api.patch(kind, A, object, { metadata: { labels: { app: 'web' } } })
    await both.ours.sees(['NOERROR', '10.248.1.2'], name('db'))
    await same(both, name('web'), name('db'), name('db', B), name('plain'))
    for (const [kind, object] of [
      ['services', 'db'],
      ['endpointslices', 'db-1'],
    ] as const)
      await api.patch(kind, A, object, { metadata: { labels: { app: 'db' } } })
    await both.ours.sees(['NXDOMAIN'], name('db'))
    await same(both, name('db'))
  })

  it('noendpoints asks for no endpoints', async () => {
    const { api, proxy } = get()
    const since = proxy.requests.length
    const both = await start('noendpoints')
    const { spec } = await api.get(`/api/v1/namespaces/${A}/services/plain`)
    await both.ours.sees(['NOERROR', spec.clusterIP], name('plain'))
    await both.ours.sees(['NXDOMAIN'], name('web'))
    const listed = proxy.requests.slice(since).filter((path) => path.includes('sendInitialEvents'))
    expect(listed.filter((path) => path.includes('endpointslices'))).toEqual([])
    expect(listed.length).toBeGreaterThan(0)
    await same(both, name('plain'), name('web'), name('10-248-1-1.web'))
  })

  it('endpoint_pod_names', async () => {
    const { api } = get()
    const both = await start('endpoint_pod_names')
    const targetRef = { kind: 'Pod', namespace: A, name: 'web-7d9c5' }
    await api.patch('endpointslices', A, 'web-1', { endpoints: [{ addresses: ['10.248.1.1'], targetRef }] })
    await both.ours.sees(['NOERROR', '10.248.1.1'], name('web-7d9c5.web'))
    await both.ours.sees(['NOERROR', '10.248.1.2'], name('10-248-1-2.db'))
    await same(both, name('web-7d9c5.web'), name('10-248-1-1.web'), name('10-248-1-2.db'))
  })

  it('ignore empty_service', async () => {
    const { api } = get()
    const both = await start('ignore empty_service')
    await both.ours.sees(['NXDOMAIN'], name('plain'))
    await api.create('endpointslices', slice(A, 'plain-1', 'plain', [{ address: '10.248.1.9' }]))
    const { spec } = await api.get(`/api/v1/namespaces/${A}/services/plain`)
    await both.ours.sees(['NOERROR', spec.clusterIP], name('plain'))
    await same(both, name('plain'))
    await api.delete('endpointslices', A, 'plain-1')
    await both.ours.sees(['NXDOMAIN'], name('plain'))
    await same(both, name('plain'))
  })

  it.skipIf(!process.env.E2E_BINARIES)('multicluster: imports and their slices', async () => {
    const { api } = get()
    await installImports(get())
    await api.create('namespaces', namespace(SET))
    const ports = [{ name: 'http', port: 80, protocol: 'TCP' }]
    const imported = (owner: string, spec: Json): Json => ({
      apiVersion: 'multicluster.x-k8s.io/v1alpha1',
      kind: 'ServiceImport',
      metadata: { namespace: SET, name: owner },
      spec: { ports, ...spec },
    })
    await api.create('serviceimports', imported('one', { type: 'ClusterSetIP', ips: ['10.251.0.1'] }))
    await api.create('serviceimports', imported('many', { type: 'Headless' }))
    const piece = slice(SET, 'many-1', 'unused', [{ address: '10.251.1.1', hostname: 'h1' }])
    const labels = { 'multicluster.kubernetes.io/service-name': 'many', 'multicluster.kubernetes.io/source-cluster': 'cluster-1' }
    await api.create('endpointslices', { ...piece, metadata: { ...piece.metadata, labels } })
    const zones = 'cluster.local clusterset.local in-addr.arpa ip6.arpa'
    const both = await start('multicluster clusterset.local', { zones })
    const inSet = (owner: string): string => `${owner}.${SET}.svc.clusterset.local`
    await both.ours.sees(['NOERROR', '10.251.0.1'], inSet('one'))
    await both.ours.sees(['NOERROR', '10.251.1.1'], inSet('many'))
    await both.ours.sees(['NOERROR', '10.251.1.1'], inSet('h1.cluster-1.many'))
    await both.ours.sees(['NXDOMAIN'], name('one', SET))
    await same(both, ...['one', 'many', 'h1.cluster-1.many', 'absent'].map(inSet), name('one', SET))
    await api.delete('serviceimports', SET, 'one')
    await both.ours.sees(['NXDOMAIN'], inSet('one'))
    await same(both, inSet('one'))
    await api.delete('namespaces', '', SET)
  })
}

/** The definition of ServiceImports, as open as tests need it; usable once the server serves it. */
export async function installImports({ api }: World): Promise<void> {
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
  const names = { kind: 'ServiceImport', listKind: 'ServiceImportList', plural: 'serviceimports', singular: 'serviceimport' }
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: 'serviceimports.multicluster.x-k8s.io',
      annotations: { 'api-approved.kubernetes.io': 'https://github.com/kubernetes/enhancements/pull/1748' },
    },
    spec: {
      group: 'multicluster.x-k8s.io',
      scope: 'Namespaced',
      names,
      versions: [{ name: 'v1alpha1', served: true, storage: true, schema }],
    },
  }
  const list = (): Promise<boolean> =>
    api.get('/apis/multicluster.x-k8s.io/v1alpha1/serviceimports').then(
      () => true,
      () => false,
    )
  await api.create('customresourcedefinitions', definition).catch((error: unknown) => {
    if (!(error instanceof ApiFailure) || error.status !== 409) throw error
  })
  await until(list, 60_000, () => 'ServiceImports are not served')
}
