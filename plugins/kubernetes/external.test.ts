import { describe, expect, test } from 'vitest'
import { type Query, ServeError } from '../../src/plugins/contract.js'
import { lastHandler } from '../../src/plugins/testing.js'
import { alias, namespace, port, rig, service, synced } from '../../test/fakes/kubernetes-rig.js'

const SOA = 'cluster.local. 5 SOA 1700000000 5'
const zone = 'kubernetes cluster.local'

describe('ExternalName', () => {
  const records = [
    namespace('prod'),
    service('prod/web', ['10.0.0.1'], [port('http', 80)]),
    alias('prod/out', 'www.Example.org'),
    alias('prod/in', 'web.prod.svc.cluster.local'),
    alias('prod/two', 'in.prod.svc.cluster.local.'),
    alias('prod/lost', 'absent.prod.svc.cluster.local'),
    alias('prod/self', 'self.prod.svc.cluster.local'),
    alias('prod/ping', 'pong.prod.svc.cluster.local'),
    alias('prod/pong', 'ping.prod.svc.cluster.local'),
    alias('prod/address', '192.0.2.1'),
    synced,
  ]
  const upstream = lastHandler((q) => {
    if (q.name.key.includes('absent') || q.type !== 1)
      return q.reply('forward', q.name.key.includes('absent') ? 3 : 0, { authorities: [], aa: false })
    const answer = { name: q.name, type: 1, class: 1, ttl: 60, data: { kind: 'A', address: '192.0.2.44' } } as const
    return q.reply('forward', 0, { answers: [answer], aa: false })
  })
  const { text } = rig(zone, records, { resolve: upstream.next })
  test.each([
    ['out', 'A', 'NOERROR aa | out.prod.svc.cluster.local. 5 CNAME www.Example.org.; www.Example.org. 60 A 192.0.2.44 |  |'],
    ['out', 'AAAA', 'NOERROR aa | out.prod.svc.cluster.local. 5 CNAME www.Example.org. |  |'],
    ['out', 'CNAME', 'NOERROR aa | out.prod.svc.cluster.local. 5 CNAME www.Example.org. |  |'],
    ['out', 'SRV', `NOERROR aa |  | ${SOA} |`],
    ['out', 'TXT', `NOERROR aa |  | ${SOA} |`],
    ['_http._tcp.out', 'SRV', `NXDOMAIN aa |  | ${SOA} |`],
    ['ep.out', 'CNAME', `NXDOMAIN aa |  | ${SOA} |`],
    [
      'in',
      'A',
      'NOERROR aa | in.prod.svc.cluster.local. 5 CNAME web.prod.svc.cluster.local.; web.prod.svc.cluster.local. 5 A 10.0.0.1 |  |',
    ],
    ['in', 'AAAA', `NOERROR aa | in.prod.svc.cluster.local. 5 CNAME web.prod.svc.cluster.local. | ${SOA} |`],
    [
      'two',
      'A',
      'NOERROR aa | two.prod.svc.cluster.local. 5 CNAME in.prod.svc.cluster.local.; in.prod.svc.cluster.local. 5 CNAME web.prod.svc.cluster.local.; web.prod.svc.cluster.local. 5 A 10.0.0.1 |  |',
    ],
    ['lost', 'A', `NXDOMAIN aa | lost.prod.svc.cluster.local. 5 CNAME absent.prod.svc.cluster.local. | ${SOA} |`],
    ['self', 'A', `NOERROR aa |  | ${SOA} |`],
    ['ping', 'A', `NOERROR aa |  | ${SOA} |`],
    ['address', 'A', `NXDOMAIN aa |  | ${SOA} |`],
  ])('%s %s', async (name, type, expected) => {
    expect(await text(`${name}.prod.svc.cluster.local.`, type)).toBe(expected.trim())
  })

  test('a target in the zone falls through as a direct question would', async () => {
    const through = rig(`${zone} {\n fallthrough\n}`, [namespace('d'), alias('d/bar', 'foo.d.svc.cluster.local'), synced], {
      resolve: upstream.next,
    })
    expect(await through.text('bar.d.svc.cluster.local.', 'A')).toBe(
      'NOERROR aa | bar.d.svc.cluster.local. 5 CNAME foo.d.svc.cluster.local.; foo.d.svc.cluster.local. 60 A 192.0.2.44 |  |',
    )
  })

  test('a truncated answer for the target is passed on as truncated', async () => {
    const cut = rig(zone, records, { resolve: async (q) => q.reply('forward', 0, { aa: false }).with({ tc: true }) })
    expect(await cut.text('out.prod.svc.cluster.local.', 'A')).toBe(
      'NOERROR aa tc | out.prod.svc.cluster.local. 5 CNAME www.Example.org. |  |',
    )
  })

  test.each([
    ['answered with a failure', (q: Query) => q.reply('forward', 2)],
    ['refused', (q: Query) => q.reply('', 5)],
    [
      'thrown',
      () => {
        throw new ServeError('plugin/forward: no next plugin found')
      },
    ],
    [
      'rejected',
      async () => {
        throw new ServeError('timed out')
      },
    ],
  ])('a target that is %s: SERVFAIL for a stub resolver, the bare CNAME for one that asks without RD', async (_how, resolve) => {
    const broken = rig(zone, records, { resolve })
    const cname = 'aa | out.prod.svc.cluster.local. 5 CNAME www.Example.org. |  |'
    expect(await broken.text('out.prod.svc.cluster.local.', 'A')).toBe(`SERVFAIL ${cname}`)
    expect(await broken.text('out.prod.svc.cluster.local.', 'A', { rd: false })).toBe(`NOERROR ${cname}`)
  })

  test('a target that no block covers is left to the client', async () => {
    const alone = rig(zone, records)
    expect(await alone.text('out.prod.svc.cluster.local.', 'A')).toBe(
      'NOERROR aa | out.prod.svc.cluster.local. 5 CNAME www.Example.org. |  |',
    )
  })
})
