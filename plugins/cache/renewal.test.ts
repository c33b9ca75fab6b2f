import { describe, expect, test } from 'vitest'
import { ServeError } from '../../src/plugins/contract.js'
import { address, bench, held, type Lines, nxdomain, respond, SOA, sequence } from '../../test/support/cache.js'

describe('prefetch', () => {
  test('asks behind the client’s back once a popular entry nears its end, and carries its popularity over', async () => {
    const b = bench('cache {\n prefetch 2 1m 20%\n}', sequence(address(100, 1), address(100, 2), address(100, 3)))
    await b.ask('www.example.org.')
    b.clock.advance(77_000)
    await b.ask('www.example.org.')
    expect(b.calls).toHaveLength(1)
    b.clock.advance(4000)
    expect((await b.ask('www.example.org.')).answers[0]?.data).toMatchObject({ address: '192.0.2.1' })
    expect(b.calls).toHaveLength(2)
    expect(b.calls[1]).toMatchObject({ internal: true, proto: 'tcp' })
    expect(b.calls[1]?.authentic).toBe(true)
    expect((await b.ask('www.example.org.')).answers[0]?.data).toMatchObject({ address: '192.0.2.2' })
    b.clock.advance(50_000)
    await b.ask('www.example.org.')
    b.clock.advance(35_000)
    await b.ask('www.example.org.')
    expect(b.calls).toHaveLength(3)
    expect(b.counted('prefetch_total')).toBe(2)
  })

  test('does not refresh all that was filled at once in the same second', async () => {
    const b = bench('cache {\n prefetch 1 10m 50%\n}', (q) => respond(q, { answer: [`${q.name} 1000 IN A 192.0.2.1`] }))
    const names = Array.from({ length: 50 }, (_, i) => `name${i}.example.org.`)
    for (const name of names) await b.ask(name)
    b.clock.advance(449_000)
    for (const name of names) await b.ask(name)
    expect(b.calls).toHaveLength(50)
    const refreshed: number[] = []
    for (let second = 450; second <= 500; second++) {
      b.clock.advance(1000)
      const before = b.calls.length
      for (const name of names) await b.ask(name)
      refreshed.push(b.calls.length - before)
    }
    expect(b.calls).toHaveLength(100)
    expect(Math.max(...refreshed)).toBeLessThan(15)
  })

  test('not for what is asked too seldom', async () => {
    const b = bench('cache {\n prefetch 2 10s 50%\n}', sequence(address(100)))
    await b.ask('www.example.org.')
    for (let i = 0; i < 4; i++) {
      b.clock.advance(20_000)
      await b.ask('www.example.org.')
    }
    expect(b.calls).toHaveLength(1)
  })

  test('a positive answer takes the place of a denial that is still valid', async () => {
    const b = bench('cache 60 {\n prefetch 1 1m 90%\n}', sequence({ rcode: 3, authority: [SOA.replace('300', '30')] }, address(60)))
    expect((await b.ask('www.example.org.')).rcode).toBe(3)
    b.clock.advance(4500)
    await b.ask('www.example.org.')
    expect((await b.ask('www.example.org.')).rcode).toBe(0)
  })
})

describe('serve_stale', () => {
  const STALE = 'success 9984 3600 1\n denial 9984 1800 1\n servfail 0\n'

  test('immediate: the old answer with TTL 0 and EDE 3, refreshed behind it', async () => {
    const b = bench(`cache {\n ${STALE} serve_stale\n}`, sequence(address(1, 1), address(60, 2)))
    await b.ask('www.example.org.')
    b.clock.advance(2000)
    const stale = await b.ask('www.example.org.', 'A', { size: 1232 })
    expect(stale.answers[0]).toMatchObject({ ttl: 0, data: { address: '192.0.2.1' } })
    expect(stale.edns?.options).toEqual([{ code: 15, data: Buffer.from([0, 3]) }])
    expect((await b.ask('www.example.org.')).answers[0]).toMatchObject({ ttl: 60, data: { address: '192.0.2.2' } })
    expect(b.counted('served_stale_total')).toBe(1)
  })

  test.each(['immediate', 'verify', 'verify 100ms'])('%s: the old answer also where asking fails at once', async (mode) => {
    let asked = 0
    const b = bench(`cache {\n ${STALE} serve_stale 1h ${mode}\n}`, (q) => {
      if (asked++ > 0) throw new ServeError('no healthy proxies')
      return respond(q, address(1, 1))
    })
    await b.ask('www.example.org.')
    b.clock.advance(2000)
    expect((await b.ask('www.example.org.')).answers[0]).toMatchObject({ ttl: 0, data: { address: '192.0.2.1' } })
    expect(asked).toBe(2)
  })

  test('a stale name error says so with EDE 19', async () => {
    const h = held()
    let first = true
    const b = bench(`cache {\n ${STALE} serve_stale\n}`, (q) => {
      if (!first) return h.upstream(q)
      first = false
      return respond(q, nxdomain)
    })
    await b.ask('www.example.org.')
    b.clock.advance(301_000)
    expect((await b.ask('www.example.org.', 'A', { size: 1232 })).edns?.options).toEqual([{ code: 15, data: Buffer.from([0, 19]) }])
  })

  test('500 clients that ask for one expired name cost one query', async () => {
    const h = held(address(60, 2))
    let first = true
    const b = bench(`cache {\n ${STALE} serve_stale\n prefetch 1\n}`, (q) => {
      if (!first) return h.upstream(q)
      first = false
      return respond(q, address(1))
    })
    await b.ask('www.example.org.')
    b.clock.advance(3000)
    for (let i = 0; i < 500; i++) await b.ask('www.example.org.')
    expect(b.calls).toHaveLength(2)
  })

  test('no longer than it may', async () => {
    const b = bench(`cache {\n ${STALE} serve_stale 10s\n}`, sequence(address(1, 1), { rcode: 2 }))
    await b.ask('www.example.org.')
    b.clock.advance(10_000)
    expect((await b.ask('www.example.org.')).rcode).toBe(0)
    b.clock.advance(1000)
    expect((await b.ask('www.example.org.')).rcode).toBe(2)
  })

  test('a failed refresh leaves the entry, and is not tried again before the recheck time', async () => {
    const b = bench(`cache {\n ${STALE} serve_stale 1h immediate 30s 2s\n}`, sequence(address(1, 1), { rcode: 2 }))
    await b.ask('www.example.org.')
    b.clock.advance(2000)
    expect((await b.ask('www.example.org.')).answers[0]?.ttl).toBe(30)
    await b.ask('www.example.org.')
    expect(b.calls).toHaveLength(2)
    b.clock.advance(2000)
    expect((await b.ask('www.example.org.')).answers[0]?.data).toMatchObject({ address: '192.0.2.1' })
    expect(b.calls).toHaveLength(3)
  })

  test('verify: the new answer if there is one, else the old', async () => {
    const b = bench(`cache {\n ${STALE} serve_stale 1h verify\n}`, sequence(address(1, 1), { rcode: 2 }, address(60, 2)))
    await b.ask('www.example.org.')
    b.clock.advance(2000)
    expect((await b.ask('www.example.org.')).answers[0]?.data).toMatchObject({ address: '192.0.2.1' })
    expect((await b.ask('www.example.org.')).answers[0]).toMatchObject({ ttl: 60, data: { address: '192.0.2.2' } })
  })

  test.each<[string, Lines]>([
    ['truncated', { ...address(60, 2), flags: { tc: true } }],
    ['refused', { rcode: 5 }],
  ])('verify does not believe a reply that is %s', async (_, lines) => {
    const b = bench(`cache {\n ${STALE} serve_stale 1h verify\n}`, sequence(address(1, 1), lines))
    await b.ask('www.example.org.')
    b.clock.advance(2000)
    expect((await b.ask('www.example.org.')).answers[0]?.data).toMatchObject({ address: '192.0.2.1' })
  })

  test('verify with a bound: the old answer after that time, the new one from then on', async () => {
    const h = held(address(60, 2))
    let first = true
    const b = bench(`cache {\n ${STALE} serve_stale 1h verify 1800ms\n}`, (q) => {
      if (!first) return h.upstream(q)
      first = false
      return respond(q, address(1))
    })
    await b.ask('www.example.org.')
    b.clock.advance(2500)
    const stale = b.ask('www.example.org.')
    b.clock.advance(1800)
    expect((await stale).answers[0]?.data).toMatchObject({ address: '192.0.2.1' })
    h.release()
    await expect.poll(async () => (await b.ask('www.example.org.')).answers[0]?.data).toMatchObject({ address: '192.0.2.2' })
    expect(b.calls).toHaveLength(2)
    expect(b.counted('served_stale_total')).toBe(1)
  })

  test('a name error without SOA is news, though it can’t be kept', async () => {
    const b = bench(`cache {\n ${STALE} serve_stale 1h verify 1s\n}`, sequence(address(1, 1), { rcode: 3 }))
    await b.ask('www.example.org.')
    b.clock.advance(2000)
    expect((await b.ask('www.example.org.')).rcode).toBe(3)
  })

  test('prefer_positive: a denial does not end a good answer, another good one does', async () => {
    const b = bench(
      `cache {\n ${STALE} serve_stale 1h verify\n serve_stale_policy prefer_positive\n}`,
      sequence(address(1, 1), nxdomain, address(60, 3)),
    )
    await b.ask('www.example.org.')
    b.clock.advance(2000)
    expect((await b.ask('www.example.org.')).answers[0]?.data).toMatchObject({ address: '192.0.2.1' })
    expect((await b.ask('www.example.org.')).answers[0]?.data).toMatchObject({ address: '192.0.2.3' })
  })

  test('prefer_positive keeps the last answer although a reply without one took its place', async () => {
    const b = bench(
      `cache {\n ${STALE} serve_stale 1h verify\n serve_stale_policy prefer_positive\n}`,
      sequence(address(1, 1), { authority: ['example.org. 60 IN NS ns.example.org.'] }, { rcode: 2 }),
    )
    await b.ask('www.example.org.')
    b.clock.advance(2000)
    for (let i = 0; i < 3; i++) {
      expect((await b.ask('www.example.org.')).answers[0]?.data).toMatchObject({ address: '192.0.2.1' })
      b.clock.advance(6000)
    }
  })
})
