import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { Message, RCODE } from '../../dns/index.js'
import { type Arrival, DROP, type Handler, type Plugin, type Query, ServeError, type ServerReply } from '../contract.js'
import { directives, type FakeContext, fakeBlock, fakeContext, type QueryOptions, query, setUp } from '../testing.js'
import prometheus from './index.js'

describe('set-up', () => {
  it.each([
    ['prometheus', undefined],
    ['prometheus localhost:9253', undefined],
    ['prometheus {\n runtime_metrics\n}', undefined],
    ['prometheus a', 'plugin/prometheus: address a: missing port in address'],
    ['prometheus :1 :2', "Wrong argument count or unexpected line ending after ':2'"],
    ['prometheus\nprometheus', 'plugin/prometheus: this plugin can only be used once per Server Block'],
    ['prometheus {\n foo\n}', 'plugin/prometheus: Corefile:3 - Error during parsing: unknown option: foo'],
    ['prometheus {\n tls web.yml\n}', 'known, but not built yet'],
  ])('%j', (text, error) => {
    if (error === undefined) expect(() => setUp(prometheus, text)).not.toThrow()
    else expect(() => setUp(prometheus, text)).toThrow(error)
  })
})

const answer: Handler = (q) => q.reply('whoami', RCODE.NOERROR)

interface Running {
  readonly plugin: Plugin
  readonly context: FakeContext
  readonly report: (reply: ServerReply) => void
  /** Values by name without the labels that are always the same here. */
  readonly value: (name: string) => number | undefined
}

/** `prometheus` with the given plugins behind it. */
function start(behind: readonly string[] = ['errors', 'whoami']): Running {
  let report: ((reply: ServerReply) => void) | undefined
  const siblings: Plugin[] = behind.map((name) => ({ name, serveDNS: answer }))
  const { plugin, context } = setUp(prometheus, 'prometheus', {
    siblings,
    onServerReply: (fn) => {
      report = fn
    },
  })
  siblings.unshift(plugin)
  plugin.onStartup!()
  return { plugin, context, report: report!, value: (name) => context.metrics.values.get(name) }
}

const ask = async (running: Running, asked: Query, next: Handler = answer): Promise<unknown> => running.plugin.serveDNS!(asked, next)
const label = (more: string): string => `{server="dns://:53",zone=".",view=""${more}}`

describe('counting', () => {
  it('counts a query with its sizes, time and answer', async () => {
    const running = start()
    await ask(running, query('example.org.', 'A'))
    expect(running.value(`coredns_dns_requests_total${label(',proto="udp",family="1",type="A"')}`)).toBe(1)
    expect(running.value(`coredns_dns_request_size_bytes_sum${label(',proto="udp"')}`)).toBe(29)
    expect(running.value(`coredns_dns_response_size_bytes_sum${label(',proto="udp"')}`)).toBe(29)
    expect(running.value(`coredns_dns_request_duration_seconds_count${label('')}`)).toBe(1)
    expect(running.value(`coredns_dns_do_requests_total${label('')}`)).toBeUndefined()
    // Whichever plugin wrote, the one behind `prometheus` is named.
    expect(running.value(`coredns_dns_responses_total${label(',rcode="NOERROR",plugin="errors"')}`)).toBe(1)
  })

  it.each<[string, QueryOptions, string]>([
    ['A', { proto: 'tcp' }, 'proto="tcp",family="1",type="A"'],
    ['AAAA', { proto: 'https' }, 'proto="tcp",family="1",type="AAAA"'],
    ['HTTPS', {}, 'proto="udp",family="1",type="HTTPS"'],
    ['ANY', {}, 'proto="udp",family="1",type="ANY"'],
    ['CAA', {}, 'proto="udp",family="1",type="other"'],
    ['TYPE1000', {}, 'proto="udp",family="1",type="other"'],
  ])('labels %s %j as %s', async (type, options, labels) => {
    const running = start()
    await ask(running, query('example.org.', type, options))
    expect(running.value(`coredns_dns_requests_total${label(`,${labels}`)}`)).toBe(1)
  })

  it('keeps the number of series small, whatever types are asked for', async () => {
    const running = start()
    for (let type = 1; type < 3000; type++) await ask(running, query('example.org.', `TYPE${type}`))
    const series = [...running.context.metrics.values.keys()].filter((key) => key.startsWith('coredns_dns_requests_total'))
    expect(series).toHaveLength(20)
  })

  it('counts DO', async () => {
    const running = start()
    await ask(running, query('example.org.', 'A', { dnssecOk: true }))
    expect(running.value(`coredns_dns_do_requests_total${label('')}`)).toBe(1)
  })

  it('names no plugin and no size where the server will write', async () => {
    const running = start()
    const broken: Handler = () => Promise.reject(new ServeError('no', RCODE.REFUSED))
    await expect(ask(running, query('a.', 'A'), broken)).rejects.toThrow('no')
    await ask(running, query('a.', 'A'), () => DROP)
    await ask(running, query('a.', 'A'), (q) => q.reply('', RCODE.SERVFAIL))
    for (const rcode of ['REFUSED', 'NOERROR', 'SERVFAIL'])
      expect(running.value(`coredns_dns_responses_total${label(`,rcode="${rcode}",plugin=""`)}`)).toBe(1)
    expect(running.value(`coredns_dns_response_size_bytes_sum${label(',proto="udp"')}`)).toBe(0)
  })

  it('leaves out questions of plugins, and crashes, which come again as the server’s own answer', async () => {
    const running = start()
    const asked = query('a.', 'A')
    await ask(running, asked.derive(asked.name))
    const crash: Handler = () => {
      throw new TypeError('bug')
    }
    await expect(ask(running, asked, crash)).rejects.toThrow('bug')
    expect([...running.context.metrics.values.keys()].filter((key) => key.startsWith('coredns_dns_'))).toEqual([])
  })

  it('counts answers of the server itself under the zone `dropped`, once though several blocks hear of them', () => {
    const running = start()
    const { arrival } = query('a.', 'A')
    const reply = { arrival: arrival as Arrival, type: 1, dnssecOk: false, querySize: 30, replySize: 40, rcode: RCODE.REFUSED }
    running.report(reply)
    expect(running.value('coredns_dns_responses_total{server="dns://:53",zone="dropped",view="",rcode="REFUSED",plugin=""}')).toBe(1)
    expect(running.value('coredns_dns_response_size_bytes_sum{server="dns://:53",zone="dropped",view="",proto="udp"}')).toBe(40)
    const second = start()
    ;(second.context as { everywhere: unknown }).everywhere = () => [{ plugin: running.plugin }]
    second.report(reply)
    expect(second.value('coredns_dns_responses_total{server="dns://:53",zone="dropped",view="",rcode="REFUSED",plugin=""}')).toBeUndefined()
  })

  it('keeps servers, zones and views apart', async () => {
    const running = start()
    for (const zone of ['a.', 'b.', 'a.']) {
      const asked = query('x.', 'A', { server: 'dns://127.0.0.1:53' })
      asked.zone = zone
      asked.view = 'in'
      await ask(running, asked)
    }
    expect(running.value('coredns_dns_request_duration_seconds_count{server="dns://127.0.0.1:53",zone="a.",view="in"}')).toBe(2)
    expect(running.value('coredns_dns_request_duration_seconds_count{server="dns://127.0.0.1:53",zone="b.",view="in"}')).toBe(1)
  })
})

describe('coredns_plugin_enabled', () => {
  const enabled = (context: FakeContext): string[] =>
    [...context.metrics.values.keys()].filter((key) => key.startsWith('coredns_plugin_enabled'))

  it('names each plugin of the chain per server and zone', () => {
    const { context } = start(['whoami'])
    expect(enabled(context)).toEqual([
      `coredns_plugin_enabled${label(',name="prometheus"')}`,
      `coredns_plugin_enabled${label(',name="whoami"')}`,
    ])
  })

  it('puts a zone with a port of its own under the server of that port only', () => {
    const block = { ...fakeBlock(['a.', 'b.']), servers: ['dns://:53', 'dns://:1053'] }
    const keys = block.keys.map((key, i) => ({ ...key, port: i === 0 ? '53' : '1053' }))
    const { plugin, context } = setUp(prometheus, 'prometheus', { block: { ...block, keys }, siblings: [{ name: 'x' }] })
    plugin.onStartup!()
    expect(enabled(context)).toEqual([
      'coredns_plugin_enabled{server="dns://:53",zone="a.",view="",name="x"}',
      'coredns_plugin_enabled{server="dns://:1053",zone="b.",view="",name="x"}',
    ])
  })

  it('outlives a reload for what both generations have', () => {
    const old = start(['whoami', 'errors'])
    const over = { metrics: old.context.metrics, shared: old.context.shared, siblings: [{ name: 'prometheus' }, { name: 'whoami' }] }
    const { plugin, context } = setUp(prometheus, 'prometheus', over)
    plugin.onStartup!()
    old.plugin.onShutdown!('reload')
    expect(enabled(context)).toEqual([
      `coredns_plugin_enabled${label(',name="prometheus"')}`,
      `coredns_plugin_enabled${label(',name="whoami"')}`,
    ])
  })
})

describe('the endpoint', () => {
  it.each([undefined, 'deflate, gzip'])('hands out the text; accept-encoding: %s', async (encoding) => {
    const base = fakeContext('prometheus')
    const process = { ...base.process, metricsText: async () => ({ contentType: 'text/plain; version=0.0.4', body: 'x 1\n' }) }
    const context = fakeContext('prometheus', { process })
    prometheus.control!(directives('prometheus'), context)
    expect([...context.metrics.values.keys()]).toEqual([
      expect.stringMatching(/^coredns_build_info\{version="\d+\.\d+\.\d+",revision="",goversion="v\d/),
    ])
    let headers: Record<string, unknown> = {}
    let body = Buffer.alloc(0)
    const response = {
      writeHead: (_: number, h: object) => Object.assign(headers, h),
      end: (octets: Buffer) => (body = Buffer.from(octets)),
    }
    const request = { headers: encoding === undefined ? {} : { 'accept-encoding': encoding } }
    await context.endpoints.get('localhost:9153/metrics')!(request as never, response as never)
    headers = { ...headers }
    expect(headers['content-type']).toBe('text/plain; version=0.0.4')
    expect(headers['content-encoding']).toBe(encoding === undefined ? undefined : 'gzip')
    expect((encoding === undefined ? body : gunzipSync(body)).toString()).toBe('x 1\n')
  })
})

it('counts without making text', async () => {
  const running = start()
  const asked = query('example.org.', 'A')
  await ask(running, asked)
  const reply = Message.view((answer(asked) as Message).toBuffer())
  reply.by = 'x'
  expect(running.plugin.serveDNS!(asked, () => reply)).toBe(reply)
})
