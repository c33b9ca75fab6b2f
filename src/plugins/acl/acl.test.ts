import { describe, expect, it } from 'vitest'
import type { Message } from '../../dns/index.js'
import { DROP } from '../contract.js'
import { fakeBlock, lastHandler, query, setUp } from '../testing.js'
import acl from './index.js'

it.each([
  ['acl', undefined],
  ['acl {\n allow type * net 192.168.1.0/24\n block type * net 192.168.0.0/16\n}', undefined],
  ['acl {\n filter type A net 2001:0db8:85a3:0000:0000:8a2e:0370:7334\n}', undefined],
  ['acl a.example.org {\n block net 2001:db8:abcd:0012::0/64\n}', undefined],
  ['acl {\n BLOCK TYPE A AAAA NET 1.2.3.4 ::1\n}', undefined],
  [
    'acl {\n blck type A\n}',
    "plugin/acl: Corefile:3 - Error during parsing: unexpected token \"blck\"; expect 'allow', 'block', 'filter' or 'drop'",
  ],
  ['acl {\n block A\n}', 'unexpected token "A"; expect \'type | net\''],
  ['acl {\n block type net 192.168.0.0/16\n}', 'no token specified in "type" section'],
  ['acl {\n block type ABC\n}', 'unexpected token "ABC"; expect legal QTYPE'],
  ['acl {\n block net 1.2.3/24\n}', 'illegal CIDR notation "1.2.3/24"'],
  ['acl {\n block net 1.2.3.4/33\n}', 'illegal CIDR notation "1.2.3.4/33"'],
  ['acl {\n block net 2001::85a3::8a2e:370:7334\n}', 'illegal CIDR notation "2001::85a3::8a2e:370:7334/128"'],
])('set-up of %j', (text, error) => {
  if (error === undefined) expect(() => setUp(acl, text)).not.toThrow()
  else expect(() => setUp(acl, text)).toThrow(error)
})

/** What happens to a query, and what was counted. */
function ask(text: string, type: string, address: string, name = 'www.example.org.') {
  const end = lastHandler((q) => q.reply('next', 0))
  const { plugin, context } = setUp(acl, text, { block: fakeBlock(['example.org.']) })
  const asked = query(name, type, { address })
  if (address.includes(':')) (asked.peer as { family: number }).family = 6
  const reply = plugin.serveDNS!(asked, end.next)
  const counted = [...context.metrics.values.keys()]
  if (end.calls.length > 0) return { what: 'next', counted }
  if (reply === DROP) return { what: 'drop', counted }
  const { rcode, edns } = reply as Message
  return { what: `${rcode} ${edns?.options.map(({ code, data }) => `${code}:${data.toString('hex')}`)}`, counted }
}

const BLOCKED = '5 15:000f'
const FILTERED = '0 15:0011'

describe('serving', () => {
  it.each([
    ['acl {\n block type A net 192.168.0.0/16\n}', 'A', '192.168.1.2', BLOCKED],
    ['acl {\n block type A net 192.168.0.0/16\n}', 'AAAA', '192.168.1.2', 'next'],
    ['acl {\n block type A net 192.168.0.0/16\n}', 'A', '10.0.0.1', 'next'],
    ['acl {\n filter net 192.168.1.2\n}', 'A', '192.168.1.2', FILTERED],
    ['acl {\n drop net 2001:db8::/32\n}', 'A', '2001:db8::1', 'drop'],
    ['acl {\n drop net 2001:db8::/32\n}', 'A', '2001:db9::1', 'next'],
    ['acl {\n block net 0.0.0.0/0\n}', 'A', '2001:db8::1', 'next'],
    ['acl {\n allow net 192.168.1.0/24\n block\n}', 'A', '192.168.1.2', 'next'],
    ['acl {\n allow net 192.168.1.0/24\n block\n}', 'A', '192.168.2.2', BLOCKED],
    ['acl {\n allow net 192.168.1.0/24\n}\nacl {\n block\n}', 'A', '192.168.1.2', 'next'],
    ['acl {\n block type TXT\n}\nacl {\n filter\n}', 'A', '192.168.1.2', FILTERED],
    ['acl other.example.org {\n block\n}', 'A', '192.168.1.2', 'next'],
  ])('%j: %s from %s: %s', (text, type, address, what) => {
    expect(ask(text, type, address).what).toBe(what)
  })

  it('counts by outcome', () => {
    const text = 'acl example.org www.example.org {\n block type A\n filter type AAAA\n drop type MX\n}'
    expect(ask(text, 'A', '10.0.0.1').counted).toEqual([
      'coredns_acl_blocked_requests_total{server="dns://:53",zone="www.example.org.",view=""}',
    ])
    expect(ask(text, 'AAAA', '10.0.0.1').counted).toEqual([expect.stringContaining('acl_filtered')])
    expect(ask(text, 'MX', '10.0.0.1').counted).toEqual([expect.stringContaining('acl_dropped')])
    expect(ask(text, 'TXT', '10.0.0.1').counted).toEqual(['coredns_acl_allowed_requests_total{server="dns://:53",view=""}'])
  })
})
