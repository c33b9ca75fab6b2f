import { describe, expect, it } from 'vitest'
import { type Message, parseRecord, RCODE } from '../../dns/index.js'
import { DROP, type Handler, type Query, ServeError } from '../contract.js'
import { FakeClock, query, setUp } from '../testing.js'
import { classOf, kindOf } from './classify.js'
import log from './index.js'

describe('set-up', () => {
  it.each([
    ['log', undefined],
    ['log example.org. {common}', undefined],
    ['log example.org\nlog example.net {combined}', undefined],
    ['log example.org example.net', undefined],
    ['log {\n class denial\n class error\n}', undefined],
    ['log example.org "{when} {common} {/forward/upstream}"', undefined],
    ['log {\n unknown\n}', "plugin/log: Corefile:3 - Error during parsing: unknown property 'unknown'"],
    ['log {\n class\n}', "Wrong argument count or unexpected line ending after 'class'"],
    ['log {\n class foo\n}', 'plugin/log: invalid Class: foo'],
  ])('%j', (text, error) => {
    if (error === undefined) expect(() => setUp(log, text)).not.toThrow()
    else expect(() => setUp(log, text)).toThrow(error)
  })

  it('warns of a format where a name is expected', () => {
    expect(setUp(log, 'log {combined}').context.warnings).toEqual([
      "'{combined}' is taken for a name; for a format write: log . {combined}",
    ])
  })
})

const ok: Handler = (q) => q.reply('test', RCODE.NOERROR, { answers: [parseRecord('www.example.org. 30 IN A 192.0.2.1')] })

/** The lines that `text` prints for one query. */
async function lines(text: string, asked: Query = query('WWW.example.org.', 'A'), next: Handler = ok): Promise<string[]> {
  const { plugin, context } = setUp(log, text, { clock: new FakeClock() })
  try {
    const reply = await plugin.serveDNS!(asked, next)
    if (reply !== DROP && 'stream' in reply) for await (const _ of reply.stream);
  } catch (error) {
    expect(error).toBeInstanceOf(ServeError)
  }
  return context.log.lines
}

describe('formats', () => {
  it.each([
    ['log', '[INFO] 10.240.0.1:40212 - 1 "A IN www.example.org. udp 33 false 512" NOERROR qr,aa,rd 64 0s'],
    ['log . {combined}', '[INFO] 10.240.0.1:40212 - 1 "A IN www.example.org. udp 33 false 512" NOERROR qr,aa,rd 64 0s "0"'],
    ['log . "{common} tail"', '[INFO] 10.240.0.1:40212 - 1 "A IN www.example.org. udp 33 false 512" NOERROR qr,aa,rd 64 0s tail'],
    ['log . "{ {type} } {what} {/a/b} {local}}"', '[INFO] { A } {what} - 127.0.0.1}'],
  ])('%j', async (text, line) => {
    expect(await lines(text)).toEqual([line])
  })

  it('prints addresses of IPv6 in brackets, tcp for every stream, DO and the size asked for', async () => {
    const asked = query('a.', 'AAAA', { address: '2001:db8::1', proto: 'tls', dnssecOk: true, size: 1232 })
    expect(await lines('log . "{remote} {proto} {>do} {>bufsize}"', asked)).toEqual(['[INFO] [2001:db8::1] tcp true 65535'])
    expect(await lines('log . "{>bufsize}"', query('a.', 'A', { size: 100 }))).toEqual(['[INFO] 512'])
  })

  it('escapes octets that are no printable text', async () => {
    expect(await lines('log . {name}', query('\\255\\010.%s.example.', 'A'))).toEqual(['[INFO] \\255\\010.%s.example.'])
  })

  it('prints seconds without exponent', async () => {
    const clock = new FakeClock(0)
    const { plugin, context } = setUp(log, 'log . {duration}', { clock })
    void plugin.serveDNS!(query('a.', 'A'), (q) => {
      clock.advance(0.05)
      return ok(q)
    })
    expect(context.log.lines).toEqual(['[INFO] 0.00005s'])
  })

  it('shows metadata, its own included', async () => {
    const asked = query('a.', 'A')
    asked.metadata = new Map([['test/x', () => 'here']])
    expect(await lines('log . "{/test/x} {/log/type} {/log/class} {/none/such}"', asked)).toEqual(['[INFO] here NOERROR success -'])
  })

  it('shows tc where the client will get less than the reply has', async () => {
    const answers = Array.from({ length: 40 }, (_, i) => parseRecord(`www.example.org. 30 IN A 192.0.2.${i}`))
    const big: Handler = (q) => q.reply('test', RCODE.NOERROR, { answers })
    expect(await lines('log . {>rflags}', query('www.example.org.', 'A'), big)).toEqual(['[INFO] qr,aa,tc,rd'])
    expect(await lines('log . {>rflags}', query('www.example.org.', 'A', { size: 1232 }), big)).toEqual(['[INFO] qr,aa,rd'])
  })
})

describe('what is logged', () => {
  it('takes names by scope, the first rule that fits', async () => {
    expect(await lines('log example.net')).toEqual([])
    expect(await lines('log example.net EXAMPLE.org one{\nlog . two{')).toEqual(['[INFO] one{'])
  })

  it('prints the reply that the server will send for a failure', async () => {
    const broken: Handler = () => {
      throw new ServeError('no', RCODE.REFUSED)
    }
    expect(await lines('log', undefined, broken)).toEqual([expect.stringContaining('REFUSED qr,rd 33 ')])
  })

  it('prints dashes for a query that nobody answers', async () => {
    expect(await lines('log', undefined, () => DROP)).toEqual([expect.stringContaining('" - - 0 ')])
  })

  it('adds up a transfer and prints it at its end', async () => {
    const reply = (q: Query): Message => ok(q) as Message
    const stream: Handler = (q) => ({
      by: 'test',
      stream: (async function* () {
        yield reply(q)
        yield reply(q)
      })(),
    })
    expect(await lines('log . "{rcode} {rsize}"', undefined, stream)).toEqual(['[INFO] NOERROR 128'])
  })

  it('leaves questions of plugins to the line of the client', async () => {
    const asked = query('a.', 'A')
    expect(await lines('log', asked.derive(asked.name))).toEqual([])
  })

  it.each([
    ['log {\n class success\n}', RCODE.NOERROR, 1],
    ['log {\n class denial error\n}', RCODE.NOERROR, 0],
    ['log {\n class denial\n}', RCODE.NXDOMAIN, 1],
    ['log {\n class error\n}', RCODE.SERVFAIL, 1],
    ['log {\n class error all\n}', RCODE.NOERROR, 1],
  ])('%j lets rcode %d through %d times', async (text, rcode, count) => {
    expect(await lines(text, undefined, (q) => q.reply('test', rcode))).toHaveLength(count)
  })
})

describe('kinds of replies', () => {
  const asked = query('www.example.org.', 'A')
  const soa = parseRecord('example.org. 30 IN SOA ns. h. 1 2 3 4 5')
  const ns = parseRecord('example.org. 30 IN NS ns.example.org.')
  const a = parseRecord('www.example.org. 30 IN A 192.0.2.1')
  it.each([
    [asked.reply('t', RCODE.NOERROR, { answers: [a] }), 'NOERROR', 'success'],
    [asked.reply('t', RCODE.NOERROR, { authorities: [ns] }), 'DELEGATION', 'success'],
    [asked.reply('t', RCODE.NOERROR, { authorities: [ns, soa] }), 'NODATA', 'denial'],
    [asked.reply('t', RCODE.NXDOMAIN), 'NXDOMAIN', 'denial'],
    [asked.reply('t', RCODE.NXDOMAIN, { answers: [a] }), 'OTHERERROR', 'error'],
    [asked.reply('t', RCODE.NOTIMP), 'SERVERERROR', 'error'],
    [asked.reply('t', RCODE.REFUSED), 'OTHERERROR', 'error'],
    [query('example.org.', 'AXFR').reply('t', RCODE.NOERROR), 'META', 'error'],
    [undefined, 'OTHERERROR', 'error'],
  ])('%#: %s %s', (message, kind, cls) => {
    expect(kindOf(message, 0)).toBe(kind)
    expect(classOf(kindOf(message, 0))).toBe(cls)
  })

  it('counts a signature out of its time as an error when DNSSEC was asked for', () => {
    const edns = { size: 1232, extendedRcode: 0, version: 0, dnssecOk: true, z: 0, options: [] }
    const rrsig = parseRecord('www.example.org. 30 IN RRSIG A 8 3 30 20380101000000 20200101000000 1 example.org. AAAA')
    const reply = asked.reply('t', RCODE.NOERROR, { answers: [a, rrsig] }).with({ edns })
    expect(kindOf(reply, Date.UTC(2030, 0, 1))).toBe('NOERROR')
    expect(kindOf(reply, Date.UTC(2039, 0, 1))).toBe('OTHERERROR')
    expect(kindOf(reply, Date.UTC(2019, 0, 1))).toBe('OTHERERROR')
  })
})
