import { describe, expect, test } from 'vitest'
import { parseCorefile } from '../../src/corefile/index.js'
import { fakeContext } from '../../src/plugins/testing.js'
import { type CacheOptions, parseOptions } from './options.js'

const parse = (text: string): CacheOptions =>
  parseOptions(parseCorefile(`. {\n${text}\n}\n`, 'Corefile').blocks[0]!.directives, fakeContext('cache'))

describe('options', () => {
  test('default to what CoreDNS takes', () => {
    expect(parse('cache')).toMatchObject({
      zones: ['.'],
      success: { capacity: 9984, maxTtl: 3600, minTtl: 5 },
      denial: { capacity: 9984, maxTtl: 1800, minTtl: 5 },
      servfail: 5,
      prefetch: 0,
      staleUpTo: 0,
      keepTtl: false,
      coalesce: true,
    })
  })

  test.each([
    ['cache 30', { success: { capacity: 9984, maxTtl: 30, minTtl: 5 }, denial: { capacity: 9984, maxTtl: 30, minTtl: 5 } }],
    ['cache 30 example.org Example.NET', { zones: ['example.org.', 'example.net.'] }],
    ['cache example.nl {\n success 10 1800 30\n}', { zones: ['example.nl.'], success: { capacity: 1024, maxTtl: 1800, minTtl: 30 } }],
    ['cache {\n denial 2500 15\n}', { denial: { capacity: 2304, maxTtl: 15, minTtl: 5 } }],
    ['cache {\n prefetch 10 2m 15%\n}', { prefetch: 10, prefetchGap: 120_000, prefetchPercentage: 15 }],
    ['cache {\n serve_stale\n}', { staleUpTo: 3600, verify: false }],
    [
      'cache {\n serve_stale 1h20m verify 100ms 30s 250ms\n}',
      { staleUpTo: 4800, verify: true, verifyTimeout: 100, staleTtl: 30, staleRecheck: 250 },
    ],
    ['cache {\n serve_stale 1h IMMEDIATE 30s 5m\n}', { verify: false, staleTtl: 30, staleRecheck: 300_000 }],
    ['cache {\n serve_stale_policy PREFER_POSITIVE\n serve_stale 0\n}', { preferPositive: true, staleUpTo: 0 }],
    ['cache {\n servfail 5m\n}', { servfail: 300 }],
    [
      'cache {\n disable denial example.com example.org\n disable success\n}',
      { notDenial: ['example.com.', 'example.org.'], notSuccess: ['.'] },
    ],
    ['cache {\n keepttl\n coalesce off\n}', { keepTtl: true, coalesce: false }],
  ])('%s', (text, wanted) => {
    expect(parse(text)).toMatchObject(wanted)
  })

  test.each([
    ['cache 0', 'cache TTL can not be zero or negative: 0'],
    ['cache\ncache', 'this plugin can only be used once per Server Block'],
    ['cache {\n success 15\n denial aaa\n}', 'strconv.Atoi: parsing "aaa": invalid syntax'],
    ['cache {\n success\n}', "Wrong argument count or unexpected line ending after 'success'"],
    ['cache {\n success 10 0\n}', 'cache TTL can not be zero or negative: 0'],
    ['cache {\n success 10 10 -1\n}', 'cache min TTL can not be negative: -1'],
    ['cache {\n positive 15\n}', "Wrong argument count or unexpected line ending after '15'"],
    ['cache {\n prefetch 0 blurp\n}', 'time: invalid duration "blurp"'],
    ['cache {\n prefetch -1\n}', 'prefetch amount should be positive: -1'],
    ['cache {\n prefetch 1 1m 5%\n}', 'percentage should fall in range [10, 90]: 5'],
    ['cache {\n prefetch 1 1m 50\n}', "last character of percentage should be `%`, but is: '0'"],
    ['cache {\n serve_stale 20\n}', 'time: missing unit in duration "20"'],
    ['cache {\n serve_stale -20m\n}', 'invalid negative duration for serve_stale'],
    ['cache {\n serve_stale 1h later\n}', 'invalid value for serve_stale refresh mode: later'],
    ['cache {\n serve_stale 1h immediate 100ms\n}', 'serve_stale response TTL must be a whole number of seconds'],
    ['cache {\n serve_stale 1h immediate 4294967296s\n}', 'serve_stale response TTL exceeds the DNS TTL range'],
    ['cache {\n serve_stale 1h immediate 30s 5m1s\n}', 'serve_stale failure recheck cannot exceed 5 minutes'],
    ['cache {\n serve_stale 1h immediate 30s 30s 1s\n}', "Wrong argument count or unexpected line ending after '1s'"],
    ['cache {\n serve_stale 1h verify -1ms\n}', 'invalid negative timeout for serve_stale verify'],
    ['cache {\n serve_stale 1h verify x\n}', 'invalid serve_stale verify timeout: time: invalid duration "x"'],
    ['cache {\n serve_stale 1h verify 1s garbage\n}', 'invalid serve_stale response TTL: time: invalid duration "garbage"'],
    ['cache {\n serve_stale_policy prefer_positive\n}', 'serve_stale_policy requires serve_stale'],
    ['cache {\n serve_stale\n serve_stale_policy odd\n}', 'invalid serve_stale_policy: odd'],
    ['cache {\n servfail 6m\n}', 'caching SERVFAIL responses over 5 minutes is not permitted'],
    ['cache {\n servfail -1s\n}', 'invalid negative ttl for servfail'],
    ['cache {\n disable invalid example.com\n}', 'cache type for disable must be "success" or "denial"'],
    ['cache {\n keepttl arg1\n}', "Wrong argument count or unexpected line ending after 'arg1'"],
    ['cache {\n coalesce maybe\n}', 'coalesce must be "on" or "off", not "maybe"'],
  ])('%s is refused', (text, message) => {
    expect(() => parse(text)).toThrow(message)
  })
})
