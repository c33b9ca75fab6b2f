/** Kubernetes DNS-Based Service Discovery 1.1.0, section by section, on objects that the API server has taken. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { alike, type Question } from './compare.js'
import type { Json } from './harness/api.js'
import { namespace, pod, ports, running, service, slice } from './harness/objects.js'
import type { World } from './world.js'

const NS = 'e2e-spec'
const ZONE = 'cluster.local'
const name = (labels: string): string => `${labels}.${NS}.svc.${ZONE}`

export function specification(get: () => World): void {
  let dual: Json
  let single: Json
  const asked: Question[] = []
  const sees = async (expected: readonly string[], owner: string, type: string): Promise<void> => {
    asked.push([owner, type])
    await get().ours.sees(expected, owner, type)
  }

  beforeAll(async () => {
    const { api } = get()
    await api.create('namespaces', namespace(NS))
    single = await api.create('services', service(NS, 'web', { ipFamilyPolicy: 'SingleStack' }))
    dual = await api.create('services', service(NS, 'dual', { ipFamilyPolicy: 'PreferDualStack', ports: ports.dns }))
    await api.create('services', service(NS, 'unnamed', { ports: ports.plain }))
    await api.create('services', service(NS, 'node', { type: 'NodePort' }))
    await api.create('services', service(NS, 'balanced', { type: 'LoadBalancer', externalIPs: ['192.0.2.9'] }))
    await api.create('services', service(NS, 'db', { clusterIP: 'None' }))
    await api.create('services', service(NS, 'nobody', { clusterIP: 'None' }))
    await api.create('services', service(NS, 'outside', { type: 'ExternalName', externalName: 'www.example.org', ports: undefined }))
    const endpoints = [{ address: '10.244.0.1', hostname: 'db-0' }, { address: '10.244.0.2' }, { address: '10.244.0.3', ready: false }]
    await api.create('endpointslices', slice(NS, 'db-a', 'db', endpoints))
    await api.create('endpointslices', slice(NS, 'db-b', 'db', [{ address: 'fd00:244::1', hostname: 'db-0' }]))
  })
  afterAll(() => get().api.delete('namespaces', '', NS))

  it('2.2 schema version', () => sees(['NOERROR', '"1.1.0"'], `dns-version.${ZONE}`, 'TXT'))

  it('2.3.1 cluster address, one family and two', async () => {
    await sees(['NOERROR', single.spec.clusterIP], name('web'), 'A')
    await sees(['NOERROR'], name('web'), 'AAAA')
    const [four, six] = dual.spec.clusterIPs.toSorted((a: string) => (a.includes(':') ? 1 : -1))
    await sees(['NOERROR', four], name('dual'), 'A')
    if (six !== undefined) await sees(['NOERROR', six], name('dual'), 'AAAA')
  })

  it('2.3.1 of every type of service', async () => {
    for (const one of ['node', 'balanced']) {
      const { spec } = await get().api.get(`/api/v1/namespaces/${NS}/services/${one}`)
      await sees(['NOERROR', ...spec.clusterIPs.filter((ip: string) => !ip.includes(':'))], name(one), 'A')
    }
  })

  it('2.3.2 SRV of named ports, none for unnamed ones', async () => {
    await sees(['NOERROR', `0 100 80 ${name('web')}.`], name('_http._tcp.web'), 'SRV')
    const weight = Math.floor(100 / dual.spec.clusterIPs.length)
    await sees(['NOERROR', `0 ${weight} 53 ${name('dual')}.`], name('_dns._udp.dual'), 'SRV')
    await sees(['NOERROR', `0 ${weight} 53 ${name('dual')}.`], name('_dns-tcp._tcp.dual'), 'SRV')
    await sees(['NXDOMAIN'], name('_dns._tcp.dual'), 'SRV')
    await sees(['NXDOMAIN'], name('_http._tcp.unnamed'), 'SRV')
  })

  it('2.3.3 PTR of cluster addresses', async () => {
    for (const ip of dual.spec.clusterIPs) await sees(['NOERROR', `${name('dual')}.`], reverse(ip), 'PTR')
  })

  it('2.4.1 headless: all ready endpoints, and each by its name', async () => {
    await sees(['NOERROR', '10.244.0.1', '10.244.0.2'], name('db'), 'A')
    await sees(['NOERROR', 'fd00:244::1'], name('db'), 'AAAA')
    await sees(['NOERROR', '10.244.0.1'], name('db-0.db'), 'A')
    await sees(['NOERROR', 'fd00:244::1'], name('db-0.db'), 'AAAA')
    await sees(['NOERROR', '10.244.0.2'], name('10-244-0-2.db'), 'A')
    await sees(['NXDOMAIN'], name('10-244-0-3.db'), 'A')
    await sees(['NXDOMAIN'], name('nobody'), 'A')
  })

  it('2.4.2 headless: SRV of named ports, by endpoint', () =>
    sees(['NOERROR', `0 33 80 ${name('10-244-0-2.db')}.`, `0 33 80 ${name('db-0.db')}.`], name('_http._tcp.db'), 'SRV'))

  it('2.4.3 PTR of endpoints', async () => {
    await sees(['NOERROR', `${name('db-0.db')}.`], reverse('10.244.0.1'), 'PTR')
    await sees(['NOERROR', `${name('10-244-0-2.db')}.`], reverse('10.244.0.2'), 'PTR')
    await sees(['NOERROR', `${name('db-0.db')}.`], reverse('fd00:244::1'), 'PTR')
  })

  it('2.5 external names', () => sees(['NOERROR', 'www.example.org.'], name('outside'), 'CNAME'))

  it('what is not there is NXDOMAIN, what has no such record NOERROR', async () => {
    await sees(['NXDOMAIN'], name('absent'), 'A')
    await sees(['NXDOMAIN'], `web.absent.svc.${ZONE}`, 'A')
    await sees(['NOERROR'], `${NS}.svc.${ZONE}`, 'A')
    await sees(['NOERROR'], name('web'), 'MX')
  })

  it('pod names, verified', async () => {
    const { api } = get()
    await api.create('pods', pod(NS, 'p', { app: 'p' }, { nodeName: undefined }))
    await api.patch('pods', NS, 'p', running('10.244.0.77'), '/status')
    await sees(['NOERROR', '10.244.0.77'], `10-244-0-77.${NS}.pod.${ZONE}`, 'A')
    await sees(['NXDOMAIN'], `10-244-0-78.${NS}.pod.${ZONE}`, 'A')
  })

  it('is what CoreDNS answers, too', async () => {
    expect(asked.length).toBeGreaterThan(25)
    // Ours has the CNAME of an alias in more cases; the direct question is alike.
    await alike(get(), asked)
  })
}

export function reverse(address: string): string {
  if (!address.includes(':')) return `${address.split('.').reverse().join('.')}.in-addr.arpa`
  const [head = '', tail = ''] = address.split('::')
  const groups = (text: string): string[] => (text === '' ? [] : text.split(':'))
  const missing = 8 - groups(head).length - groups(tail).length
  const all = address.includes('::') ? [...groups(head), ...Array<string>(missing).fill('0'), ...groups(tail)] : address.split(':')
  const digits = all.map((group) => group.padStart(4, '0')).join('')
  return `${[...digits].reverse().join('.')}.ip6.arpa`
}
