/** Changes: seen at once, by the controllers' hand or ours, one by one or thousands. */
import { expect, it } from 'vitest'
import { until } from '../support/process.js'
import { alike, type Question } from './compare.js'
import { namespace, pod, running, service, slice } from './harness/objects.js'
import type { World } from './world.js'

const NS = 'e2e-changes'
const name = (labels: string): string => `${labels}.${NS}.svc.cluster.local`

export function changes(get: () => World): void {
  it('are answered within 20 ms after the server could read them', async () => {
    const { api, ours, proxy } = get()
    await api.create('namespaces', namespace(NS))
    await api.create('services', service(NS, 'moving', { clusterIP: 'None' }))
    await api.create('endpointslices', slice(NS, 'moving-1', 'moving', [{ address: '10.245.0.0' }]))
    await ours.sees(['NOERROR', '10.245.0.0'], name('moving'))
    const afterRead: number[] = []
    const whole: number[] = []
    for (let i = 1; i <= 40; i++) {
      const address = `10.245.0.${i}`
      const started = performance.now()
      const changed = api.patch('endpointslices', NS, 'moving-1', { endpoints: [{ addresses: [address] }] })
      for (;;) {
        const asked = performance.now()
        const [first] = await ours.answers(name('moving'))
        const heard = proxy.lastEvent
        if (first !== address) continue
        // The answer may have been made before the octets of another event went through; it never counts below zero.
        afterRead.push(Math.max(0, asked - Math.max(heard, started)))
        whole.push(performance.now() - started)
        break
      }
      await changed
    }
    console.log(`[e2e] change to answer: after the event was read ${figures(afterRead)}; from the request to the API ${figures(whole)}`)
    expect(median(afterRead)).toBeLessThan(20)
  })

  it('of every kind: create, change, delete, and the name taken again', async () => {
    const { api, ours } = get()
    await ours.sees(['NXDOMAIN'], name('web'))
    const created = await api.create('services', service(NS, 'web', { ipFamilyPolicy: 'SingleStack' }))
    await ours.sees(['NOERROR', created.spec.clusterIP], name('web'))
    await api.patch('services', NS, 'web', { spec: { ports: [{ name: 'other', port: 8080, protocol: 'TCP' }] } })
    await ours.sees(['NOERROR', `0 100 8080 ${name('web')}.`], name('_other._tcp.web'), 'SRV')
    await ours.sees(['NXDOMAIN'], name('_http._tcp.web'), 'SRV')
    await api.patch('services', NS, 'web', { spec: { type: 'NodePort' } })
    await ours.sees(['NOERROR', created.spec.clusterIP], name('web'))
    await api.patch('services', NS, 'web', { spec: { type: 'ExternalName', externalName: 'a.example', clusterIP: null, clusterIPs: null } })
    await ours.sees(['NOERROR', 'a.example.'], name('web'), 'CNAME')
    await api.delete('services', NS, 'web')
    await ours.sees(['NXDOMAIN'], name('web'), 'CNAME')
    await api.create('services', service(NS, 'web', { clusterIP: 'None' }))
    await api.create('endpointslices', slice(NS, 'web-x', 'web', [{ address: '10.245.1.1' }]))
    await ours.sees(['NOERROR', '10.245.1.1'], name('web'))
  })

  it.skipIf(!process.env.E2E_BINARIES)('pods become ready and unready, slices by the controller', async () => {
    const { api, ours } = get()
    await api.create('nodes', { kind: 'Node', metadata: { name: 'node-1' } })
    await api.create('services', service(NS, 'set', { clusterIP: 'None', selector: { app: 'set' } }))
    await api.create('services', service(NS, 'eager', { clusterIP: 'None', selector: { app: 'set' }, publishNotReadyAddresses: true }))
    const addresses = ['10.245.2.1', '10.245.2.2', '10.245.2.3']
    for (const [i, address] of addresses.entries()) {
      await api.create('pods', pod(NS, `set-${i}`, { app: 'set' }, { hostname: `set-${i}`, subdomain: 'set' }))
      await api.patch('pods', NS, `set-${i}`, running(address, false), '/status')
    }
    await ours.sees(['NOERROR', ...addresses], name('eager'))
    await ours.sees(['NXDOMAIN'], name('set'))
    for (const [i, address] of addresses.entries()) await api.patch('pods', NS, `set-${i}`, running(address), '/status')
    await ours.sees(['NOERROR', ...addresses], name('set'))
    await ours.sees(['NOERROR', '10.245.2.2'], name('set-1.set'))
    await api.patch('pods', NS, 'set-1', running('10.245.2.2', false), '/status')
    await ours.sees(['NOERROR', '10.245.2.1', '10.245.2.3'], name('set'))
    await ours.sees(['NXDOMAIN'], name('set-1.set'))
    await api.delete('pods', NS, 'set-0')
    await ours.sees(['NOERROR', '10.245.2.3'], name('set'))
    const { body } = await ours.http(ours.metrics, '/metrics')
    expect(body).toMatch(/dns_programming_duration_seconds_count\{service_kind="headless_with_selector"\} [1-9]/)
    await alike(get(), [
      [name('set'), 'A'],
      [name('eager'), 'A'],
      [name('_http._tcp.set'), 'SRV'],
    ])
  })

  it('a headless service of 1,000 endpoints in ten slices, whole by TCP', async () => {
    const { api, ours } = get()
    await api.create('services', service(NS, 'crowd', { clusterIP: 'None' }))
    const all: string[] = []
    for (let s = 0; s < 10; s++) {
      const endpoints = Array.from({ length: 100 }, (_, i) => ({ address: `10.250.${s}.${i}` }))
      all.push(...endpoints.map(({ address }) => address))
      await api.create('endpointslices', slice(NS, `crowd-${s}`, 'crowd', endpoints))
    }
    await ours.sees(['NOERROR', ...all], name('crowd'))
    await ours.sees(['NOERROR', '10.250.7.7'], name('10-250-7-7.crowd'))
    await alike(get(), [[name('crowd'), 'A']])
  })

  it('a namespace that is deleted takes its names along', async () => {
    const { api, ours } = get()
    await api.delete('namespaces', '', NS)
    await ours.sees(['NXDOMAIN'], name('moving'), 'A', 60_000)
    await ours.sees(['NXDOMAIN'], `${NS}.svc.cluster.local`, 'A', 60_000)
    await until(
      () =>
        api.get(`/api/v1/namespaces/${NS}`).then(
          () => false,
          () => true,
        ),
      60_000,
      () => 'the namespace stays',
    )
    const questions: Question[] = ['moving', 'web', 'set', 'crowd'].map((one) => [name(one), 'A'])
    await alike(get(), questions)
  })
}

const median = (list: readonly number[]): number => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)] ?? 0
function figures(list: readonly number[]): string {
  const sorted = list.toSorted((a, b) => a - b)
  return `median ${median(list).toFixed(1)} ms, worst ${sorted.at(-1)?.toFixed(1)} ms of ${list.length}`
}
