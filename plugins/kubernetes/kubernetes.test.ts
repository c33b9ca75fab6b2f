import { describe, expect, test } from 'vitest'
import { FakeClock, fakeBlock, lastHandler, query } from '../../src/plugins/testing.js'
import { gone, namespace, port, rig, service, slice, synced } from '../../test/fakes/kubernetes-rig.js'
import type { ClusterRecord, StateRecord } from './objects.js'
import { isKubernetesView } from './view.js'

const http = [port('http', 80)]
const cluster: ClusterRecord[] = [
  namespace('prod'),
  namespace('empty'),
  service('prod/web', ['10.0.0.1'], http),
  service('prod/dual', ['10.0.0.2', 'fd00::2'], http),
  service('prod/portless', ['10.0.0.3']),
  service('prod/dns', ['10.0.0.10'], [port('dns', 53, 'UDP'), port('dns-tcp', 53), port('metrics', 9153)]),
  slice('prod/web-1', 'web', ['10.1.0.1'], { ports: http }),
  service('prod/db', ['None'], [port('pg', 5432)]),
  slice('prod/db-1', 'db', ['10.1.0.10', '10.1.0.11', '10.1.0.12'], { hostnames: ['db-0', 'db-1', ''], ports: [port('pg', 5432)] }),
  slice('prod/db-2', 'db', ['fd01::10'], { hostnames: ['db-0'], ports: [port('pg', 5432)] }),
  service('prod/nobody', ['None'], http),
  service('hidden/web', ['10.0.0.66'], http),
  synced,
]
const SOA = 'cluster.local. 5 SOA 1700000000 5'
const zone = 'kubernetes cluster.local'

describe('services', () => {
  const { text } = rig(zone, cluster)
  test.each([
    ['web.prod.svc.cluster.local.', 'A', 'NOERROR aa | web.prod.svc.cluster.local. 5 A 10.0.0.1 |  |'],
    ['web.prod.svc.cluster.local.', 'AAAA', `NOERROR aa |  | ${SOA} |`],
    ['web.prod.svc.cluster.local.', 'MX', `NOERROR aa |  | ${SOA} |`],
    ['web.prod.svc.cluster.local.', 'TXT', `NOERROR aa |  | ${SOA} |`],
    ['web.prod.svc.cluster.local.', 'PTR', `NOERROR aa |  | ${SOA} |`],
    ['web.prod.svc.cluster.local.', 'CNAME', `NOERROR aa |  | ${SOA} |`],
    ['dual.prod.svc.cluster.local.', 'AAAA', 'NOERROR aa | dual.prod.svc.cluster.local. 5 AAAA fd00::2 |  |'],
    [
      'web.prod.svc.cluster.local.',
      'SRV',
      'NOERROR aa | web.prod.svc.cluster.local. 5 SRV 100 80 web.prod.svc.cluster.local. |  | web.prod.svc.cluster.local. 5 A 10.0.0.1',
    ],
    [
      'dual.prod.svc.cluster.local.',
      'SRV',
      'NOERROR aa | dual.prod.svc.cluster.local. 5 SRV 50 80 dual.prod.svc.cluster.local. |  | dual.prod.svc.cluster.local. 5 A 10.0.0.2; dual.prod.svc.cluster.local. 5 AAAA fd00::2',
    ],
    [
      '_dns._udp.dns.prod.svc.cluster.local.',
      'SRV',
      'NOERROR aa | _dns._udp.dns.prod.svc.cluster.local. 5 SRV 100 53 dns.prod.svc.cluster.local. |  | dns.prod.svc.cluster.local. 5 A 10.0.0.10',
    ],
    ['_dns._udp.dns.prod.svc.cluster.local.', 'A', 'NOERROR aa | _dns._udp.dns.prod.svc.cluster.local. 5 A 10.0.0.10 |  |'],
    ['_dns._tcp.dns.prod.svc.cluster.local.', 'SRV', `NXDOMAIN aa |  | ${SOA} |`],
    ['portless.prod.svc.cluster.local.', 'A', 'NOERROR aa | portless.prod.svc.cluster.local. 5 A 10.0.0.3 |  |'],
    ['portless.prod.svc.cluster.local.', 'SRV', `NOERROR aa |  | ${SOA} |`],
    ['10-1-0-1.web.prod.svc.cluster.local.', 'A', 'NOERROR aa | 10-1-0-1.web.prod.svc.cluster.local. 5 A 10.1.0.1 |  |'],
    ['10-1-0-2.web.prod.svc.cluster.local.', 'A', `NXDOMAIN aa |  | ${SOA} |`],
    ['absent.prod.svc.cluster.local.', 'A', `NXDOMAIN aa |  | ${SOA} |`],
    ['web.absent.svc.cluster.local.', 'A', `NXDOMAIN aa |  | ${SOA} |`],
    ['web.hidden.svc.cluster.local.', 'A', `NXDOMAIN aa |  | ${SOA} |`],
    ['empty.svc.cluster.local.', 'A', `NOERROR aa |  | ${SOA} |`],
    ['svc.cluster.local.', 'A', `NOERROR aa |  | ${SOA} |`],
    ['cluster.local.', 'HINFO', `NOERROR aa |  | ${SOA} |`],
    ['cluster.local.', 'SOA', `NOERROR aa | ${SOA} |  |`],
    ['dns-version.cluster.local.', 'TXT', 'NOERROR aa | dns-version.cluster.local. 28800 TXT 1.1.0 |  |'],
    ['dns-version.cluster.local.', 'A', `NOERROR aa |  | ${SOA} |`],
    ['a.b.c.d.web.prod.svc.cluster.local.', 'A', `NXDOMAIN aa |  | ${SOA} |`],
    ['www.example.cluster.local.', 'A', `NXDOMAIN aa |  | ${SOA} |`],
    ['WEB.Prod.svc.CLUSTER.local.', 'A', 'NOERROR aa | WEB.Prod.svc.CLUSTER.local. 5 A 10.0.0.1 |  |'],
    ['WEB.Prod.svc.CLUSTER.local.', 'AAAA', 'NOERROR aa |  | CLUSTER.local. 5 SOA 1700000000 5 |'],
    ['cluster.local.', 'AXFR', 'REFUSED |  |  |'],
  ])('%s %s', async (name, type, expected) => {
    expect(await text(name, type)).toBe(expected.trim())
  })

  test('are always current: replies are live and carry the name of the plugin', async () => {
    const { ask } = rig(zone, cluster)
    for (const name of ['web.prod.svc.cluster.local.', 'absent.prod.svc.cluster.local.'])
      expect(await ask(name, 'A')).toMatchObject({ live: true, by: 'kubernetes' })
  })

  test('ttl; the SOA keeps at most 300 s', async () => {
    const long = rig(`${zone} {\n ttl 3600\n}`, cluster)
    expect(await long.text('web.prod.svc.cluster.local.', 'A')).toContain('3600 A')
    expect(await long.text('x.prod.svc.cluster.local.', 'A')).toContain('cluster.local. 300 SOA 1700000000 3600')
  })

  test('namespaces that are not listed are hidden', async () => {
    const { text: ask } = rig(`${zone} {\n namespaces empty\n}`, cluster)
    expect(await ask('web.prod.svc.cluster.local.', 'A')).toMatch(/^NXDOMAIN/)
    expect(await ask('empty.svc.cluster.local.', 'A')).toMatch(/^NOERROR/)
  })

  test('ignore empty_service', async () => {
    const { text: ask } = rig(`${zone} {\n ignore empty_service\n}`, cluster)
    expect(await ask('web.prod.svc.cluster.local.', 'A')).toMatch(/^NOERROR/)
    expect(await ask('dual.prod.svc.cluster.local.', 'A')).toMatch(/^NXDOMAIN/)
  })
})

describe('headless services', () => {
  const { text, apply } = rig(zone, cluster)
  test.each([
    ['db.prod.svc.cluster.local.', 'A', /^NOERROR aa \| .*10\.1\.0\.10; .*10\.1\.0\.11; .*10\.1\.0\.12 \|/],
    ['db.prod.svc.cluster.local.', 'AAAA', /AAAA fd01::10/],
    ['db-1.db.prod.svc.cluster.local.', 'A', /^NOERROR aa \| db-1\S+ 5 A 10\.1\.0\.11 \|/],
    ['db-0.db.prod.svc.cluster.local.', 'AAAA', /fd01::10/],
    ['10-1-0-12.db.prod.svc.cluster.local.', 'A', /^NOERROR aa \| 10-1-0-12\S+ 5 A 10\.1\.0\.12 \|/],
    ['10-1-0-11.db.prod.svc.cluster.local.', 'A', /^NXDOMAIN/],
    ['nobody.prod.svc.cluster.local.', 'A', /^NXDOMAIN/],
    [
      '_pg._tcp.db.prod.svc.cluster.local.',
      'SRV',
      /SRV 25 5432 db-0\.db\.prod.* SRV 25 5432 db-1\..* SRV 25 5432 10-1-0-12\.db\..*\| {2}\| .*db-0\S+ 5 A 10\.1\.0\.10; .*db-0\S+ 5 AAAA fd01::10/,
    ],
    ['db-0.db.prod.svc.cluster.local.', 'SRV', /SRV 50 5432 db-0\.db\.prod\.svc\.cluster\.local\. \|/],
  ])('%s %s', async (name, type, expected) => {
    expect(await text(name, type)).toMatch(expected)
  })

  test('an endpoint that moves to another slice is there once, all the time', async () => {
    const name = 'move.prod.svc.cluster.local.'
    apply(service('prod/move', ['None']), slice('prod/m-1', 'move', ['10.2.0.1', '10.2.0.2']))
    apply(slice('prod/m-2', 'move', ['10.2.0.2']))
    expect(await text(name, 'A')).toMatch(/\| \S+ 5 A 10\.2\.0\.1; \S+ 5 A 10\.2\.0\.2 \|/)
    apply(gone('slice', 'prod/m-1'))
    expect(await text(name, 'A')).toMatch(/\| \S+ 5 A 10\.2\.0\.2 \|/)
    apply(gone('slice', 'prod/m-2'))
    expect(await text(name, 'A')).toMatch(/^NXDOMAIN/)
  })

  test('Endpoints count while there is no slice', async () => {
    apply(service('prod/old', ['None']), slice('prod/old', 'old', ['10.3.0.1'], { kind: 'endpoints' }))
    expect(await text('old.prod.svc.cluster.local.', 'A')).toContain('A 10.3.0.1')
    apply(slice('prod/old-1', 'old', ['10.3.0.2']))
    expect(await text('old.prod.svc.cluster.local.', 'A')).toMatch(/\| \S+ 5 A 10\.3\.0\.2 \|/)
    apply(gone('slice', 'prod/old-1'))
    expect(await text('old.prod.svc.cluster.local.', 'A')).toContain('A 10.3.0.1')
  })

  test('endpoint_pod_names', async () => {
    const records = [
      namespace('p'),
      service('p/h', ['None']),
      slice('p/h-1', 'h', ['10.4.0.1', '10.4.0.2'], { pods: ['h-abc', ''] }),
      synced,
    ]
    const named = rig(`${zone} {\n endpoint_pod_names\n}`, records)
    expect(await named.text('h-abc.h.p.svc.cluster.local.', 'A')).toContain('A 10.4.0.1')
    expect(await named.text('10-4-0-1.h.p.svc.cluster.local.', 'A')).toMatch(/^NXDOMAIN/)
    expect(await named.text('10-4-0-2.h.p.svc.cluster.local.', 'A')).toContain('A 10.4.0.2')
  })

  test('an IPv6 endpoint that ends in zeros has a 0 for its last label part', async () => {
    apply(service('prod/six', ['None']), slice('prod/six-1', 'six', ['2001:db8:3333:4444:5555:6666::']))
    expect(await text('2001-db8-3333-4444-5555-6666--0.six.prod.svc.cluster.local.', 'AAAA')).toContain(
      'AAAA 2001:db8:3333:4444:5555:6666::',
    )
  })

  test('a service may have thousands of endpoints', async () => {
    const big = rig(zone, [namespace('p'), service('p/h', ['None']), synced])
    for (let s = 0; s < 15; s++) {
      const numbers = Array.from({ length: 100 }, (_, i) => s * 100 + i)
      const addresses = numbers.map((n) => `10.9.${n >> 8}.${n & 255}`)
      big.apply(slice(`p/h-${s}`, 'h', addresses, { hostnames: numbers.map((n) => `node-${n}`) }))
    }
    expect((await big.ask('h.p.svc.cluster.local.', 'A')).answers).toHaveLength(1500)
    expect(await big.text('node-1499.h.p.svc.cluster.local.', 'A')).toContain('A 10.9.5.219')
  })
})

describe('pods', () => {
  const records: ClusterRecord[] = [
    namespace('p'),
    namespace('q'),
    { op: 'put', kind: 'pod', namespace: 'p', name: 'a', address: '10.5.0.1', labels: { app: 'x' } },
    { op: 'put', kind: 'pod', namespace: 'p', name: 'six', address: 'fd05::1' },
    synced,
  ]
  test.each([
    ['disabled', '10-5-0-1.p.pod.cluster.local.', 'A', 'NXDOMAIN'],
    ['disabled', 'p.pod.cluster.local.', 'A', 'NXDOMAIN'],
    ['disabled', 'pod.cluster.local.', 'A', 'NOERROR'],
    ['insecure', '10-5-0-9.p.pod.cluster.local.', 'A', '10.5.0.9'],
    ['insecure', 'fd05--9.p.pod.cluster.local.', 'AAAA', 'fd05::9'],
    ['insecure', 'fd05--9.p.pod.cluster.local.', 'A', 'NOERROR aa |  | cluster'],
    ['insecure', '10-5-0.p.pod.cluster.local.', 'A', 'NXDOMAIN'],
    ['insecure', '10-5-0-256.p.pod.cluster.local.', 'A', 'NXDOMAIN'],
    ['insecure', '10\\.5\\.0\\.1.p.pod.cluster.local.', 'A', 'NXDOMAIN'],
    ['insecure', '10-5-0-1.x.pod.cluster.local.', 'A', 'NXDOMAIN'],
    ['insecure', 'p.pod.cluster.local.', 'A', 'NOERROR'],
    ['verified', '10-5-0-1.p.pod.cluster.local.', 'A', '10.5.0.1'],
    ['verified', 'fd05--1.p.pod.cluster.local.', 'AAAA', 'fd05::1'],
    ['verified', '10-5-0-1.q.pod.cluster.local.', 'A', 'NXDOMAIN'],
    ['verified', '10-5-0-2.p.pod.cluster.local.', 'A', 'NXDOMAIN'],
  ])('%s %s %s', async (mode, name, type, expected) => {
    expect(await rig(`${zone} {\n pods ${mode}\n}`, records).text(name, type)).toContain(expected)
  })

  test('a pod that changes its address is found by the new one only', async () => {
    const { text, apply } = rig(`${zone} {\n pods verified\n}`, records)
    apply({ op: 'put', kind: 'pod', namespace: 'p', name: 'a', address: '10.5.0.7' })
    expect(await text('10-5-0-7.p.pod.cluster.local.', 'A')).toContain('10.5.0.7')
    expect(await text('10-5-0-1.p.pod.cluster.local.', 'A')).toMatch(/^NXDOMAIN/)
    apply(gone('pod', 'p/a'))
    expect(await text('10-5-0-7.p.pod.cluster.local.', 'A')).toMatch(/^NXDOMAIN/)
  })

  test('metadata tells the client pod and the parts of the name', () => {
    const { plugin } = rig(`${zone} {\n pods verified\n}`, records)
    const values = metadataOf(plugin, '_http._tcp.web.p.svc.cluster.local.', '10.5.0.1')
    expect(values).toEqual({
      'kubernetes/client-namespace': 'p',
      'kubernetes/client-pod-name': 'a',
      'kubernetes/client-label/app': 'x',
      'kubernetes/port-name': 'http',
      'kubernetes/protocol': 'tcp',
      'kubernetes/endpoint': '',
      'kubernetes/service': 'web',
      'kubernetes/namespace': 'p',
      'kubernetes/kind': 'svc',
    })
    expect(metadataOf(plugin, 'x.y.cluster.local.', '10.5.0.2')).toEqual({ 'kubernetes/parse-error': 'invalid query name' })
    expect(metadataOf(plugin, 'example.org.', '10.5.0.2')).toEqual({})
  })
})

function metadataOf(plugin: { metadata(q: ReturnType<typeof query>): void }, name: string, address: string): Record<string, string> {
  const q = query(name, 'A', { address })
  q.metadata = new Map()
  plugin.metadata(q)
  return Object.fromEntries([...q.metadata].map(([key, value]) => [key, value()]))
}

describe('reverse names', () => {
  const corefile = 'kubernetes cluster.local 10.in-addr.arpa ip6.arpa'
  const { text } = rig(corefile, cluster)
  const rev = '10.in-addr.arpa. 5 SOA 1700000000 5'
  test.each([
    ['1.0.0.10.in-addr.arpa.', 'PTR', 'NOERROR aa | 1.0.0.10.in-addr.arpa. 5 PTR web.prod.svc.cluster.local. |  |'],
    ['10.0.1.10.in-addr.arpa.', 'PTR', 'NOERROR aa | 10.0.1.10.in-addr.arpa. 5 PTR db-0.db.prod.svc.cluster.local. |  |'],
    ['12.0.1.10.in-addr.arpa.', 'PTR', 'NOERROR aa | 12.0.1.10.in-addr.arpa. 5 PTR 10-1-0-12.db.prod.svc.cluster.local. |  |'],
    ['99.0.1.10.in-addr.arpa.', 'PTR', `NXDOMAIN aa |  | ${rev} |`],
    ['1.10.in-addr.arpa.', 'PTR', `NXDOMAIN aa |  | ${rev} |`],
    ['10.in-addr.arpa.', 'PTR', `NOERROR aa |  | ${rev} |`],
    ['1.0.0.10.in-addr.arpa.', 'A', `NOERROR aa |  | ${rev} |`],
    ['web.prod.svc.10.in-addr.arpa.', 'A', `NXDOMAIN aa |  | ${rev} |`],
    ['2.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa.', 'PTR', 'dual.prod.svc.cluster.local.'],
    ['0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.d.f.ip6.arpa.', 'PTR', 'db-0.db.prod.svc.cluster.local.'],
  ])('%s %s', async (name, type, expected) => {
    expect(await text(name, type)).toContain(expected.trim())
  })

  test('an endpoint of two services has both names, in an order that does not depend on history', async () => {
    const slices = ['b', 'a'].flatMap((name) => [service(`p/${name}`, ['None']), slice(`p/${name}-1`, name, ['10.0.0.9'])])
    const expected = /PTR 10-0-0-9\.a\.p\.svc\.cluster\.local\.; \S+ 5 PTR 10-0-0-9\.b\.p\.svc\.cluster\.local\. \|/
    for (const records of [slices, [...slices].reverse()]) {
      const { text: ask, apply } = rig(corefile, [namespace('p'), ...records, synced])
      expect(await ask('9.0.0.10.in-addr.arpa.', 'PTR')).toMatch(expected)
      apply(slice('p/b-2', 'b', ['10.0.0.9', '10.0.0.9']))
      expect(await ask('9.0.0.10.in-addr.arpa.', 'PTR')).toMatch(expected)
    }
  })

  test('hidden namespaces have none', async () => {
    const { text: ask } = rig('kubernetes cluster.local in-addr.arpa {\n namespaces empty\n}', cluster)
    expect(await ask('1.0.0.10.in-addr.arpa.', 'PTR')).toMatch(/^NXDOMAIN/)
    expect(await ask('10.0.1.10.in-addr.arpa.', 'PTR')).toMatch(/^NXDOMAIN/)
  })
})

describe('names that are not there', () => {
  test('fall through where the option says so', async () => {
    const last = lastHandler((q) => q.reply('next', 5))
    const { ask } = rig('kubernetes cluster.local in-addr.arpa {\n fallthrough in-addr.arpa\n}', cluster, { next: last.next })
    expect((await ask('99.0.1.10.in-addr.arpa.', 'PTR')).by).toBe('next')
    expect((await ask('1.0.0.10.in-addr.arpa.', 'PTR')).by).toBe('kubernetes')
    expect((await ask('absent.prod.svc.cluster.local.', 'A')).by).toBe('kubernetes')
    expect((await ask('example.org.', 'A')).by).toBe('next')
    expect(last.calls).toHaveLength(2)
  })

  test('are SERVFAIL until all is listed; what is known already answers', async () => {
    const { text, plugin, apply } = rig(zone, cluster.slice(0, -1))
    expect(plugin.ready()).toBe(false)
    expect(await text('absent.prod.svc.cluster.local.', 'A')).toBe('SERVFAIL aa |  | cluster.local. 5 SOA 0 5 |')
    expect(await text('web.prod.svc.cluster.local.', 'A')).toMatch(/^NOERROR/)
    apply(synced)
    expect(plugin.ready()).toBe(true)
    expect(await text('absent.prod.svc.cluster.local.', 'A')).toMatch(/^NXDOMAIN/)
  })
})

describe('name servers of the zone', () => {
  const block = { ...fakeBlock(), bind: ['127.0.0.1', '10.1.0.50', 'fd01::50'] }
  test('are the addresses served on while no service has them', async () => {
    const { plugin, text } = rig(zone, cluster, { block })
    await plugin.onStartup()
    expect(await text('cluster.local.', 'NS')).toBe(
      'NOERROR aa | cluster.local. 5 NS ns.dns.cluster.local. |  | ns.dns.cluster.local. 5 A 10.1.0.50; ns.dns.cluster.local. 5 AAAA fd01::50',
    )
    expect(await text('Cluster.Local.', 'NS')).toContain('Cluster.Local. 5 NS ns.dns.Cluster.Local.')
    expect(await text('ns.dns.cluster.local.', 'A')).toBe('NOERROR aa | ns.dns.cluster.local. 5 A 10.1.0.50 |  |')
    expect(await text('NS.dns.cluster.local.', 'AAAA')).toContain('NS.dns.cluster.local. 5 AAAA fd01::50')
    expect(await text('ns.dns.cluster.local.', 'TXT')).toMatch(/^NOERROR aa \| {2}\|/)
  })

  test('are the cluster service that this server is an endpoint of', async () => {
    const own = [service('prod/kube-dns', ['10.0.0.53']), slice('prod/kube-dns-1', 'kube-dns', ['10.1.0.50', '10.1.0.51'])]
    const { plugin, text } = rig(zone, [...cluster, ...own], { block })
    await plugin.onStartup()
    expect(await text('cluster.local.', 'NS')).toBe(
      'NOERROR aa | cluster.local. 5 NS kube-dns.prod.svc.cluster.local. |  | kube-dns.prod.svc.cluster.local. 5 A 10.0.0.53',
    )
    expect(await text('prod.svc.cluster.local.', 'NS')).toMatch(/^NOERROR aa \| {2}\|/)
    expect(await text('foo.cluster.local.', 'NS')).toMatch(/^NXDOMAIN/)
  })
})

describe('zonal names', () => {
  const records = [
    namespace('p'),
    service('p/h', ['None'], http),
    slice('p/h-1', 'h', ['10.6.0.1', '10.6.0.2', '10.6.0.3'], { zones: ['us-West-2a', 'corp.example.com', ''], ports: http }),
    service('p/vip', ['10.0.0.1'], http),
    synced,
  ]
  const { text } = rig(`${zone} {\n zonal\n}`, records)
  test.each([
    ['us-west-2a.pin._zone.h', 'A', /\| \S+ 5 A 10\.6\.0\.1 \|/],
    ['US-WEST-2A.pin._ZONE.h', 'A', /\| \S+ 5 A 10\.6\.0\.1 \|/],
    ['corp.example.com.pin._zone.h', 'A', /\| \S+ 5 A 10\.6\.0\.2 \|/],
    ['us-west-2a.pin._zone.h', 'SRV', /SRV 100 80 10-6-0-1\.h\.p\.svc\.cluster\.local\./],
    ['us-west-2a.pin._zone.h', 'TXT', /^NOERROR aa \| {2}\|/],
    ['nowhere.pin._zone.h', 'A', /^NOERROR aa \| {2}\|/],
    ['nowhere.pin._zone.h', 'TXT', /^NOERROR aa \| {2}\|/],
    ['nowhere.prefer._zone.h', 'A', /10\.6\.0\.1; .*10\.6\.0\.2; .*10\.6\.0\.3/],
    ['us-west-2a.prefer._zone.h', 'A', /\| \S+ 5 A 10\.6\.0\.1 \|/],
    ['us-west-2a.near._zone.h', 'A', /^NXDOMAIN/],
    ['us-west-2a.pin._zone.vip', 'A', /^NXDOMAIN/],
    ['us-west-2a.pin._zone.absent', 'A', /^NXDOMAIN/],
  ])('%s %s', async (name, type, expected) => {
    expect(await text(`${name}.p.svc.cluster.local.`, type)).toMatch(expected)
  })
  test('do not exist without the option', async () => {
    expect(await rig(zone, records).text('us-west-2a.pin._zone.h.p.svc.cluster.local.', 'A')).toMatch(/^NXDOMAIN/)
  })
})

describe('multi-cluster services', () => {
  const records: ClusterRecord[] = [
    namespace('p'),
    { op: 'put', kind: 'serviceimport', namespace: 'p', name: 'vip', addresses: ['10.7.0.1'], ports: http },
    { op: 'put', kind: 'serviceimport', namespace: 'p', name: 'none', addresses: ['10.7.0.2'] },
    { op: 'put', kind: 'serviceimport', namespace: 'p', name: 'h', headless: true, ports: http },
    slice('p/h-1', 'h', ['10.7.1.1'], { kind: 'mcslice', cluster: 'c1', ports: http }),
    slice('p/h-2', 'h', ['10.7.1.2'], { kind: 'mcslice', cluster: 'c2', hostnames: ['x'], ports: http }),
    synced,
  ]
  const { text } = rig('kubernetes cluster.local clusterset.local {\n multicluster clusterset.local\n}', records)
  test.each([
    ['vip.p.svc.clusterset.local.', 'A', /A 10\.7\.0\.1/],
    ['vip.p.svc.cluster.local.', 'A', /^NXDOMAIN/],
    ['none.p.svc.clusterset.local.', 'A', /^NXDOMAIN/],
    ['h.p.svc.clusterset.local.', 'A', /A 10\.7\.1\.1; .*A 10\.7\.1\.2/],
    ['10-7-1-1.c1.h.p.svc.clusterset.local.', 'A', /A 10\.7\.1\.1/],
    ['10-7-1-1.c2.h.p.svc.clusterset.local.', 'A', /^NXDOMAIN/],
    ['10-7-1-1.h.p.svc.clusterset.local.', 'A', /^NXDOMAIN/],
    ['_http._tcp.h.p.svc.clusterset.local.', 'SRV', /SRV 50 80 10-7-1-1\.c1\.h\.p\.svc.*SRV 50 80 x\.c2\.h\.p\.svc/],
    ['absent.p.svc.clusterset.local.', 'A', /clusterset\.local\. 5 SOA 1700000001 5/],
  ])('%s %s', async (name, type, expected) => {
    expect(await text(name, type)).toMatch(expected)
  })
})

describe('start', () => {
  const start = () => {
    const clock = new FakeClock()
    const made = rig(`${zone} {\n startup_timeout 2s\n}`, [], { clock })
    let done = false
    const waiting = Promise.resolve(made.plugin.onStartup()).then(() => {
      done = true
    })
    return { ...made, clock, waiting, isDone: () => done }
  }
  test('waits for the cluster, and says so', async () => {
    const { clock, ctx, apply, waiting, isDone } = start()
    clock.advance(1100)
    expect(isDone()).toBe(false)
    apply(synced)
    await waiting
    clock.advance(5000)
    expect(ctx.log.lines).toEqual(Array(2).fill('[INFO] plugin/kubernetes: waiting for Kubernetes API before starting server'))
  })
  test('goes on without it after startup_timeout', async () => {
    const { clock, ctx, waiting } = start()
    clock.advance(2000)
    await waiting
    expect(ctx.log.lines.at(-1)).toBe('[WARNING] plugin/kubernetes: starting server with unsynced Kubernetes API')
  })
})

test('other plugins see the cluster through its view', () => {
  const { plugin } = rig(`${zone} {\n namespaces prod\n}`, cluster)
  expect(isKubernetesView(plugin)).toBe(true)
  expect(plugin.zones.map(String)).toEqual(['cluster.local.'])
  expect([plugin.namespaceExists('prod'), plugin.namespaceExists('empty')]).toEqual([true, false])
  expect([plugin.serviceExists('prod', 'web'), plugin.serviceExists('prod', 'absent'), plugin.serviceExists('hidden', 'web')]).toEqual([
    true,
    false,
    false,
  ])
})

test('answers out of a snapshot say so to clients with EDNS, until it is replaced by a list', async () => {
  const { ask, apply } = rig(zone, [...cluster.slice(0, -1), { ...(synced as StateRecord), staleSince: 1_700_000_000 }])
  const options = async (size?: number) => (await ask('web.prod.svc.cluster.local.', 'A', size === undefined ? {} : { size })).edns?.options
  expect(await options(1232)).toEqual([{ code: 15, data: Buffer.from([0, 3]) }])
  expect(await options()).toBeUndefined()
  apply(synced)
  expect((await options(1232)) ?? []).toEqual([])
})
