import { describe, expect, test } from 'vitest'
import { Message } from '../../src/dns/index.js'
import { GONE, type Passing, type Plugin, type Standing, UNTOUCHED } from '../../src/plugins/contract.js'
import { FakeClock, lastHandler, query, setUp } from '../../src/plugins/testing.js'
import { address, respond, sequence, type Upstream } from '../../test/support/cache.js'
import cache from './index.js'

const NAME = 'www.example.org.'

function rig(text: string, upstream: Upstream = sequence(address(60, 1), address(60, 2))) {
  const clock = new FakeClock()
  const { plugin, context } = setUp<Plugin>(cache, text, { clock })
  void plugin.onStartup?.()
  const { next } = lastHandler(upstream)
  const ask = (): { reply: Message; said: Standing | Passing | undefined } => {
    const asked = query(NAME, 'A', { received: clock.monotonic() })
    const reply = plugin.serveDNS!(asked, next) as Message
    return { reply, said: plugin.stands!(asked, reply) }
  }
  ask()
  const standing = (): Standing => ask().said as Standing
  const counted = (metric: string): number => context.metrics.values.get(`coredns_cache_${metric}`) ?? 0
  return { clock, ask, standing, counted, plugin }
}

describe('a hit', () => {
  test('stands until its time is over, and is counted each time', () => {
    const { clock, standing, counted } = rig('cache')
    const own = standing()
    const requests = 'requests_total{server="dns://:53",zones=".",view=""}'
    const hits = 'hits_total{server="dns://:53",type="success",zones=".",view=""}'
    const before = [counted(requests), counted(hits)]
    expect(own.again(clock.monotonic())).toBe(60)
    clock.advance(59_000)
    expect(own.again(clock.monotonic())).toBe(1)
    clock.advance(1000)
    expect(own.again(clock.monotonic())).toBe(GONE)
    expect([counted(requests), counted(hits)]).toEqual(before.map((count) => count + 2))
  })

  test('ends when another reply takes its place', () => {
    const { clock, ask, standing } = rig('cache')
    const own = standing()
    clock.advance(60_000)
    ask()
    expect(own.again(clock.monotonic())).toBe(GONE)
    expect(standing().again(clock.monotonic())).toBe(60)
  })

  test('with keepttl has the whole TTL', () => {
    const { clock, standing } = rig('cache {\n keepttl\n}')
    const own = standing()
    clock.advance(10_000)
    expect(own.again(clock.monotonic())).toBe(60)
  })

  test('is left to the cache when a refresh is due', () => {
    const { clock, standing } = rig('cache {\n prefetch 3 1m 50%\n}')
    const own = standing()
    expect([own.again(clock.monotonic()), own.again(clock.monotonic())]).toEqual([60, 60])
    clock.advance(31_000)
    expect(own.again(clock.monotonic())).toBe(GONE)
  })

  test('beyond its time does not stand', () => {
    let asked = 0
    const { clock, ask } = rig('cache {\n serve_stale 1h immediate\n}', (q) => {
      if (asked++ > 0) throw new Error('gone')
      return respond(q, address(60, 1))
    })
    clock.advance(61_000)
    const { reply, said } = ask()
    expect([reply.by, said, asked]).toEqual(['cache', undefined, 2])
  })
})

test('live answers pass as misses, names of other zones untouched', () => {
  const { plugin } = rig('cache 30 example.org')
  const other = query('www.example.net.', 'A')
  expect(plugin.stands!(other, Message.reply(other.message))).toBe(UNTOUCHED)
  const live = query(NAME, 'A').reply('kubernetes', 0, { live: true })
  const first = plugin.stands!(query(NAME, 'A'), live)
  expect(first).toHaveProperty('passed')
  expect(plugin.stands!(query(NAME, 'A'), live)).toBe(first)
})
