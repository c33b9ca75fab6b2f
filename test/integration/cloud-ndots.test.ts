/** A pod's search walk through the whole server: one round trip for an external name, and a walk for nothing costs one upstream query. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { formatRecord, parseRecord, RCODE } from '../../src/dns/index.js'
import { startServer, type TestServer } from '../../src/server/testing.js'
import { FakeUpstream, reply } from '../fakes/upstream.js'
import { root } from '../support/process.js'

const SOA = 'corp.mycloud.io. 60 IN SOA ns.corp.mycloud.io. host.corp.mycloud.io. 1 2 3 4 60'
/** What a pod in `ci-system` asks for `name`, in order. */
const walk = (name: string): string[] =>
  ['ci-system.svc.cluster.local.', 'svc.cluster.local.', 'cluster.local.', ''].map((suffix) => `${name}${suffix}`)

let upstream: FakeUpstream
let server: TestServer

beforeAll(async () => {
  upstream = await FakeUpstream.start((asked) => {
    const [name, type] = asked.question.split(' ')
    if (name === 'github.corp.mycloud.io.' && type === 'A')
      return reply(asked, [`${name} 300 IN CNAME github-prod.glb.corp.mycloud.io.`, 'github-prod.glb.corp.mycloud.io. 20 IN A 10.1.2.3'])
    if (name === 'github.corp.mycloud.io.')
      return reply(asked, [`${name} 300 IN CNAME github-prod.glb.corp.mycloud.io.`], { authorities: [parseRecord(SOA)] })
    if (name === 'broken.corp.mycloud.io.') return reply(asked, [], { rcode: RCODE.SERVFAIL })
    return reply(asked, [], { rcode: RCODE.NXDOMAIN, authorities: [parseRecord(SOA)] })
  })
  server = await startServer({
    corefile: `.:0 {
    errors
    cloud_ndots 001.mycloud.io {
        domains corp.mycloud.io
    }
    kubernetes cluster.local {
        manifests ${root}/examples/cluster
        ttl 30
    }
    forward . 127.0.0.1:${upstream.port}
    cache 30
}
`,
  })
})
afterAll(async () => {
  await server?.close()
  await upstream?.down()
})
beforeEach(() => {
  upstream.asked = []
})

describe("the article's example", () => {
  const name = 'github.corp.mycloud.io.ci-system.svc.001.mycloud.io.'

  test('A: the whole chain in one reply, its TTLs those of `cache`', async () => {
    const got = await server.query(name, 'A')
    expect(got.answers.map(formatRecord)).toEqual([
      `${name}\t20\tIN\tCNAME\tgithub.corp.mycloud.io.`,
      'github.corp.mycloud.io.\t20\tIN\tCNAME\tgithub-prod.glb.corp.mycloud.io.',
      'github-prod.glb.corp.mycloud.io.\t20\tIN\tA\t10.1.2.3',
    ])
    expect([got.rcode, got.aa, got.ad, got.ra]).toEqual([0, false, false, true])
    expect(upstream.asked.map((asked) => asked.question)).toEqual(['github.corp.mycloud.io. A'])
  })

  test('AAAA of an IPv4 name: NOERROR with the chain and the SOA, so that the walk ends', async () => {
    const got = await server.query(name, 'AAAA')
    expect(got.rcode).toBe(0)
    expect(got.answers.map(formatRecord)).toEqual([
      `${name}\t30\tIN\tCNAME\tgithub.corp.mycloud.io.`,
      'github.corp.mycloud.io.\t30\tIN\tCNAME\tgithub-prod.glb.corp.mycloud.io.',
    ])
    expect(got.authorities.map((rr) => rr.name.toString())).toEqual(['corp.mycloud.io.'])
  })

  test('the answer comes from the cache for every namespace after that', async () => {
    await server.query('github.corp.mycloud.io.shop.svc.cluster.local.', 'A')
    await server.query('GITHUB.corp.mycloud.io.default.svc.cluster.local.', 'A')
    expect(upstream.asked).toEqual([])
  })
})

test('a walk for a name that exists nowhere: NXDOMAIN at each step, one upstream query', async () => {
  for (const name of walk('nowhere.corp.mycloud.io.')) expect((await server.query(name, 'A')).rcode, name).toBe(RCODE.NXDOMAIN)
  expect(upstream.asked.map((asked) => asked.question)).toEqual(['nowhere.corp.mycloud.io. A'])
})

test('a walk for a name whose look-up fails: SERVFAIL at each step, never a denial, one upstream query', async () => {
  for (const name of walk('broken.corp.mycloud.io.').slice(0, 3)) expect((await server.query(name, 'A')).rcode, name).toBe(RCODE.SERVFAIL)
  expect(upstream.asked.map((asked) => asked.question)).toEqual(['broken.corp.mycloud.io. A'])
})

test('without EDNS a reply that grows past 512 octets by the CNAME gets TC', async () => {
  const before = upstream.answer
  upstream.answer = (asked) =>
    reply(
      asked,
      Array.from({ length: 27 }, (_, i) => `${asked.question.split(' ')[0]} 60 IN A 10.0.0.${i}`),
    )
  const name = 'many.corp.mycloud.io.ci-system.svc.cluster.local.'
  const short = await server.query(name, 'A')
  expect(short.tc).toBe(true)
  expect((await server.query(name, 'A', { proto: 'tcp' })).answers).toHaveLength(28)
  upstream.answer = before
})
