import { describe, expect, it } from 'vitest'
import { formatRecord, type Message } from '../../dns/index.js'
import { type QueryOptions, query, setUp } from '../testing.js'
import whoami from './index.js'

const { plugin } = setUp(whoami, 'whoami')
const ask = (name: string, options: QueryOptions & { family?: 4 | 6 } = {}): Message => {
  const asked = query(name, 'A', options)
  if (options.family === 6) (asked.peer as { family: number }).family = 6
  return plugin.serveDNS!(asked, () => {
    throw new Error('whoami is the end of a chain')
  }) as Message
}

describe('whoami', () => {
  it.each<[string, Parameters<typeof ask>[1], readonly string[]]>([
    ['Example.org.', {}, ['Example.org. 0 IN A 10.240.0.1', '_udp.Example.org. 0 IN SRV 0 0 40212 .']],
    ['.', { proto: 'tcp' }, ['. 0 IN A 10.240.0.1', '_tcp. 0 IN SRV 0 0 40212 .']],
    ['a.', { proto: 'tls', class: 3 }, ['a. 0 CH A 10.240.0.1', '_tcp.a. 0 CH SRV 0 0 40212 .']],
    ['a.', { address: '2001:db8::1', family: 6 }, ['a. 0 IN AAAA 2001:db8::1', '_udp.a. 0 IN SRV 0 0 40212 .']],
  ])('answers %s %j in the additional section', (name, options, records) => {
    const reply = ask(name, options)
    expect(reply.additionals.map((rr) => formatRecord(rr).replace(/\s+/g, ' '))).toEqual(records)
    expect([reply.answers.length, reply.aa, reply.rcode, reply.by]).toEqual([0, true, 0, 'whoami'])
  })

  it('leaves the SRV record out for a name of 255 octets', () => {
    const label = 'a'.repeat(63)
    expect(ask(`${label}.${label}.${label}.${'a'.repeat(61)}.`).additionals).toHaveLength(1)
    expect(() => ask(`${label}.${label}.${label}.${'a'.repeat(61)}.`).toBuffer()).not.toThrow()
  })
})
