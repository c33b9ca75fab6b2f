/** `cache` in front of real servers: what their TTLs, denials, signatures and absences make of it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FLAG, Message } from '../../src/dns/index.js'
import { until } from '../support/process.js'
import { ask, opt, udp } from '../support/wire.js'
import { canAuthority, Lab, type Server } from './lab.js'
import { isInstalled, type Peer, type PeerName } from './peers.js'

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
const CANDIDATES: readonly PeerName[] = ['bind', 'unbound', 'kresd', 'dnsmasq']

async function put(port: number, query: Buffer, ms = 6000): Promise<Message> {
  const reply = await udp(port, query, '127.0.0.1', ms)
  if (reply === undefined) throw new Error('no answer')
  return Message.view(reply)
}
const lowest = (message: Message): number => Math.min(...[...message.answers, ...message.authorities].map((rr) => rr.ttl))

describe.skipIf(!canAuthority()).each(CANDIDATES.filter(isInstalled))('cache in front of %s', (name) => {
  const lab = new Lab()
  let peer: Peer
  let ours: Server<'plain' | 'stale' | 'prefetch'>

  beforeAll(async () => {
    peer = await lab.peer(name)
    const forward = `    forward . ${peer.address} {\n        health_check 100ms\n    }`
    ours = await lab.ours({
      plain: `    cache\n${forward}`,
      stale: `    cache {\n        success 1000 3600 1\n        serve_stale 1h verify\n    }\n${forward}`,
      prefetch: `    cache {\n        success 1000 4 1\n        prefetch 2 1m 50%\n    }\n${forward}`,
    })
  })
  afterAll(() => lab.stop())

  test('TTLs count down, and those of denials too', async () => {
    for (const [question, type] of [
      ['www.interop.test.', 'A'],
      ['nothing-here.interop.test.', 'A'],
      ['www.interop.test.', 'TXT'],
    ] as const) {
      const first = lowest(await put(ours.ports.plain, ask(question, type)))
      await until(
        async () => lowest(await put(ours.ports.plain, ask(question, type))) < first,
        5000,
        () => `${question} ${type} stays at ${first}`,
      )
    }
    const denied = await put(ours.ports.plain, ask('nothing-here.interop.test.'))
    // The zone's negative TTL (RFC 2308 §5).
    expect([denied.rcode, lowest(denied) <= 30]).toEqual([3, true])
  })

  test('questions with DO and CD have answers of their own', async () => {
    const plain = ask('mail.interop.test.', 'MX', { edns: opt(4096) })
    const secure = ask('mail.interop.test.', 'MX', { edns: opt(4096, { dnssecOk: true }) })
    const unchecked = ask('mail.interop.test.', 'MX', { cd: true, edns: opt(4096, { dnssecOk: true }) })
    const signatures = async (port: number, query: Buffer): Promise<number> =>
      (await put(port, query)).answers.filter((rr) => rr.type === 46).length
    // Knot Resolver gives none in stub mode.
    const direct = [
      await signatures(peer.ports.dns, plain),
      await signatures(peer.ports.dns, secure),
      await signatures(peer.ports.dns, unchecked),
    ]
    expect(direct).toEqual(lab.zone.signed && name !== 'kresd' ? [0, 1, 1] : [0, 0, 0])
    for (let round = 0; round < 2; round++) {
      const through = []
      for (const query of [plain, secure, unchecked]) through.push(await signatures(ours.ports.plain, query))
      expect(through).toEqual(direct)
    }
  })

  test('AD is told to those who asked for it, whoever filled the entry', async (context) => {
    const direct = await put(peer.ports.dns, ask('www.interop.test.', 'AAAA', { ad: true }))
    if (!direct.ad) return context.skip(`${name} does not validate`)
    const ad = async (change: Parameters<typeof ask>[2]): Promise<boolean> =>
      (await put(ours.ports.plain, ask('www.interop.test.', 'AAAA', change))).ad
    expect([await ad({}), await ad({ ad: true }), await ad({}), await ad({ edns: opt(1232, { dnssecOk: true }) })]).toEqual([
      false,
      true,
      false,
      true,
    ])
  })

  test('RD=0 does not get what RD=1 brought', async () => {
    const asked = async (rd: boolean, port: number): Promise<number> => (await put(port, ask('c1.interop.test.', 'A', { rd }))).rcode
    await asked(true, ours.ports.plain)
    expect(await asked(false, ours.ports.plain)).toBe(await asked(false, peer.ports.dns))
  })

  test('a popular name is fetched again before it runs out', async () => {
    const query = ask('popular.interop.test.')
    const ttls: number[] = []
    for (let i = 0; i < 26; i++) {
      const reply = await put(ours.ports.prefetch, query)
      expect(reply.count(1)).toBe(1)
      ttls.push(reply.answers[0]!.ttl)
      await wait(200)
    }
    // Without prefetching it would count down to 1 before it begins again.
    expect(Math.min(...ttls)).toBeGreaterThanOrEqual(2)
    expect(ttls.slice(1).some((ttl, i) => ttl > ttls[i]!)).toBe(true)
  })

  test('an expired answer is served while the upstream is gone, with its code, and a fresh one once it is back', async () => {
    const query = ask('short.interop.test.', 'A', { edns: opt(1232) })
    expect((await put(ours.ports.stale, query)).answers[0]!.ttl).toBeLessThanOrEqual(3)
    await peer.kill()
    let stale: Message | undefined
    await until(
      async () => {
        stale = await put(ours.ports.stale, query)
        return stale.answers[0]?.ttl === 0
      },
      10_000,
      () => 'it never became stale',
    )
    expect(stale!.edns!.options.map(({ code, data }) => [code, data.readUInt16BE(0)])).toEqual([[15, 3]])
    const other = await put(ours.ports.stale, ask('week.interop.test.'))
    expect([other.rcode, other.count(1)]).toEqual([2, 0])
    await peer.up()
    await until(
      async () => ((await put(ours.ports.stale, query)).answers[0]?.ttl ?? 0) > 0,
      3000,
      () => 'it stays stale',
    )
  })
})

const authority = (['bind', 'knot', 'nsd'] as const).find(isInstalled)
describe.skipIf(authority === undefined)('one query in flight', () => {
  const lab = new Lab()
  let peer: Peer
  let server: Server<'main'>
  beforeAll(async () => {
    peer = await lab.peer(authority!)
    server = await lab.ours({
      main: `    prometheus 127.0.0.1:${await lab.port('metrics')}\n    cache\n    forward . ${peer.address} {\n        max_fails 0\n    }`,
    })
  })
  afterAll(() => lab.stop())

  test('100 clients that ask one uncached name at once cost one upstream query', async () => {
    const questions = async (): Promise<number> => {
      const text = await (await fetch(`http://127.0.0.1:${await lab.port('metrics')}/metrics`)).text()
      return Number(/^coredns_forward_requests_total\{.*\} (\d+)$/m.exec(text)?.[1] ?? 0)
    }
    // So that all are there before the first can be answered.
    peer.freeze()
    const waiting = Array.from({ length: 100 }, () => put(server.ports.main, ask('www.interop.test.')))
    await wait(150)
    peer.thaw()
    const replies = await Promise.all(waiting)
    expect(replies.every((reply) => reply.count(1) === 2 && (reply.flags & FLAG.TC) === 0)).toBe(true)
    expect(await questions()).toBe(1)
  })
})
