import { describe, expect, test } from 'vitest'
import { formatRecord, Name } from '../../src/dns/index.js'
import { alias, namespace, port, rig, service, slice, synced } from '../../test/fakes/kubernetes-rig.js'
import type { ClusterRecord } from './objects.js'

const http = [port('http', 80)]
const cluster: ClusterRecord[] = [
  namespace('prod'),
  service('prod/web', ['10.0.0.1', 'fd00::1'], [port('http', 80), port('', 81)]),
  service('prod/portless', ['10.0.0.3']),
  service('prod/db', ['None'], http),
  slice('prod/db-1', 'db', ['10.1.0.10', '10.1.0.11'], { hostnames: ['db-0', ''], ports: http }),
  slice('prod/db-2', 'db', ['10.1.0.11'], { ports: http }),
  service('prod/nobody', ['None'], http),
  alias('prod/out', 'www.example.org'),
  alias('prod/address', '192.0.2.1'),
  service('hidden/web', ['10.0.0.66'], http),
  synced,
]

function zone(corefile: string, records: readonly ClusterRecord[], name: string, serial = 0): string[] | undefined {
  const { plugin } = rig(corefile, records)
  const all = plugin.transfer(Name.parse(name), serial)
  return all && [...all].map((rr) => formatRecord(rr).replaceAll('\t', ' ').replace(' IN ', ' '))
}

describe('the records of a cluster zone', () => {
  const records = zone('kubernetes cluster.local 10.0.0.0/8', cluster, 'CLUSTER.local.') ?? []

  test('begin and end with the SOA, with every exposed service in between', () => {
    const soa = 'cluster.local. 5 SOA ns.dns.cluster.local. hostmaster.cluster.local. 1700000000 7200 1800 86400 5'
    expect([records[0], records.at(-1)]).toEqual([soa, soa])
    expect(records.slice(1, -1).filter((line) => !/ NS |^ns\.dns/.test(line))).toEqual([
      'db.prod.svc.cluster.local. 5 A 10.1.0.10',
      'db-0.db.prod.svc.cluster.local. 5 A 10.1.0.10',
      '_http._tcp.db.prod.svc.cluster.local. 5 SRV 0 50 80 db-0.db.prod.svc.cluster.local.',
      'db.prod.svc.cluster.local. 5 A 10.1.0.11',
      '10-1-0-11.db.prod.svc.cluster.local. 5 A 10.1.0.11',
      '_http._tcp.db.prod.svc.cluster.local. 5 SRV 0 50 80 10-1-0-11.db.prod.svc.cluster.local.',
      'out.prod.svc.cluster.local. 5 CNAME www.example.org.',
      'portless.prod.svc.cluster.local. 5 A 10.0.0.3',
      'web.prod.svc.cluster.local. 5 A 10.0.0.1',
      'web.prod.svc.cluster.local. 5 AAAA fd00::1',
      'web.prod.svc.cluster.local. 5 SRV 0 100 80 web.prod.svc.cluster.local.',
      '_http._tcp.web.prod.svc.cluster.local. 5 SRV 0 100 80 web.prod.svc.cluster.local.',
      'web.prod.svc.cluster.local. 5 SRV 0 100 81 web.prod.svc.cluster.local.',
    ])
  })

  test('are one SOA for a client that has this serial, and all for any other', () => {
    expect(zone('kubernetes cluster.local', cluster, 'cluster.local.', 1_700_000_000)).toHaveLength(1)
    expect(zone('kubernetes cluster.local', cluster, 'cluster.local.', 1_700_000_009)?.length).toBeGreaterThan(10)
  })

  test('are given for the very zone only', () => {
    for (const name of ['prod.svc.cluster.local.', 'local.', 'example.org.'])
      expect(zone('kubernetes cluster.local', cluster, name)).toBeUndefined()
  })

  test('leave out services without endpoints under ignore empty_service', () => {
    const text = zone('kubernetes cluster.local {\n ignore empty_service\n}', cluster, 'cluster.local.')?.join('\n')
    expect(text).toContain('db.prod')
    expect(text).not.toContain('web.prod')
  })

  test('a reverse zone has its apex alone', () => {
    const lines = zone('kubernetes cluster.local 10.0.0.0/8', cluster, '10.in-addr.arpa.') ?? []
    expect(lines.filter((line) => !/ NS |^ns\.dns| SOA /.test(line))).toEqual([])
  })

  test('are not given before the cluster is known', () => {
    const { plugin } = rig('kubernetes cluster.local', [namespace('prod')])
    expect(() => plugin.transfer(Name.parse('cluster.local.'), 0)).toThrow('before the first list')
  })
})

test('a multi-cluster zone lists the imports with its own serial', () => {
  const records: ClusterRecord[] = [
    namespace('prod'),
    { op: 'put', kind: 'serviceimport', namespace: 'prod', name: 'web', addresses: ['10.0.0.9'], ports: http },
    { op: 'put', kind: 'serviceimport', namespace: 'prod', name: 'db', headless: true },
    { op: 'put', kind: 'mcslice', namespace: 'prod', name: 's', service: 'db', addresses: ['10.9.0.1'], ports: http, cluster: 'c1' },
    synced,
  ]
  const text = 'kubernetes cluster.local clusterset.local {\n multicluster clusterset.local\n}'
  const lines = zone(text, records, 'clusterset.local.') ?? []
  expect(lines[0]).toContain('1700000001')
  expect(lines.filter((line) => !/ NS |^ns\.dns| SOA /.test(line))).toEqual([
    'db.prod.svc.clusterset.local. 5 A 10.9.0.1',
    '10-9-0-1.db.prod.svc.clusterset.local. 5 A 10.9.0.1',
    '_http._tcp.db.prod.svc.clusterset.local. 5 SRV 0 100 80 10-9-0-1.db.prod.svc.clusterset.local.',
    'web.prod.svc.clusterset.local. 5 A 10.0.0.9',
    'web.prod.svc.clusterset.local. 5 SRV 0 100 80 web.prod.svc.clusterset.local.',
    '_http._tcp.web.prod.svc.clusterset.local. 5 SRV 0 100 80 web.prod.svc.clusterset.local.',
  ])
})
