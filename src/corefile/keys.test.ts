import { describe, expect, test } from 'vitest'
import { CorefileError, parseCorefile } from './index.js'
import { isDomainName, normalizeZone, reverseZones, splitTransport, splitZonePort } from './keys.js'

const keysOf = (text: string): string[] =>
  parseCorefile(`${text} {\n}\n`, 'Corefile').blocks[0]!.keys.map((key) => `${key.transport}://${key.zone}:${key.port}`)

describe('keys', () => {
  const table: [string, string[]][] = [
    ['.', ['dns://.:']],
    ['.:53', ['dns://.:53']],
    ['example.org', ['dns://example.org.:']],
    ['example.org.:1053', ['dns://example.org.:1053']],
    ['EXAMPLE.Org', ['dns://example.org.:']],
    ['dns://example.org', ['dns://example.org.:']],
    ['tls://example.org:5553', ['tls://example.org.:5553']],
    ['https://.', ['https://.:']],
    ['https3://.', ['https3://.:']],
    ['grpc://example.org', ['grpc://example.org.:']],
    ['quic://example.org', ['quic://example.org.:']],
    ['a.org b.org', ['dns://a.org.:', 'dns://b.org.:']],
    ['a.org,\nb.org,\tc.org:5', ['dns://a.org.:', 'dns://b.org.:', 'dns://c.org.:5']],
    ['example.org:+053', ['dns://example.org.:53']],
    ['example.org:port', ['dns://example.org:port.:']],
    ['10.0.0.0/24', ['dns://0.0.10.in-addr.arpa.:']],
    ['10.0.0.0/8:5300', ['dns://10.in-addr.arpa.:5300']],
    ['10.0.0.0/15', ['dns://0.10.in-addr.arpa.:', 'dns://1.10.in-addr.arpa.:']],
    ['192.168.1.1/23', ['dns://0.168.192.in-addr.arpa.:', 'dns://1.168.192.in-addr.arpa.:']],
    ['tls://2001:db8::/31:853', ['tls://8.b.d.0.1.0.0.2.ip6.arpa.:853', 'tls://9.b.d.0.1.0.0.2.ip6.arpa.:853']],
    ['10.0.0.0/15 example.org', ['dns://0.10.in-addr.arpa.:', 'dns://1.10.in-addr.arpa.:', 'dns://example.org.:']],
    ['Bücher.example', ['dns://bücher.example.:']],
  ]
  test.each(table)('%s', (text, expected) => expect(keysOf(text)).toEqual(expected))

  const bad: [string, string][] = [
    ['example.org:', 'error inspecting server blocks: expecting data after last colon: "example.org:"'],
    ['example..org', 'error inspecting server blocks: zone is not a valid domain name: example..org'],
    ['..', 'zone is not a valid domain name: ..'],
    ['.org', 'zone is not a valid domain name: .org'],
    [':53', 'zone is not a valid domain name: '],
    [`${'a'.repeat(64)}.org`, 'is not a valid domain name'],
    ['abc.'.repeat(70), 'specified zone is too long: 280 > 255'],
    ['::/8', 'invalid CIDR ::/8'],
    ['0:1::/32', 'invalid CIDR 0:1::/32'],
    ['example.org:70000', 'address 70000: invalid port'],
    ['example.org:-1', 'address -1: invalid port'],
    ['unix:///run/dns', 'unix:// is no transport to serve'],
  ]
  test.each(bad)('%s is refused', (text, message) => {
    expect(() => keysOf(text)).toThrow(CorefileError)
    expect(() => keysOf(`a.org,\n${text}`)).toThrow(
      new RegExp(`^Corefile:2 - Error during parsing: .*${message.replace(/[.*?()"]/g, '\\$&')}`, 's'),
    )
  })

  const odd: [string, string][] = [
    ['ftp://example.org', "'ftp://' is no known transport"],
    ['http://example.org', "did you mean 'https://'"],
    ['10.0.0.1', 'no address with a prefix length'],
    ['10.0.0.0/33', 'no address with a prefix length'],
    ['bücher.example', 'not ASCII'],
  ]
  test.each(odd)('%s is served as a zone, with a warning', (text, warning) => {
    expect(parseCorefile(`${text} {\n}\n`, 'Corefile').warnings).toEqual([
      { message: expect.stringContaining(warning), pos: { file: 'Corefile', line: 1, column: 1 } },
    ])
  })
})

describe('reverse zones', () => {
  const table: [string, string[] | undefined][] = [
    ['0.0.0.0/0', ['in-addr.arpa.']],
    ['10.1.2.3/32', ['3.2.1.10.in-addr.arpa.']],
    ['10.129.60.0/22', ['60', '61', '62', '63'].map((octet) => `${octet}.129.10.in-addr.arpa.`)],
    ['255.255.255.255/31', ['254.255.255.255.in-addr.arpa.', '255.255.255.255.in-addr.arpa.']],
    ['2001:db8::/32', ['8.b.d.0.1.0.0.2.ip6.arpa.']],
    ['ffff::1.2.3.4/128', ['4.0.3.0.2.0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.f.f.f.f.ip6.arpa.']],
    ['fe80::%eth0/64', undefined],
    ['2001:db8::/129', undefined],
    ['10.0.0.0', undefined],
    ['10.0.0/8', undefined],
    ['010.0.0.0/8', undefined],
    ['10.0.0.0/-8', undefined],
    ['example.org/8', undefined],
  ]
  test.each(table)('%s', (text, expected) => expect(reverseZones(text)).toEqual(expected))

  test('a prefix off the border covers all its parts', () => {
    expect(reverseZones('128.0.0.0/1')).toHaveLength(128)
    expect(reverseZones('8000::/1')).toEqual(['8', '9', 'a', 'b', 'c', 'd', 'e', 'f'].map((digit) => `${digit}.ip6.arpa.`))
  })
})

test('domain names', () => {
  for (const good of [
    '.',
    'a',
    'a.',
    'a-b._c',
    String.raw`a\.b`,
    String.raw`a\046b`,
    `${'a'.repeat(63)}.org`,
    `${String.raw`\097`.repeat(63)}.org`,
  ]) {
    expect(isDomainName(good), good).toBe(true)
  }
  for (const bad of ['', '..', 'a..b', '.a', 'a\\', `${'a'.repeat(64)}`, `${'a.'.repeat(128)}`]) expect(isDomainName(bad), bad).toBe(false)
})

test('helpers', () => {
  expect(splitTransport('https3://a')).toEqual({ transport: 'https3', address: 'a', explicit: true })
  expect(splitTransport('a')).toEqual({ transport: 'dns', address: 'a', explicit: false })
  expect(splitZonePort('a:99999999999999999999')).toEqual({ zones: ['a:99999999999999999999'], port: '' })
  expect(normalizeZone(String.raw`a\.`)).toBe(String.raw`a\..`)
})
