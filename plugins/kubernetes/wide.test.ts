/** Headless services with thousands of endpoints. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startServer, type TestServer } from '../../src/server/testing.js'
import * as api from '../../test/fakes/kube-api.js'
import * as records from '../../test/fakes/kubernetes-rig.js'
import { octetsOf } from './address.js'

const PER_SLICE = 100
const address = (i: number): string => `10.7.${i >> 8}.${i & 255}`
const addressesOf = (slice: number): string[] => Array.from({ length: PER_SLICE }, (_, k) => address(slice * PER_SLICE + k))

describe('an endpoint of a wide service', () => {
  const slices = Array.from({ length: 50 }, (_, s) =>
    records.slice(`prod/wide-${s}`, 'wide', addressesOf(s), {
      hostnames: addressesOf(s).map((_, k) => (k % 2 === 0 ? `Host-${s * PER_SLICE + k}` : '')),
    }),
  )
  const { plugin, text, apply } = records.rig('kubernetes cluster.local', [
    records.namespace('prod'),
    records.service('prod/wide', ['None'], [records.port('http', 80)]),
    records.service('prod/other', ['None']),
    records.slice('prod/other-1', 'other', [address(4321), address(1)], { hostnames: ['', 'host-4200'] }),
    ...slices,
    records.synced,
  ])
  const entry = plugin.index.service('prod', 'wide')!

  it('is found in one slice of fifty, by address or hostname', () => {
    const find = (label: string, octets: string) => plugin.index.slicesWithEndpoint(entry, label, octets).map(({ name }) => name)
    expect(find('10-7-16-225', octetsOf(address(4321)))).toEqual(['wide-43'])
    expect(find('host-4200', '')).toEqual(['wide-42'])
    expect(find('host-5000', '')).toEqual([])
  })

  it.each([
    ['10-7-16-225', 'NOERROR aa', address(4321)],
    ['host-4200', 'NOERROR aa', address(4200)],
    ['HOST-4998', 'NOERROR aa', address(4998)],
    // Goes by its hostname.
    ['10-7-16-104', 'NXDOMAIN aa', undefined],
    ['10-7-19-137', 'NXDOMAIN aa', undefined],
    ['host-5000', 'NXDOMAIN aa', undefined],
  ])('%s: %s', async (label, head, found) => {
    const name = `${label}.wide.prod.svc.cluster.local.`
    expect(await text(name, 'A')).toContain(found === undefined ? head : `${head} | ${name} 5 A ${found} |`)
  })

  it('is answered for once while it moves from slice to slice, and no more when it has gone', async () => {
    const ask = () => text('host-100.wide.prod.svc.cluster.local.', 'A')
    const one = `NOERROR aa | host-100.wide.prod.svc.cluster.local. 5 A ${address(100)} |  |`
    apply(records.slice('prod/wide-new', 'wide', [address(100)], { hostnames: ['host-100'] }))
    expect(await ask()).toBe(one)
    apply(records.slice('prod/wide-1', 'wide', []))
    expect(await ask()).toBe(one)
    apply(records.gone('slice', 'prod/wide-new'))
    expect(await ask()).toContain('NXDOMAIN aa')
  })
})

describe('the whole set of a wide service', () => {
  let server: TestServer
  let kube: api.FakeKubeApi
  beforeAll(async () => {
    kube = await new api.FakeKubeApi().start()
    kube.put(api.namespace('prod'))
    for (const [name, endpoints] of [
      ['wide', 5000],
      ['less', 4000],
    ] as const) {
      kube.put(api.service('prod', name, 'None'))
      for (let s = 0; s < endpoints / PER_SLICE; s++) kube.put(api.slice('prod', name, `${name}-${s}`, addressesOf(s)))
    }
    server = await startServer({ corefile: `.:0 {\n kubernetes cluster.local {\n endpoint ${kube.url}\n }\n loadbalance\n}\n` })
  })
  afterAll(async () => {
    await server.close()
    await kube.stop()
  })
  const addresses = (reply: Awaited<ReturnType<TestServer['query']>>) =>
    new Set(reply.answers.map(({ data }) => (data.kind === 'A' ? data.address : '')))

  it.each([512, 1232, 4096])('is cut off at %i octets over UDP', async (size) => {
    const reply = await server.query('wide.prod.svc.cluster.local.', 'A', { size })
    expect([reply.rcode, reply.tc]).toEqual([0, true])
    expect(reply.toBuffer().length).toBeLessThanOrEqual(size)
    expect(reply.answers.length).toBeGreaterThan((size - 100) / 16)
  })

  it('is cut off over TCP at what a message can hold', async () => {
    const reply = await server.query('wide.prod.svc.cluster.local.', 'A', { proto: 'tcp' })
    expect(reply.tc).toBe(true)
    // 65,535 octets less header and question, 16 for a record.
    expect(addresses(reply).size).toBe(4093)
  })

  it('is whole over TCP if it has 4,000', async () => {
    const reply = await server.query('less.prod.svc.cluster.local.', 'A', { proto: 'tcp' })
    expect(reply.tc).toBe(false)
    expect(addresses(reply)).toEqual(new Set(Array.from({ length: 4000 }, (_, i) => address(i))))
  })
})
