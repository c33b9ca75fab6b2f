import { afterEach, describe, expect, it } from 'vitest'
import { Message, OPTION, parseRecord, RCODE } from '../../src/dns/index.js'
import { query } from '../../src/plugins/testing.js'
import { type Answer, address, FakeUpstream, refuse, reply, silent } from '../../test/fakes/upstream.js'
import { type Started, start } from '../../test/support/forward.js'

const open: { stop(): unknown }[] = []
afterEach(async () => {
  for (const thing of open.splice(0).reverse()) await thing.stop()
})

async function upstream(answer: Answer = address('192.0.2.1'), options = {}): Promise<FakeUpstream> {
  const fake = await FakeUpstream.start(answer, options)
  open.push(fake)
  return fake
}
async function forward(text: string, over = {}): Promise<Started> {
  const started = await start(text, over)
  open.push(started)
  return started
}
const addresses = (message: Message): string[] => message.answers.map((rr) => (rr.data.kind === 'A' ? rr.data.address : rr.data.kind))
const www = (options = {}): ReturnType<typeof query> => query('www.example.org.', 'A', options)

describe('a query', () => {
  it('is passed on and its reply comes back under the id of the client, undecoded', async () => {
    const u = await upstream()
    const { ask } = await forward(`forward . ${u.address}`)
    const answer = await ask(www({ id: 4711 }))
    expect(answer.id).toBe(4711)
    expect(answer.by).toBe('forward')
    expect(answer.bytes).toBeDefined()
    expect(addresses(answer)).toEqual(['192.0.2.1'])
    expect(u.asked.map((asked) => asked.proto)).toEqual(['udp'])
    expect(u.asked[0]!.message.bytes!.length).toBe(www().message.length)
  })

  it('keeps the flags and the case of the client, whatever case the upstream answers in', async () => {
    const u = await upstream((asked) => {
      const bytes = reply(asked, ['www.example.org. 60 IN A 192.0.2.1']).toBuffer()
      for (let i = 12; bytes[i] !== 0; i++) if (bytes[i]! >= 0x41 && bytes[i]! <= 0x5a) bytes[i]! |= 0x20
      return bytes
    })
    const { ask } = await forward(`forward . ${u.address}`)
    const answer = await ask(query('WwW.eXample.ORG.', 'A', { cd: true, ad: true, rd: false }))
    expect(answer.question!.name.toString()).toBe('WwW.eXample.ORG.')
    const asked = u.asked[0]!.message
    expect([asked.rd, asked.cd, asked.ad]).toEqual([false, true, true])
    expect(asked.question!.name.toString()).toBe('WwW.eXample.ORG.')
  })

  it('goes by TCP where it came by TCP, over one connection for many', async () => {
    const u = await upstream()
    const { ask, context } = await forward(`forward . ${u.address}`)
    await Promise.all(Array.from({ length: 30 }, () => ask(www({ proto: 'tcp' }))))
    await ask(www({ proto: 'tls' }))
    expect(u.count('', 'tcp')).toBe(31)
    expect(u.connections).toBe(1)
    expect(context.metrics.values.get(`coredns_proxy_conn_cache_hits_total{proxy_name="forward",to="${u.address}",proto="tcp"}`)).toBe(30)
  })

  it.each([
    ['force_tcp', 'udp', 'tcp'],
    ['prefer_udp', 'tcp', 'udp'],
    ['prefer_udp\n force_tcp', 'udp', 'tcp'],
  ])('with %s goes from %s to %s', async (option, from, to) => {
    const u = await upstream()
    const { ask } = await forward(`forward . ${u.address} {\n ${option}\n}`)
    await ask(www({ proto: from }))
    expect(u.asked.map((asked) => asked.proto)).toEqual([to])
  })

  it('leaves cookies, padding, keepalive and ECS of the client behind and takes other options along', async () => {
    const u = await upstream()
    const { ask } = await forward(`forward . ${u.address}`)
    const option = (code: number, text = 'xy') => ({ code, data: Buffer.from(text) })
    const options = [
      option(OPTION.COOKIE, '12345678'),
      option(65_001, 'kept'),
      option(OPTION.PADDING),
      option(OPTION.ECS),
      option(OPTION.NSID, ''),
      option(OPTION.KEEPALIVE),
    ]
    await ask(www({ size: 1400, dnssecOk: true, options }))
    const { edns } = u.asked[0]!.message
    expect(edns).toMatchObject({ size: 1400, dnssecOk: true })
    expect(edns!.options.map(({ code }) => code)).toEqual([65_001, OPTION.NSID])
    expect(edns!.options[0]!.data.toString()).toBe('kept')
  })

  it('takes ECS along with ecs pass', async () => {
    const u = await upstream()
    const { ask } = await forward(`forward . ${u.address} {\n ecs pass\n}`)
    await ask(www({ options: [{ code: OPTION.ECS, data: Buffer.from([0, 1, 24, 0, 192, 0, 2]) }] }))
    expect(u.asked[0]!.message.edns!.options).toHaveLength(1)
  })

  it('changed by a plugin keeps what the plugin set, and still leaves behind what the client set', async () => {
    const u = await upstream()
    const { ask } = await forward(`forward . ${u.address}`)
    const ecs = (octet: number) => ({ code: OPTION.ECS, data: Buffer.from([0, 1, 24, 0, 192, 0, octet]) })
    const client = www({ options: [ecs(1), { code: OPTION.COOKIE, data: Buffer.from('12345678') }] })
    const edns = client.message.edns!
    await ask(client.carrying(client.message.with({ edns: { ...edns, size: 1232 } })))
    expect(u.asked[0]!.message.edns).toMatchObject({ size: 1232, options: [] })
    await ask(client.carrying(client.message.with({ edns: { ...edns, options: [ecs(9)] } })))
    expect(u.asked[1]!.message.edns!.options.map(({ data }) => data[6])).toEqual([9])
  })

  it('that is no query but a NOTIFY is not passed on', async () => {
    const u = await upstream()
    const { ask } = await forward(`forward . ${u.address}`)
    const client = www()
    const answer = await ask(client.carrying(client.message.with({ flags: 0x2000 })))
    expect(answer.rcode).toBe(RCODE.NOTIMP)
    expect(u.count()).toBe(0)
  })

  it('made by a plugin is encoded', async () => {
    const u = await upstream()
    const { ask } = await forward(`forward . ${u.address}`)
    const client = www({ size: 1232 })
    const derived = client.derive(query('other.example.', 'A').name)
    const answer = await ask(derived)
    expect(answer.question!.name.toString()).toBe('other.example.')
    expect(u.asked[0]!.question).toBe('other.example. A')
  })

  it('that is not below FROM, or excepted, goes to the next plugin; FROM itself is never excepted', async () => {
    const u = await upstream(address('192.0.2.1'))
    const v = await upstream(address('192.0.2.2'))
    const { ask } = await forward(`forward example.org ${u.address} {\n except example.org\n}\nforward . ${v.address}`)
    expect(addresses(await ask(query('EXAMPLE.org.', 'A')))).toEqual(['192.0.2.1'])
    expect(addresses(await ask(query('www.example.org.', 'A')))).toEqual(['192.0.2.2'])
    expect(addresses(await ask(query('notexample.org.', 'A')))).toEqual(['192.0.2.2'])
  })
})

describe('replies', () => {
  it('from elsewhere, with a wrong id or question, garbage and malformed ones are ignored and the real one is taken', async () => {
    const u = await upstream((asked) => {
      const good = reply(asked, ['www.example.org. 60 IN A 192.0.2.1'])
      const lie = reply(asked, ['www.example.org. 60 IN A 203.0.113.1'])
      const malformed = lie.toBuffer()
      malformed.writeUInt16BE(500, malformed.length - 6)
      const otherName = Message.reply(query('www.example.net.', 'A', { id: asked.message.id }).message)
      return [
        { send: lie, elsewhere: true },
        { send: lie.with({ id: (asked.message.id + 1) & 0xffff }) },
        { send: otherName },
        { send: malformed },
        { send: asked.message },
        { send: Buffer.from([asked.message.id >> 8, asked.message.id & 255]) },
        { send: Buffer.from('garbage') },
        { after: 20, send: good },
      ]
    })
    const { ask, context } = await forward(`forward . ${u.address}`)
    expect(addresses(await ask(www()))).toEqual(['192.0.2.1'])
    expect(context.metrics.values.get(`coredns_forward_ignored_replies_total{to="${u.address}"}`)).toBe(6)
    expect(u.count()).toBe(1)
  })

  it('that are a bare header with an error get the question back', async () => {
    const u = await upstream((asked) => {
      const header = reply(asked, [], { rcode: RCODE.FORMERR, edns: undefined, question: undefined }).toBuffer()
      header.writeUInt16BE(asked.message.id, 0)
      return header
    })
    const { ask } = await forward(`forward . ${u.address}`)
    const answer = await ask(www({ size: 1232 }))
    expect(answer.rcode).toBe(RCODE.FORMERR)
    expect(answer.question!.name.toString()).toBe('www.example.org.')
  })

  it('with TC are passed on to a client that came by UDP', async () => {
    const u = await upstream((asked) => reply(asked, [], { tc: asked.proto === 'udp' }))
    const { ask } = await forward(`forward . ${u.address}`)
    expect((await ask(www())).tc).toBe(true)
    expect(u.count('', 'tcp')).toBe(0)
  })

  it('with TC make prefer_udp ask by TCP, for every client', async () => {
    const u = await upstream((asked) =>
      asked.proto === 'udp' ? reply(asked, [], { tc: true }) : reply(asked, ['www.example.org. 60 IN A 192.0.2.1']),
    )
    const { ask } = await forward(`forward . ${u.address} {\n prefer_udp\n}`)
    expect(addresses(await ask(www()))).toEqual(['192.0.2.1'])
    expect(addresses(await ask(www({ proto: 'tcp' })))).toEqual(['192.0.2.1'])
  })

  it('larger than was asked for by UDP become TC', async () => {
    const many = Array.from({ length: 40 }, (_, i) => `www.example.org. 60 IN A 192.0.2.${i}`)
    const u = await upstream((asked) => reply(asked, many))
    const { ask } = await forward(`forward . ${u.address}`)
    const small = await ask(www())
    expect([small.tc, small.count(1), small.count(3)]).toEqual([true, 0, 0])
    expect((await ask(www({ size: 1232 }))).count(1)).toBe(40)
    expect((await ask(www({ proto: 'tcp' }))).count(1)).toBe(40)
  })

  it('whose counts promise more than there is end where they end', async () => {
    const u = await upstream((asked) => {
      const bytes = reply(asked, ['www.example.org. 60 IN A 192.0.2.1'], { tc: true }).toBuffer()
      bytes.writeUInt16BE(9, 6)
      return bytes
    })
    const { ask } = await forward(`forward . ${u.address}`)
    expect((await ask(www())).count(1)).toBe(1)
  })

  it('are looked for in the right letter case with random_case, else by TCP', async () => {
    let fold = false
    const u = await upstream((asked) => {
      const bytes = reply(asked, ['www.example.org. 60 IN A 192.0.2.1']).toBuffer()
      if (fold && asked.proto === 'udp') for (let i = 12; bytes[i] !== 0; i++) if (bytes[i]! >= 0x41 && bytes[i]! <= 0x5a) bytes[i]! |= 0x20
      return bytes
    })
    const { ask } = await forward(`forward . ${u.address} {\n random_case\n}`)
    const name = 'a-rather-long-name-with-many-letters.example.org.'
    const answer = await ask(query(name, 'A'))
    expect(answer.question!.name.toString()).toBe(name)
    expect(u.asked[0]!.question).not.toBe(`${name} A`)
    expect(u.asked[0]!.question.toLowerCase()).toBe(`${name} a`)
    fold = true
    expect((await ask(query(name, 'A'))).question!.name.toString()).toBe(name)
    expect(u.count('', 'tcp')).toBe(1)
  })
})

describe('upstreams', () => {
  it('follow each other by round_robin, beginning with the second', async () => {
    const all = [await upstream(address('192.0.2.1')), await upstream(address('192.0.2.2')), await upstream(address('192.0.2.3'))]
    const { ask } = await forward(`forward . ${all.map((u) => u.address).join(' ')} {\n policy round_robin\n}`)
    const seen: string[] = []
    for (let i = 0; i < 6; i++) seen.push(...addresses(await ask(www())))
    expect(seen).toEqual(['192.0.2.2', '192.0.2.3', '192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.1'])
  })

  it('are all used by random', async () => {
    const all = [await upstream(), await upstream(), await upstream()]
    const { ask } = await forward(`forward . ${all.map((u) => u.address).join(' ')}`)
    for (let i = 0; i < 60; i++) await ask(www())
    expect(all.map((u) => u.count() > 5)).toEqual([true, true, true])
  })

  it('that refuse are left for the next at once, probed, and used again when they are back', async () => {
    const u = await upstream(address('192.0.2.1'))
    const v = await upstream(address('192.0.2.2'))
    const { ask, context } = await forward(`forward . ${u.address} ${v.address} {\n policy sequential\n health_check 50ms\n}`)
    await ask(www())
    await u.down()
    const began = performance.now()
    for (let i = 0; i < 5; i++) expect(addresses(await ask(www()))).toEqual(['192.0.2.2'])
    expect(performance.now() - began).toBeLessThan(150)
    await u.up()
    u.asked = []
    await u.until(() => u.count('. NS') > 0)
    while (addresses(await ask(www()))[0] !== '192.0.2.1') await u.until(() => true)
    expect(context.metrics.values.get(`coredns_proxy_healthcheck_failures_total{proxy_name="forward",to="${u.address}"}`)).toBeGreaterThan(
      0,
    )
  })

  it('that are silent are overtaken after 200 ms, and not asked first any more', async () => {
    const u = await upstream(silent)
    const v = await upstream(address('192.0.2.2'))
    const { ask } = await forward(`forward . ${u.address} ${v.address} {\n policy sequential\n}`)
    const began = performance.now()
    await Promise.all([1, 2, 3, 4].map(() => ask(www())))
    const first = performance.now() - began
    expect(first).toBeGreaterThan(190)
    expect(first).toBeLessThan(600)
    const then = performance.now()
    await ask(www())
    expect(performance.now() - then).toBeLessThan(100)
  })

  it('that are slow may still answer after the next was asked', async () => {
    const u = await upstream((asked) => [{ after: 350, send: reply(asked, ['www.example.org. 60 IN A 192.0.2.1']) }])
    const v = await upstream(silent)
    const { ask } = await forward(`forward . ${u.address} ${v.address} {\n policy sequential\n}`)
    expect(addresses(await ask(www()))).toEqual(['192.0.2.1'])
    expect(v.count('www')).toBe(1)
  })

  it.each([
    ['', 2],
    ['max_connect_attempts 1', 1],
    ['max_connect_attempts 5', 5],
  ])('are tried no more than the attempts allow (%s)', async (option, attempts) => {
    const u = await upstream(silent)
    const { ask } = await forward(`forward . ${u.address} {\n read_timeout 50ms\n max_fails 0\n ${option}\n}`)
    await expect(ask(www())).rejects.toThrow(/^read udp 127\.0\.0\.1:\d+->127\.0\.0\.1:\d+: i\/o timeout$/)
    // By name: on a busy machine a stray datagram for an earlier owner of the port may come in.
    expect(u.count('www.example.org. A')).toBe(attempts)
  })

  it('that all refuse make no busy loop without a limit of attempts, and the error names the reason', async () => {
    const u = await upstream()
    await u.down()
    const { ask, context } = await forward(`forward . ${u.address} {\n max_connect_attempts 0\n max_fails 0\n}`)
    const slow = www({ received: performance.now() - 4500 })
    await expect(ask(slow)).rejects.toThrow(/connection refused$/)
    expect(context.metrics.values.get(`coredns_forward_requests_total{to="${u.address}"}`)).toBeLessThan(12)
  })

  it('with failover: each is asked once, and the last reply is given', async () => {
    const u = await upstream((asked) => reply(asked, [], { rcode: RCODE.SERVFAIL }))
    const v = await upstream(refuse)
    const { ask } = await forward(`forward . ${u.address} ${v.address} {\n policy sequential\n failover SERVFAIL REFUSED\n}`)
    expect((await ask(www())).rcode).toBe(RCODE.REFUSED)
    expect([u.count(), v.count()]).toEqual([1, 1])
  })

  it('all down: a random one is asked, or none with failfast', async () => {
    const u = await upstream(silent)
    const text = `forward . ${u.address} {\n read_timeout 30ms\n max_fails 1\n health_check 20ms`
    const lax = await forward(`${text}\n}`)
    const { values } = lax.context.metrics
    const failures = `coredns_proxy_healthcheck_failures_total{proxy_name="forward",to="${u.address}"}`
    await expect(lax.ask(www())).rejects.toThrow('i/o timeout')
    while ((values.get(failures) ?? 0) < 2) await new Promise((resolve) => setTimeout(resolve, 20))
    u.asked = []
    await expect(lax.ask(www())).rejects.toThrow('i/o timeout')
    expect(u.count('www')).toBe(1)
    expect(values.get('coredns_forward_healthcheck_broken_total{}')).toBe(1)
    u.answer = address('192.0.2.1')
    expect(addresses(await lax.ask(www()))).toEqual(['192.0.2.1'])
  })

  it('all down with failfast: SERVFAIL at once', async () => {
    const u = await upstream()
    await u.down()
    const { ask, context } = await forward(
      `forward . ${u.address} {\n max_fails 1\n health_check 20ms\n failfast_all_unhealthy_upstreams\n}`,
    )
    await expect(ask(www())).rejects.toThrow('connection refused')
    const failures = `coredns_proxy_healthcheck_failures_total{proxy_name="forward",to="${u.address}"}`
    while ((context.metrics.values.get(failures) ?? 0) < 2) await new Promise((resolve) => setTimeout(resolve, 20))
    await expect(ask(www())).rejects.toThrow('no healthy proxies')
    await u.up()
    await u.until(() => u.count('. NS') > 0)
    for (;;) {
      const answer = await ask(www()).catch(() => undefined)
      if (answer !== undefined) break
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  })

  it('are probed as health_check says, by TCP with force_tcp', async () => {
    const u = await upstream((asked) => (asked.question.startsWith('probe') ? reply(asked) : []))
    const { ask } = await forward(
      `forward . ${u.address} {\n force_tcp\n read_timeout 30ms\n health_check 30ms no_rec domain probe.example\n}`,
    )
    await expect(ask(www())).rejects.toThrow('i/o timeout')
    await u.until(() => u.count('probe.example. NS', 'tcp') > 0)
    expect(u.asked.find((asked) => asked.question.startsWith('probe'))!.message.rd).toBe(false)
    expect(u.count('', 'udp')).toBe(0)
  })

  it('are kept over a reload, sockets and all', async () => {
    const u = await upstream()
    const { ask, context } = await forward(`forward . ${u.address}`)
    await ask(www())
    const second = await start(`forward . ${u.address} {\n max_concurrent 7\n}`, { shared: context.shared })
    await second.ask(www())
    expect(u.asked[1]!.port).toBe(u.asked[0]!.port)
  })
})

describe('max_concurrent', () => {
  it('refuses what is too much and counts it', async () => {
    const u = await upstream((asked) => [{ after: 50, send: reply(asked) }])
    const { ask, context } = await forward(`forward . ${u.address} {\n max_concurrent 2\n}`)
    const results = await Promise.allSettled(Array.from({ length: 5 }, () => ask(www())))
    const refused = results.filter((result) => result.status === 'rejected').map((result) => result.reason)
    expect(refused).toHaveLength(3)
    expect(refused[0]).toMatchObject({ rcode: RCODE.REFUSED, message: 'concurrent queries exceeded maximum 2' })
    expect(context.metrics.values.get('coredns_forward_max_concurrent_rejects_total{}')).toBe(3)
    await ask(www())
  })
})

describe('next', () => {
  it.each([
    ['next NXDOMAIN', RCODE.NXDOMAIN, ['192.0.2.2']],
    ['next NXDOMAIN', RCODE.NOERROR, []],
    ['next_on_nodata', RCODE.NOERROR, ['192.0.2.2']],
  ])('%s on rcode %i', async (option, rcode, expected) => {
    const u = await upstream((asked) => reply(asked, [], { rcode }))
    const v = await upstream(address('192.0.2.2'))
    const { ask } = await forward(`forward . ${u.address} {\n ${option}\n}\nforward . ${v.address}`)
    expect(addresses(await ask(www()))).toEqual(expected)
  })

  it('is nothing without another forward behind', async () => {
    const u = await upstream((asked) => reply(asked, [], { rcode: RCODE.NXDOMAIN }))
    const { ask } = await forward(`forward . ${u.address} {\n next NXDOMAIN\n}`)
    expect((await ask(www())).rcode).toBe(RCODE.NXDOMAIN)
  })
})

describe('TCP', () => {
  it('replaces a connection that the upstream closed without the client noticing', async () => {
    const u = await upstream((asked) => [{ send: reply(asked, ['www.example.org. 60 IN A 192.0.2.1']), close: true }])
    const { ask } = await forward(`forward . ${u.address} {\n force_tcp\n}`)
    for (let i = 0; i < 4; i++) expect(addresses(await ask(www()))).toEqual(['192.0.2.1'])
    const together = await Promise.all(Array.from({ length: 8 }, () => ask(www())))
    expect(together.map((answer) => answer.count(1))).toEqual(Array(8).fill(1))
  })

  it('takes answers in any order and put together from pieces', async () => {
    const waiting: { asked: Parameters<Answer>[0] }[] = []
    const u = await upstream((asked) => {
      const slow = asked.question.startsWith('slow')
      waiting.push({ asked })
      return [{ after: slow ? 60 : 0, send: reply(asked, [`${asked.question.split(' ')[0]} 60 IN A 192.0.2.${slow ? 1 : 2}`]) }]
    })
    const { ask } = await forward(`forward . ${u.address}`)
    const order: string[] = []
    const one = (name: string): Promise<unknown> =>
      ask(query(name, 'A', { proto: 'tcp' })).then((answer) => order.push(...addresses(answer)))
    await Promise.all([one('slow.example.'), one('fast.example.')])
    expect(order).toEqual(['192.0.2.2', '192.0.2.1'])
    expect(u.connections).toBe(1)
  })

  it('drops a connection that went silent, so that the next query does not wait on it', async () => {
    const u = await upstream()
    const { ask } = await forward(`forward . ${u.address} {\n force_tcp\n read_timeout 60ms\n max_fails 0\n}`)
    await ask(www())
    u.answer = (asked) => (asked.connection === 1 ? [] : reply(asked, ['www.example.org. 60 IN A 192.0.2.1']))
    expect(addresses(await ask(www()))).toEqual(['192.0.2.1'])
    expect(u.connections).toBe(2)
  })

  it('keeps a connection no longer than max_age', async () => {
    const u = await upstream()
    const { ask } = await forward(`forward . ${u.address} {\n force_tcp\n expire 20ms\n max_age 30ms\n}`)
    await ask(www())
    await new Promise((resolve) => setTimeout(resolve, 40))
    await ask(www())
    expect(u.connections).toBe(2)
  })
})

describe('suspended upstreams', () => {
  it('are not asked; without any other the client gets SERVFAIL and the reason', async () => {
    const u = await upstream(address('192.0.2.1'))
    const v = await upstream(address('192.0.2.2'))
    const { ask, plugins } = await forward(`forward . ${u.address} ${v.address} {\n policy sequential\n}`)
    plugins[0]!.suspend(u.address, 'forwarding loop')
    expect(addresses(await ask(www()))).toEqual(['192.0.2.2'])
    plugins[0]!.suspend(v.address, 'forwarding loop')
    const answer = await ask(www({ size: 1232 }))
    expect(answer.rcode).toBe(RCODE.SERVFAIL)
    expect(answer.edns!.options[0]!.data.toString('latin1', 2)).toBe('forwarding loop')
    plugins[0]!.resume(u.address)
    expect(addresses(await ask(www()))).toEqual(['192.0.2.1'])
  })
})

it('publishes the upstream as metadata', async () => {
  const u = await upstream()
  const { ask } = await forward(`forward . ${u.address}`)
  const q = www()
  q.metadata = new Map()
  await ask(q)
  expect(q.metadata.get('forward/upstream')?.()).toBe(u.address)
})

it('knows IPv6 upstreams', async () => {
  const u = await upstream(address('192.0.2.1'), { host: '::1' })
  const { ask } = await forward(`forward . ${u.address}`)
  expect((await ask(www())).count(1)).toBe(1)
  expect(parseRecord('a. 1 IN A 192.0.2.1').ttl).toBe(1)
})
