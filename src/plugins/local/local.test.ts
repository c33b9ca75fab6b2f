import { describe, expect, it } from 'vitest'
import { formatRecord, type Message, RCODE } from '../../dns/index.js'
import { fakeBlock, lastHandler, query, setUp } from '../testing.js'
import local from './index.js'

it.each([
  ['local', undefined],
  ['local {\n localhost_prefix off\n}', undefined],
  [
    'local example.org',
    "plugin/local: Corefile:2 - Error during parsing: Wrong argument count or unexpected line ending after 'example.org'",
  ],
  ['local {\n foo\n}', "unknown property 'foo'"],
  ['local {\n localhost_prefix\n}', "Wrong argument count or unexpected line ending after 'localhost_prefix'"],
  ['local {\n localhost_prefix a\n}', "localhost_prefix expects 'on' or 'off', got \"a\""],
])('set-up of %j', (text, error) => {
  if (error === undefined) expect(() => setUp(local, text)).not.toThrow()
  else expect(() => setUp(local, text)).toThrow(error)
})

/** Rcode, answers and authorities as text; undefined if the query was passed on. */
function ask(name: string, type: string, text = 'local') {
  const end = lastHandler((q) => q.reply('next', 0))
  const { plugin, context } = setUp(local, text, { block: { ...fakeBlock(), debug: true } })
  const reply = plugin.serveDNS!(query(name, type), end.next) as Message
  const count = context.metrics.values.get('coredns_local_localhost_requests_total{}')
  if (end.calls.length > 0) return { count, reply: undefined, lines: context.log.lines }
  expect(reply.aa).toBe(false)
  const section = (records: Message['answers']): string[] => records.map((rr) => formatRecord(rr).replace(/\s+/g, ' '))
  return { count, reply: [reply.rcode, ...section(reply.answers), '|', ...section(reply.authorities)], lines: context.log.lines }
}

const soa = (owner: string): string => `${owner} 604800 IN SOA localhost. root.localhost. 1 0 0 0 604800`

describe('serving', () => {
  it.each([
    ['localhost.', 'A', [RCODE.NOERROR, 'localhost. 604800 IN A 127.0.0.1', '|']],
    ['LocalHost.', 'AAAA', [RCODE.NOERROR, 'LocalHost. 604800 IN AAAA ::1', '|']],
    ['localhost.', 'NS', [RCODE.NOERROR, 'localhost. 604800 IN NS localhost.', '|']],
    ['localhost.', 'SOA', [RCODE.NOERROR, soa('localhost.'), '|']],
    ['localhost.', 'MX', [RCODE.NOERROR, '|', soa('localhost.')]],
    ['127.in-addr.arpa.', 'NS', [RCODE.NOERROR, '127.in-addr.arpa. 604800 IN NS localhost.', '|']],
    ['127.in-addr.arpa.', 'A', [RCODE.NOERROR, '|', soa('127.in-addr.arpa.')]],
    ['1.0.0.127.in-addr.arpa.', 'PTR', [RCODE.NOERROR, '1.0.0.127.in-addr.arpa. 604800 IN PTR localhost.', '|']],
    ['1.0.0.127.in-addr.arpa.', 'A', [RCODE.NOERROR, '|', soa('127.in-addr.arpa.')]],
    ['2.0.0.127.IN-ADDR.arpa.', 'PTR', [RCODE.NXDOMAIN, '|', soa('127.IN-ADDR.arpa.')]],
    ['9.0.in-addr.arpa.', 'PTR', [RCODE.NXDOMAIN, '|', soa('0.in-addr.arpa.')]],
  ])('%s %s', (name, type, reply) => {
    expect(ask(name, type)).toMatchObject({ reply, count: 0 })
  })

  it.each([
    ['a.localhost.', 'A', [RCODE.NOERROR, 'a.localhost. 604800 IN A 127.0.0.1', '|']],
    ['localhost.example.org.', 'AAAA', [RCODE.NOERROR, 'localhost.example.org. 604800 IN AAAA ::1', '|']],
    ['localhost.example.org.', 'TXT', [RCODE.NOERROR, '|', soa('localhost.example.org.')]],
  ])('%s %s is counted, and a line of debug', (name, type, reply) => {
    const { count, lines, ...rest } = ask(name, type)
    expect(rest).toEqual({ reply })
    expect(count).toBe(1)
    expect(lines).toEqual([`[DEBUG] plugin/local: Intercepting localhost query for "${name}" ${type}, from 10.240.0.1`])
  })

  it('passes on the rest', () => {
    expect(ask('example.org.', 'A').reply).toBeUndefined()
    expect(ask('mylocalhost.', 'A').reply).toBeUndefined()
    expect(ask('1.128.in-addr.arpa.', 'PTR').reply).toBeUndefined()
  })

  it('takes localhost for special only at the end of a name with `localhost_prefix off`', () => {
    const text = 'local {\n localhost_prefix off\n}'
    expect(ask('localhost.example.org.', 'A', text)).toMatchObject({ reply: undefined, count: 0 })
    expect(ask('a.localhost.', 'A', text)).toMatchObject({ count: 1 })
  })
})
