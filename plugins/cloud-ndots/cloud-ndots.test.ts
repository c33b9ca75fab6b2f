import { describe, expect, test } from 'vitest'
import { parseCorefile } from '../../src/corefile/index.js'
import { formatRecord, type Message, Name, parseRecord, RCODE } from '../../src/dns/index.js'
import { type Plugin, type Query, type Reply, ServeError } from '../../src/plugins/contract.js'
import { FakeClock, type FakeContext, fakeBlock, fakeContext, query } from '../../src/plugins/testing.js'
import module from './index.js'

const records = (lines: readonly string[]) => lines.map((line) => parseRecord(line))
const soa = parseRecord('cluster.local. 30 IN SOA ns.dns.cluster.local. hostmaster.cluster.local. 7 7200 1800 86400 30')

interface Setup {
  readonly body?: string
  readonly args?: string
  readonly zones?: readonly string[]
  readonly kubernetes?: boolean
  readonly synced?: boolean
  /** What the rest of the server says to a name. */
  readonly world?: (q: Query) => Reply | Promise<Reply> | undefined
}

function build(setup: Setup): {
  plugin: Plugin
  ctx: FakeContext
  clock: FakeClock
  asked: string[]
  ask: (name: string, type?: string) => Promise<Message>
} {
  const kubernetes = setup.kubernetes ?? true
  const zones = setup.zones ?? ['.']
  const text = `${zones.join(' ')} {\n cloud_ndots ${setup.args ?? ''} {\n${setup.body ?? 'domains corp.example'}\n}\n${kubernetes ? 'kubernetes cluster.local in-addr.arpa {\n ttl 30\n}\n' : ''}}\n`
  const directives = parseCorefile(text, 'Corefile').blocks[0]!.directives
  const clock = new FakeClock()
  const asked: string[] = []
  const cluster = { name: 'kubernetes', synced: () => setup.synced ?? true, soa: () => soa }
  const ctx = fakeContext('cloud_ndots', {
    block: { ...fakeBlock(zones), directives },
    clock,
    siblings: kubernetes ? [cluster] : [],
    resolve: (q) => {
      asked.push(`${q.name} ${q.type}`)
      return setup.world?.(q)
    },
  })
  const plugin = module.setup(
    directives.filter((d) => d.name === 'cloud_ndots'),
    ctx,
  ) as Plugin
  void plugin.onStartup?.()
  const next = (q: Query): Reply => {
    if (q.name.key.startsWith('\x03web\x04corp\x07example\x02ci'))
      return q.reply('kubernetes', 0, { answers: records([`${q.name} 30 IN A 10.96.0.9`]), live: true })
    return q.name.isUnder(Name.parse('cluster.local.'))
      ? q.reply('kubernetes', RCODE.NXDOMAIN, { authorities: [soa], live: true })
      : q.reply('rest', RCODE.REFUSED)
  }
  return { plugin, ctx, clock, asked, ask: async (name, type = 'A') => (await plugin.serveDNS!(query(name, type), next)) as Message }
}

const answers = (q: Query, lines: readonly string[]): Reply =>
  q.reply('forward', 0, { answers: records(lines), aa: false }).with({ ra: true })

describe('domains mode', () => {
  const world: Setup['world'] = (q) =>
    answers(q, [`${q.name} 300 IN CNAME prod.glb.corp.example.`, 'prod.glb.corp.example. 20 IN A 10.1.2.3'])

  test.each([
    ['github.corp.example.ci.svc.cluster.local.', 'github.corp.example.'],
    ['github.corp.example.svc.cluster.local.', 'github.corp.example.'],
    ['github.corp.example.cluster.local.', 'github.corp.example.'],
    ['GitHub.Corp.Example.ci.SVC.cluster.local.', 'GitHub.Corp.Example.'],
    ['corp.example.ci.svc.cluster.local.', 'corp.example.'],
    ['github.corp.example.ci.svc.cluster.local.ci.svc.cluster.local.', 'github.corp.example.'],
  ])('%s is answered as %s with a CNAME in front', async (name, external) => {
    const { ask, asked } = build({ world })
    const reply = await ask(name)
    expect(asked).toEqual([`${external} 1`])
    expect(reply.question?.name.toString()).toBe(name)
    expect(reply.answers.map(formatRecord)).toEqual([
      `${name}\t20\tIN\tCNAME\t${external}`,
      `${external}\t300\tIN\tCNAME\tprod.glb.corp.example.`,
      'prod.glb.corp.example.\t20\tIN\tA\t10.1.2.3',
    ])
    expect([reply.aa, reply.ad, reply.ra, reply.rcode]).toEqual([false, false, true, 0])
  })

  test.each([
    'web.default.svc.cluster.local.',
    'github.other.example.ci.svc.cluster.local.',
    'xcorp.example.ci.svc.cluster.local.',
    '_http._tcp.corp.example.ci.svc.cluster.local.',
    'github.corp.example.',
    'cluster.local.',
  ])('%s passes untouched', async (name) => {
    const { ask, asked } = build({ world })
    await ask(name)
    expect(asked).toEqual([])
  })

  test.each(['PTR', 'ANY', 'SOA', 'NS', 'CNAME'])('type %s passes', async (type) => {
    const { ask, asked } = build({ world })
    await ask('github.corp.example.ci.svc.cluster.local.', type)
    expect(asked).toEqual([])
  })

  test('a name that exists in the cluster wins', async () => {
    const { ask, asked } = build({ world })
    const reply = await ask('web.corp.example.ci.svc.cluster.local.')
    expect(reply.answers.map(formatRecord)).toEqual(['web.corp.example.ci.svc.cluster.local.\t30\tIN\tA\t10.96.0.9'])
    expect(asked).toEqual([])
  })

  test('while the index is not synced everything passes', async () => {
    const { ask, asked } = build({ world, synced: false })
    expect((await ask('github.corp.example.ci.svc.cluster.local.')).rcode).toBe(RCODE.NXDOMAIN)
    expect(asked).toEqual([])
  })

  test('a zone named in ZONES that kubernetes does not serve is external at once, with an SOA made up at the zone', async () => {
    const { ask, asked } = build({
      args: '001.mycloud.example',
      world: (q) => q.reply('forward', RCODE.NXDOMAIN, { aa: false }).with({ ra: true }),
    })
    const reply = await ask('github.corp.example.ci.svc.001.mycloud.example.')
    expect(asked).toEqual(['github.corp.example. 1'])
    expect(reply.rcode).toBe(RCODE.NXDOMAIN)
    expect(reply.answers).toEqual([])
    expect(formatRecord(reply.authorities[0]!)).toBe(
      '001.mycloud.example.\t30\tIN\tSOA\tns.dns.001.mycloud.example. hostmaster.001.mycloud.example. 1700000000 7200 1800 86400 30',
    )
  })

  test("NXDOMAIN carries the cluster zone's own SOA", async () => {
    const { ask } = build({
      world: (q) => q.reply('forward', RCODE.NXDOMAIN, { aa: false, authorities: records(['corp.example. 900 IN SOA a. b. 1 2 3 4 900']) }),
    })
    const reply = await ask('no.corp.example.ci.svc.cluster.local.')
    expect([reply.rcode, reply.aa, reply.authorities.map(formatRecord)]).toEqual([RCODE.NXDOMAIN, false, [formatRecord(soa)]])
  })

  test('NODATA: the CNAME, and the SOA of the reply', async () => {
    const { ask } = build({
      world: (q) => q.reply('forward', 0, { aa: false, authorities: records(['corp.example. 10 IN SOA a. b. 1 2 3 4 900']) }),
    })
    const reply = await ask('v4only.corp.example.ci.svc.cluster.local.', 'AAAA')
    expect(reply.rcode).toBe(0)
    expect(reply.answers.map(formatRecord)).toEqual(['v4only.corp.example.ci.svc.cluster.local.\t10\tIN\tCNAME\tv4only.corp.example.'])
    expect(reply.authorities.map(formatRecord)).toEqual(['corp.example.\t10\tIN\tSOA\ta. b. 1 2 3 4 900'])
  })

  test('the TTL of the CNAME is capped at the ttl of kubernetes', async () => {
    const { ask } = build({ world: (q) => answers(q, [`${q.name} 3600 IN A 10.0.0.1`]) })
    expect((await ask('a.corp.example.ci.svc.cluster.local.')).answers.map((rr) => rr.ttl)).toEqual([30, 3600])
  })

  test('a truncated reply keeps TC and gives no part of an RRset', async () => {
    const { ask } = build({ world: (q) => (answers(q, [`${q.name} 60 IN A 10.0.0.1`]) as Message).with({ tc: true }) })
    const reply = await ask('big.corp.example.ci.svc.cluster.local.')
    expect([reply.tc, reply.rcode, reply.answers]).toEqual([true, 0, []])
  })

  test('where no block covers the external name the rest of this chain is asked', async () => {
    const { ask } = build({ world: () => undefined })
    expect((await ask('github.corp.example.ci.svc.cluster.local.')).rcode).toBe(RCODE.REFUSED)
  })

  test('except wins over domains', async () => {
    const { ask, asked } = build({ body: 'domains corp.example\nexcept internal.corp.example', world })
    await ask('a.internal.corp.example.ci.svc.cluster.local.')
    expect(asked).toEqual([])
  })

  test("the nodes' own search domain is a suffix like the cluster's", async () => {
    const { ask, asked } = build({ body: 'domains corp.example\nsearch dc1.example', world })
    await ask('github.corp.example.dc1.example.')
    expect(asked).toEqual(['github.corp.example. 1'])
  })
})

describe('failures', () => {
  test('a failing rcode is passed on and remembered for 5 s per name and type', async () => {
    const { ask, asked, clock, ctx } = build({ world: (q) => q.reply('forward', RCODE.SERVFAIL, { aa: false }).with({ ra: true }) })
    const names = ['x.corp.example.ci.svc.cluster.local.', 'x.corp.example.svc.cluster.local.', 'x.corp.example.cluster.local.']
    for (const name of names) {
      const reply = await ask(name)
      expect([reply.rcode, reply.ra, reply.answers, reply.question?.name.toString()]).toEqual([RCODE.SERVFAIL, true, [], name])
    }
    expect(asked).toEqual(['x.corp.example. 1'])
    await ask(names[0]!, 'AAAA')
    expect(asked.length).toBe(2)
    clock.advance(5001)
    await ask(names[0]!)
    expect(asked.length).toBe(3)
    expect(ctx.metrics.values.get('coredns_cloud_ndots_requests_total{server="dns://:53",mode="domains",outcome="error"}')).toBe(5)
  })

  test('a time-out is thrown on for errors to log, and remembered', async () => {
    const { ask, asked } = build({ world: () => Promise.reject(new ServeError('i/o timeout')) })
    await expect(ask('x.corp.example.ci.svc.cluster.local.')).rejects.toThrow('i/o timeout')
    const again = await ask('x.corp.example.svc.cluster.local.')
    expect([again.rcode, again.ra]).toEqual([RCODE.SERVFAIL, false])
    expect(asked.length).toBe(1)
  })
})

describe('set-up', () => {
  test.each<[string, Setup, RegExp]>([
    ['no mode', { body: '' }, /neither 'domains' nor 'auto'/],
    ['unknown option', { body: 'domain corp.example' }, /Corefile:3 - .*unknown property 'domain'.*did you mean 'domains'/],
    ['root zone', { args: '.' }, /neither the root nor a reverse zone/],
    ['reverse zone', { args: '10.in-addr.arpa' }, /neither the root nor a reverse zone/],
    ['bad name', { body: 'domains a..b' }, /'a..b' is not a domain name/],
    ['no zone', { kubernetes: false }, /no zone to look at/],
    ['missing words', { body: 'domains' }, /Wrong argument count/],
    ['auto', { body: 'auto' }, /not built yet/],
  ])('%s is an error', (_, setup, wording) => {
    expect(() => build(setup)).toThrow(wording)
  })

  test('zones outside the keys of the block are warned about', () => {
    const { ctx } = build({ args: '001.mycloud.example', zones: ['cluster.local.'] })
    expect(ctx.warnings).toEqual(['queries for 001.mycloud.example. never reach cloud_ndots: no key of this server block covers it'])
  })
})
