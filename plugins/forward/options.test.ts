import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { fakeContext } from '../../src/plugins/testing.js'
import { uses } from '../../test/support/forward.js'
import type { Forward } from './forward.js'
import forward from './index.js'
import { readOptions } from './options.js'
import { isHost, readTargets } from './targets.js'

const folder = mkdtempSync(join(tmpdir(), 'forward-'))
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}
const setUp = (text: string, checking = false): { plugins: Forward[]; context: ReturnType<typeof fakeContext> } => {
  const context = fakeContext('forward', { checking })
  return { plugins: forward.setup(uses(text), context) as Forward[], context }
}
const targets = (text: string): string[] => {
  const use = uses(`forward . ${text}`)[0]!
  return readTargets(use, use.args.slice(1), fakeContext('forward')).map((target) =>
    isHost(target)
      ? `${target.transport} host ${target.hostName} ${target.port} ${target.serverName}`
      : `${target.transport} ${target.host} ${target.port} ${target.label} ${target.serverName}`,
  )
}

describe('TO', () => {
  it.each([
    ['127.0.0.1', ['dns 127.0.0.1 53 127.0.0.1:53 ']],
    ['127.0.0.1:8080', ['dns 127.0.0.1 8080 127.0.0.1:8080 ']],
    ['dns://192.0.2.53:8053', ['dns 192.0.2.53 8053 192.0.2.53:8053 ']],
    ['::1', ['dns ::1 53 [::1]:53 ']],
    ['[::1]', ['dns ::1 53 [::1]:53 ']],
    ['[2003::1]:5353', ['dns 2003::1 5353 [2003::1]:5353 ']],
    ['fe80::1%eth0', ['dns fe80::1%eth0 53 [fe80::1]:53 ']],
    ['tls://9.9.9.9', ['tls 9.9.9.9 853 9.9.9.9:853 ']],
    ['tls://9.9.9.9%dns.quad9.net', ['tls 9.9.9.9 853 9.9.9.9:853 dns.quad9.net']],
    ['tls://9.9.9.9%dns.quad9.net:10853', ['tls 9.9.9.9 10853 9.9.9.9:10853 dns.quad9.net']],
    ['tls://[2400:3200::1%dns.alidns.com]:853', ['tls 2400:3200::1 853 [2400:3200::1]:853 dns.alidns.com']],
    ['tls://2606:4700:4700::1111', ['tls 2606:4700:4700::1111 853 [2606:4700:4700::1111]:853 ']],
    ['tls://fe80::1%example.com', ['tls fe80::1 853 [fe80::1]:853 example.com']],
    ['https://9.9.9.9', ['https 9.9.9.9 443 9.9.9.9:443 ']],
    ['my-dns.svc.cluster.local', ['dns host my-dns.svc.cluster.local 53 ']],
    ['tls://dns.example:8853', ['tls host dns.example 8853 ']],
  ])('%s', (text, expected) => {
    expect(targets(text)).toEqual(expected)
  })

  it('reads every nameserver of a resolv.conf, scope kept where it is needed to connect', () => {
    const path = file(
      'resolv.conf',
      '# comment\nsearch example.org\nnameserver 10.10.255.252\nnameserver\tfe80::1%eth0 # router\nnameserver 388::1%en0\n nameserver 10.10.255.253\n',
    )
    expect(targets(path)).toEqual([
      'dns 10.10.255.252 53 10.10.255.252:53 ',
      'dns fe80::1%eth0 53 [fe80::1]:53 ',
      'dns 388::1 53 [388::1]:53 ',
      'dns 10.10.255.253 53 10.10.255.253:53 ',
    ])
  })

  it('passes over an empty file beside others, and says so', () => {
    const { context } = setUp(`forward . ${file('empty.conf', '# nameserver 1.1.1.1\n')} 127.0.0.1`)
    expect(context.warnings).toEqual([expect.stringContaining('names no nameserver')])
  })

  it('leaves a nameserver out that is no address', () => {
    const { context } = setUp(`forward . ${file('odd.conf', 'nameserver localhost\nnameserver 127.0.0.1\n')}`)
    expect(context.warnings).toEqual([expect.stringContaining('"nameserver localhost" is no address')])
  })

  it('that is a missing file is an error at a start and a note of check', () => {
    const missing = join(folder, 'missing.conf')
    expect(() => setUp(`forward . ${missing}`)).toThrow(
      `plugin/forward: not an IP address or file "${missing}": failed to open file "${missing}": no such file or directory`,
    )
    const { context } = setUp(`forward . ${missing}`, true)
    expect(context.notes[0]).toContain('no such file or directory')
  })
})

describe('accepted', () => {
  it.each([
    'forward . ::1\nforward com ::2',
    'forward . 127.0.0.1 {\nforce_tcp\nprefer_udp\n}',
    'forward . 127.0.0.1 {\nhealth_check 0.5s no_rec domain example.org\n}',
    'forward . 127.0.0.1 {\nresolver 10.96.0.10 [::1]:5353 10.96.0.11:53\n}',
    'forward . 127.0.0.1 {\nsource_address ::ffff:192.0.2.1\n}',
    'forward . 127.0.0.1 {\nexpire 10s\nmax_age 10s\n}',
    'forward . 127.0.0.1 {\nmax_idle_conns 0\nread_timeout 3s\nmax_connect_attempts 0\nmax_concurrent 1000\n}',
    'forward . 127.0.0.1 {\nnext NXDOMAIN servfail\nfailover REFUSED\nnext_on_nodata\nfailfast_all_unhealthy_upstreams\n}',
    'forward . https://127.0.0.1 {\ntls_servername dns.example\ndoh_method GET\n}',
    'forward . tls://127.0.0.1%foo tls://127.0.0.2%bar {\ntls\n}',
    'forward . 127.0.0.1 {\nhedge auto\nrandom_case\ncookies\necs pass\n}',
  ])('%s', (text) => {
    expect(setUp(text).plugins.length).toBeGreaterThan(0)
  })

  it('takes the first zone of a CIDR prefix that is several, with a warning', () => {
    const { plugins, context } = setUp('forward 10.9.3.0/18 127.0.0.1')
    expect(plugins[0]!.from.toString()).toBe('0.9.10.in-addr.arpa.')
    expect(context.warnings[0]).toBe(
      "Unsupported CIDR notation: '10.9.3.0/18' expands to multiple zones. Using only '0.9.10.in-addr.arpa.'.",
    )
  })

  it('the old options of proxy, where proxy was written, with warnings', () => {
    const text =
      'forward . 10.0.0.1 {\npolicy first\nfail_timeout 10s\nmax_fails 3\nhealth_check /ok:8080\nspray\nprotocol dns force_tcp\nexcept a.example\n}'
    const context = fakeContext('forward')
    const options = readOptions({ ...uses(text)[0]!, formerName: 'proxy' }, context)
    expect(options).toMatchObject({ policy: 'sequential', maxFails: 3, forceTcp: true })
    expect(context.warnings).toHaveLength(4)
    expect(() => setUp(text)).toThrow("unknown policy 'first'")
  })

  it('reads values as they are meant', () => {
    const use = uses(
      'forward . 127.0.0.1 {\nhealth_check 1m domain Example.ORG\nexpire 1.5s\nsource_address ::ffff:192.0.2.1\npolicy sequential\n}',
    )[0]!
    const options = readOptions(use, fakeContext('forward'))
    expect(options).toMatchObject({ expire: 1500, sourceAddress: '192.0.2.1', policy: 'sequential', maxFails: 2, readTimeout: 2000 })
    expect([options.health.interval, options.health.domain.toString()]).toEqual([60_000, 'example.org.'])
  })
})

describe('refused', () => {
  const many = Array.from({ length: 16 }, (_, i) => `127.0.0.${i + 1}`).join(' ')
  it.each([
    ['forward', "Wrong argument count or unexpected line ending after 'forward'"],
    ['forward .', "Wrong argument count or unexpected line ending after '.'"],
    [`forward . ${many}`, 'plugin/forward: more than 15 TOs configured: 16'],
    ['forward . grpc://127.0.0.1', "'grpc' is not supported as a destination protocol in forward: grpc://127.0.0.1"],
    [
      'forward . https://1.1.1.1/',
      'paths are not allowed in HTTPS upstream addresses (the /dns-query path is used by default): https://1.1.1.1/',
    ],
    ['forward . 127.0.0.1 {\nblaatl\n}', "unknown property 'blaatl'"],
    ['forward . 127.0.0.1 {\nmax_fail 3\n}', "did you mean 'max_fails'?"],
    ['forward . 127.0.0.1 {\nmax_fails 3 4\n}', "unknown property '4'"],
    ['forward . 127.0.0.1 {\nhealth_check 0.5s domain\n}', "Wrong argument count or unexpected line ending after 'domain'"],
    ['forward . 127.0.0.1 {\nhealth_check no_rec\n}', 'time: invalid duration "no_rec"'],
    ['forward . 127.0.0.1 {\nhealth_check 1s fast\n}', 'health_check: unknown option fast'],
    ['forward . 127.0.0.1 {\ncookies on\n}', "Wrong argument count or unexpected line ending after 'on'"],
    ['forward . 127.0.0.1 {\nforce_tcp x\n}', "Wrong argument count or unexpected line ending after 'x'"],
    [`forward ${'x'.repeat(64)} 127.0.0.1`, `plugin/forward: unable to normalize '${'x'.repeat(64)}'`],
    ['forward . 127.0.0.1 {\nsource_address not-an-ip\n}', 'invalid IP address: not-an-ip'],
    ['forward . 127.0.0.1 {\nresolver dns.example.com\n}', 'resolver must be an IP address or IP:port: "dns.example.com"'],
    ['forward . 127.0.0.1 {\nresolver\n}', "Wrong argument count or unexpected line ending after 'resolver'"],
    [
      'forward . tls://127.0.0.1%example.net:854 {\ntls_servername foo\n}',
      "both forward ('foo') and proxy level ('example.net') TLS servernames are set for upstream proxy 'tls://127.0.0.1:854'",
    ],
    ['forward . 127.0.0.1 {\nmax_concurrent -4\n}', "max_concurrent can't be negative: -4"],
    ['forward . 127.0.0.1 {\nmax_concurrent many\n}', 'strconv.Atoi: parsing "many": invalid syntax'],
    ['forward . 127.0.0.1 {\nmax_connect_attempts -4\n}', 'strconv.ParseUint: parsing "-4": invalid syntax'],
    ['forward . 127.0.0.1 {\nnext NXDOMAIN INVALID\n}', 'INVALID is not a valid rcode'],
    ['forward . 127.0.0.1 {\nfailover NOERROR\n}', 'NoError cannot be used in failover'],
    ['forward . 127.0.0.1 {\nmax_age -1s\n}', "max_age can't be negative: -1s"],
    ['forward . 127.0.0.1 {\nexpire 30s\nmax_age 10s\n}', 'max_age (10s) must not be less than expire (30s)'],
    ['forward . 127.0.0.1 {\nread_timeout 0s\n}', 'read_timeout must be positive: 0s'],
    ['forward . 127.0.0.1 {\npolicy fastest\n}', "unknown policy 'fastest'"],
    ['forward . 127.0.0.1 {\ndoh_method PUT\n}', 'doh_method must be either POST or GET'],
    ['forward . 127.0.0.1 {\ntls /nonexistent/ca.pem\n}', 'no such file or directory'],
    ['forward . 127.0.0.1 {\ntls a b c d\n}', "Wrong argument count or unexpected line ending after 'd'"],
    ['forward . /dev/null', 'plugin/forward: no valid upstream addresses found'],
  ])('%s', (text, message) => {
    expect(() => setUp(text)).toThrow(message)
  })

  it('nothing for check, in a mistyped address that is a host name, but a note', () => {
    expect(setUp('forward . 127.0.0.300', true).context.notes).toEqual(['"127.0.0.300" is no address; a start looks it up as a host name'])
  })
  it('a host name that cannot be resolved, when it starts', async () => {
    const { plugins } = setUp('forward . a27.invalid {\nresolver 127.0.0.1:1\n}')
    await expect(plugins[0]!.onStartup()).rejects.toThrow('failed to resolve "a27.invalid"')
    setUp('forward . a27.invalid', true)
  })
})
