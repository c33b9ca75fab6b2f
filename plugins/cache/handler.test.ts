import { describe, expect, test } from 'vitest'
import { parseCorefile } from '../../src/corefile/index.js'
import { Message, parseRecord, RCODE } from '../../src/dns/index.js'
import { DROP, type Plugin, ServeError } from '../../src/plugins/contract.js'
import { FakeClock, fakeContext, lastHandler, type QueryOptions, query } from '../../src/plugins/testing.js'
import { address, bench, held, type Lines, nxdomain, respond, SOA, sequence, type Upstream } from '../../test/support/cache.js'
import module from './index.js'

describe('a hit', () => {
  test('has the id and spelling of its client and a TTL that counts down by whole seconds', async () => {
    const b = bench('cache', sequence(address(60)))
    await b.ask('www.example.org.')
    b.clock.advance(10_900)
    const hit = await b.ask('wWw.Example.org.', 'A', { id: 99 })
    expect(b.calls).toHaveLength(1)
    expect(hit.id).toBe(99)
    expect(hit.question?.name.toString()).toBe('wWw.Example.org.')
    expect(hit.answers[0]?.name.toString()).toBe('wWw.Example.org.')
    expect(hit.answers[0]?.ttl).toBe(50)
  })

  test('carries AA, and RD and RA as they are', async () => {
    const b = bench('cache', sequence({ ...address(), flags: { ra: true } }))
    const miss = await b.ask('www.example.org.')
    expect([miss.aa, miss.ra, miss.rd]).toEqual([false, true, true])
    const hit = await b.ask('www.example.org.')
    expect([hit.aa, hit.ra, hit.rd, hit.qr]).toEqual([true, true, true, true])
  })

  test('has no OPT of the one who filled the entry', async () => {
    const b = bench('cache', sequence({ ...address(), edns: true }))
    await b.ask('www.example.org.', 'A', { size: 4096 })
    const hit = await b.ask('www.example.org.', 'A', { size: 4096 })
    expect(hit.edns).toBeUndefined()
    expect(hit.trailing).toBe(0)
  })

  test('is made of the same octets for replies made of records', async () => {
    const b = bench('cache', sequence({ ...address(), wire: false, additional: ['x.example.org. 30 IN TXT "y"'] }))
    await b.ask('www.example.org.')
    const hit = await b.ask('www.example.org.')
    expect(hit.answers[0]?.data).toEqual({ kind: 'A', address: '192.0.2.1' })
    expect(hit.additionals[0]?.ttl).toBe(30)
  })

  test('an OPT record between others is cut out', async () => {
    const upstream: Upstream = (q) => {
      const whole = respond(q, { ...address(), edns: true, additional: ['a.example.org. 60 IN A 192.0.2.9'] }).toBuffer()
      const opt = whole.subarray(whole.length - 11)
      const glue = whole.subarray(whole.length - 29, whole.length - 11)
      return Message.view(Buffer.concat([whole.subarray(0, whole.length - 29), opt, glue]))
    }
    const b = bench('cache', upstream)
    await b.ask('www.example.org.')
    const hit = await b.ask('www.example.org.')
    expect(hit.edns).toBeUndefined()
    expect(hit.answers).toHaveLength(1)
    expect(b.calls).toHaveLength(1)
  })

  test('keepttl leaves the TTL as it was', async () => {
    const b = bench('cache {\n keepttl\n}', sequence(address(60)))
    await b.ask('www.example.org.')
    b.clock.advance(30_000)
    expect((await b.ask('www.example.org.')).answers[0]?.ttl).toBe(60)
    b.clock.advance(31_000)
    await b.ask('www.example.org.')
    expect(b.calls).toHaveLength(2)
  })

  test('a wall clock set back changes nothing: time is monotonic', async () => {
    const b = bench('cache', sequence(address(10)))
    Object.assign(b.clock, { now: () => 0 })
    await b.ask('www.example.org.')
    b.clock.advance(11_000)
    await b.ask('www.example.org.')
    expect(b.calls).toHaveLength(2)
  })
})

describe('questions are kept apart', () => {
  test.each<[string, [string, string, QueryOptions][]]>([
    [
      'by type',
      [
        ['www.example.org.', 'A', {}],
        ['www.example.org.', 'AAAA', {}],
      ],
    ],
    [
      'by DO',
      [
        ['www.example.org.', 'A', {}],
        ['www.example.org.', 'A', { dnssecOk: true }],
      ],
    ],
    [
      'by CD',
      [
        ['www.example.org.', 'A', {}],
        ['www.example.org.', 'A', { cd: true }],
      ],
    ],
    [
      'by RD',
      [
        ['www.example.org.', 'A', {}],
        ['www.example.org.', 'A', { rd: false }],
      ],
    ],
    [
      'by class',
      [
        ['www.example.org.', 'A', {}],
        ['www.example.org.', 'A', { class: 3 }],
      ],
    ],
  ])('%s', async (_, questions) => {
    const b = bench('cache', sequence(nxdomain))
    for (let round = 0; round < 2; round++) for (const [name, type, options] of questions) await b.ask(name, type, options)
    expect(b.calls).toHaveLength(2)
  })

  test('not by letter case', async () => {
    const b = bench('cache', sequence(address()))
    await b.ask('www.example.org.')
    await b.ask('WWW.EXAMPLE.ORG.')
    expect(b.calls).toHaveLength(1)
  })
})

describe('what is kept, and for how long', () => {
  const cached = async (corefile: string, lines: Lines, type = 'A'): Promise<[calls: number, ttl: number | undefined]> => {
    const b = bench(corefile, sequence(lines))
    const first = await b.ask('www.example.org.', type)
    await b.ask('www.example.org.', type)
    return [b.calls.length, [...first.answers, ...first.authorities][0]?.ttl]
  }

  test.each<[string, Lines, [number, number | undefined], string?]>([
    ['a low TTL is raised', address(1), [1, 5]],
    ['a TTL of 0 is raised', address(0), [1, 5]],
    ['a long TTL is cut', address(86_400), [1, 3600]],
    ['a TTL with its top bit set is a long one', address(0x80000001), [1, 3600]],
    ['the lowest counts', { answer: ['www.example.org. 300 IN CNAME a.', 'a. 15 IN A 10.0.0.1'] }, [1, 15]],
    ['the additional section counts', { ...address(60), additional: ['a. 7 IN A 10.0.0.1'] }, [1, 7]],
    ['a denial', nxdomain, [1, 300]],
    ['a long denial is cut', { rcode: 3, authority: [SOA.replace('300', '9000').replace(/300$/, '9000')] }, [1, 1800]],
    ['the TTL of the SOA counts, not its MINIMUM', { rcode: 3, authority: [SOA.replace(/300$/, '20')] }, [1, 300]],
    ['no data', { authority: [SOA] }, [1, 300]],
    ['a denial without SOA', { rcode: 3 }, [2, undefined]],
    ['a CNAME to a name that does not exist', { rcode: 3, answer: ['www.example.org. 60 IN CNAME a.'], authority: [SOA] }, [1, 60]],
    ['a CNAME to no data', { answer: ['www.example.org. 60 IN CNAME a.'], authority: [SOA] }, [1, 60]],
    ['a CNAME to nothing, without SOA', { answer: ['www.example.org. 60 IN CNAME a.'] }, [2, 60]],
    ['an address off the chain', { answer: ['www.example.org. 60 IN CNAME a.', 'b. 60 IN A 10.0.0.1'] }, [2, 60]],
    [
      'two targets at one name',
      { answer: ['www.example.org. 60 IN CNAME a.', 'www.example.org. 60 IN CNAME b.', 'a. 60 IN A 10.0.0.1'] },
      [2, 60],
    ],
    ['a loop', { answer: ['www.example.org. 60 IN CNAME a.', 'a. 60 IN CNAME www.example.org.', 'a. 60 IN A 10.0.0.1'] }, [2, 60]],
    ['a referral', { authority: ['example.org. 60 IN NS ns.example.org.'] }, [1, 5]],
    ['SERVFAIL', { rcode: 2 }, [1, undefined]],
    ['NOTIMP', { rcode: 4 }, [1, undefined]],
    ['REFUSED', { rcode: 5 }, [2, undefined]],
    ['FORMERR', { rcode: 1 }, [2, undefined]],
    ['a truncated reply', { ...address(60), flags: { tc: true } }, [2, 60]],
    ['a truncated denial', { ...nxdomain, flags: { tc: true } }, [2, 300]],
    ['up to a whole day if told so', address(86_400), [1, 86_400], 'cache {\n success 1000 86400\n}'],
    ['as the argument says', address(300), [1, 10], 'cache 10'],
    ['SERVFAIL not with servfail 0', { rcode: 2 }, [2, undefined], 'cache {\n servfail 0\n}'],
    ['nothing of a disabled kind', address(60), [2, 60], 'cache {\n disable success example.org\n}'],
    ['denials of a disabled zone', nxdomain, [2, 300], 'cache {\n disable denial\n}'],
    ['what lies outside the zones', address(86_400), [2, 86_400], 'cache example.net'],
  ])('%s', async (_, lines, wanted, corefile = 'cache') => {
    expect(await cached(corefile, lines)).toEqual(wanted)
  })

  test('expired signatures are passed on, not kept', async () => {
    const rrsig = (until: string): Lines => ({
      answer: ['www.example.org. 60 IN A 10.0.0.1', `www.example.org. 60 IN RRSIG A 13 3 60 ${until} 20200101000000 1 example.org. bm8=`],
      edns: true,
    })
    for (const [until, calls, ttl] of [
      ['20210101000000', 2, 5],
      ['20380101000000', 1, 60],
    ] as const) {
      const b = bench('cache', sequence(rrsig(until)))
      await b.ask('www.example.org.', 'A', { dnssecOk: true })
      const again = await b.ask('www.example.org.', 'A', { dnssecOk: true })
      expect(b.calls).toHaveLength(calls)
      expect(again.answers.map((rr) => rr.ttl)).toEqual([ttl, ttl])
    }
  })

  test('an answer for one network only is given to nobody else', async () => {
    const data = Buffer.from([0, 1, 24, 24, 192, 0, 2])
    const b = bench('cache', (q) =>
      Message.view(
        respond(q, address())
          .with({ edns: { size: 1232, extendedRcode: 0, version: 0, dnssecOk: false, z: 0, options: [{ code: 8, data }] } })
          .toBuffer(),
      ),
    )
    await b.ask('www.example.org.')
    await b.ask('www.example.org.')
    expect(b.calls).toHaveLength(2)
  })

  test('a reply to another question is not kept, and counted', async () => {
    const b = bench('cache', () => respond(query('other.example.org.', 'A'), address()))
    await b.raw('www.example.org.')
    await b.raw('www.example.org.')
    expect(b.calls).toHaveLength(2)
    expect(b.counted('drops_total')).toBe(2)
  })

  test('DROP passes by', () => {
    const b = bench('cache', () => DROP)
    expect(b.raw('www.example.org.')).toBe(DROP)
  })
})

describe('AD', () => {
  test('is asked for upstream and shown to those who asked for it', async () => {
    const b = bench('cache', sequence({ ...address(), flags: { ad: true } }))
    expect((await b.ask('www.example.org.')).ad).toBe(false)
    expect(b.calls[0]?.authentic).toBe(true)
    expect((await b.ask('www.example.org.', 'A', { ad: true })).ad).toBe(true)
    expect((await b.ask('www.example.org.')).ad).toBe(false)
    expect(b.calls).toHaveLength(1)
  })

  test('is shown with DO', async () => {
    const b = bench('cache', sequence({ ...address(), flags: { ad: true } }))
    await b.ask('www.example.org.', 'A', { dnssecOk: true })
    expect((await b.ask('www.example.org.', 'A', { dnssecOk: true })).ad).toBe(true)
  })
})

describe('live replies', () => {
  const live =
    (ttl: number): Upstream =>
    (q) =>
      q.reply('kubernetes', 0, { answers: [parseRecord(`www.example.org. ${ttl} IN A 10.0.0.1`)], live: true })

  test('are always current: never kept, but capped and counted', async () => {
    const b = bench('cache 10', live(30))
    for (let i = 0; i < 3; i++) expect((await b.ask('www.example.org.')).answers[0]?.ttl).toBe(10)
    expect(b.calls).toHaveLength(3)
    expect([b.counted('requests_total'), b.counted('misses_total'), b.counted('hits_total')]).toEqual([3, 3, 0])
  })

  test('are handed on as they are where nothing is to be changed', () => {
    let reply: Message | undefined
    const b = bench('cache 30', (q) => {
      reply = live(30)(q) as Message
      return reply
    })
    expect(b.raw('www.example.org.')).toBe(reply)
  })

  test('an object that appears shows at once although its absence was kept', async () => {
    let there = false
    const b = bench('cache', (q) => (there ? live(5)(q) : respond(q, nxdomain)))
    await b.ask('new.example.org.', 'AAAA')
    there = true
    await b.ask('www.example.org.')
    expect((await b.ask('www.example.org.')).rcode).toBe(0)
  })
})

describe('one query in flight', () => {
  test('a hundred clients that ask at once cost one query, and each gets its own id, spelling and AD', async () => {
    const h = held({ ...address(), flags: { ad: true } })
    const b = bench('cache', h.upstream)
    const replies = Array.from({ length: 100 }, (_, i) =>
      b.ask(i % 2 === 0 ? 'www.example.org.' : 'WWW.example.org.', 'A', { id: i, ad: i % 3 === 0 }),
    )
    h.release()
    for (const [i, reply] of (await Promise.all(replies)).entries()) {
      expect(reply.id).toBe(i)
      expect(reply.question?.name.toString()).toBe(i % 2 === 0 ? 'www.example.org.' : 'WWW.example.org.')
      expect(reply.ad).toBe(i % 3 === 0)
    }
    expect(b.calls).toHaveLength(1)
  })

  test('coalesce off: each asks for itself', async () => {
    const h = held()
    const b = bench('cache {\n coalesce off\n}', h.upstream)
    const replies = [b.ask('www.example.org.'), b.ask('www.example.org.')]
    h.release()
    await Promise.all(replies)
    expect(b.calls).toHaveLength(2)
  })

  test('a truncated reply is for the one who asked', async () => {
    const h = held({ ...address(), flags: { tc: true } })
    const b = bench('cache', h.upstream)
    const first = b.ask('www.example.org.')
    const second = b.ask('www.example.org.', 'A', { proto: 'tcp' })
    h.release()
    expect((await first).tc).toBe(true)
    await expect.poll(() => b.calls.length).toBe(2)
    h.release(address())
    expect((await second).tc).toBe(false)
  })

  test('a failure is everybody’s, and is kept for those who come later if nobody could answer', async () => {
    const h = held()
    const b = bench('cache', h.upstream)
    const replies = [b.ask('www.example.org.'), b.ask('www.example.org.')]
    h.fail(new ServeError('no upstream answered', 2, { unresolved: true }))
    for (const result of await Promise.allSettled(replies)) expect(result.status).toBe('rejected')
    expect((await b.ask('www.example.org.')).rcode).toBe(RCODE.SERVFAIL)
    expect(b.calls).toHaveLength(1)
    b.clock.advance(5001)
    const later = b.ask('www.example.org.')
    h.release()
    expect((await later).rcode).toBe(0)
  })

  test('any other failure is forgotten at once', async () => {
    let broken = true
    const b = bench('cache', (q) => {
      if (broken) throw new Error('not ready')
      return respond(q, address())
    })
    await expect(b.ask('www.example.org.')).rejects.toThrow('not ready')
    broken = false
    expect((await b.ask('www.example.org.')).rcode).toBe(0)
  })
})

test('contents outlive a reload that leaves the options alone', async () => {
  const clock = new FakeClock()
  const ctx = fakeContext('cache', { clock })
  const end = lastHandler(sequence(address()))
  const generation = (corefile: string): Plugin => {
    const plugin = module.setup(parseCorefile(`. {\n${corefile}\n}`, 'Corefile').blocks[0]!.directives, ctx) as Plugin
    void plugin.onStartup?.()
    return plugin
  }
  for (const corefile of ['cache 30', 'cache 30', 'cache 60'])
    await generation(corefile).serveDNS!(query('www.example.org.', 'A', { received: clock.monotonic() }), end.next)
  expect(end.calls).toHaveLength(2)
})

test('entries, evictions and hits are counted as CoreDNS counts them', async () => {
  const b = bench('cache {\n success 1\n denial 1\n}', (q) => respond(q, { answer: [`${q.name} 60 IN A 10.0.0.1`] }))
  for (let i = 0; i < 1100; i++) await b.ask(`n${i}.example.`)
  await b.ask('n1099.example.')
  const labels = 'server="dns://:53",type="success",zones=".",view=""'
  expect(b.ctx.metrics.values.get(`coredns_cache_entries{${labels}}`)).toBe(1024)
  expect(b.ctx.metrics.values.get(`coredns_cache_evictions_total{${labels}}`)).toBe(76)
  expect(b.ctx.metrics.values.get(`coredns_cache_hits_total{${labels}}`)).toBe(1)
  expect(b.ctx.metrics.values.get('coredns_cache_requests_total{server="dns://:53",zones=".",view=""}')).toBe(1101)
})

test('each serving thread has its share of the capacity', async () => {
  for (const count of [1, 4]) {
    const b = bench('cache {\n success 1024\n }', (q) => respond(q, { answer: [`${q.name} 60 IN A 192.0.2.1`] }), {
      thread: { index: 0, count },
    })
    for (let i = 0; i < 1500; i++) await b.ask(`n${i}.example.org.`)
    expect(b.counted('entries')).toBe(1024 / count)
  }
})
