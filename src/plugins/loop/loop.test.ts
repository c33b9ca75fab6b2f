import { afterEach, describe, expect, it } from 'vitest'
import forward from '../../../plugins/forward/index.js'
import { FakeUpstream, reply } from '../../../test/fakes/upstream.js'
import { freePorts } from '../../../test/support/process.js'
import { answering, ServingHarness } from '../../../test/support/serving.js'
import { ask, opt, udp } from '../../../test/support/wire.js'
import { parseCorefile } from '../../corefile/index.js'
import { Message, Name, RCODE } from '../../dns/index.js'
import type { Handler, Plugin } from '../contract.js'
import { FakeClock, type FakeContext, fakeContext, lastHandler, query } from '../testing.js'
import type { Guarded } from './guarded.js'
import loop from './index.js'

const use = (text: string) => parseCorefile(`. {\n${text}\n}\n`, 'Corefile').blocks[0]!.directives
const pending = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A forward whose upstreams hand probes over to the test. */
class FakeForward implements Guarded {
  readonly name = 'forward'
  readonly from = Name.root
  readonly use = use('forward . /etc/resolv.conf')[0]!
  upstreams: { label: string; file: string | undefined }[] = [{ label: '127.0.0.53:53', file: '/etc/resolv.conf' }]
  readonly asked: Name[] = []
  readonly off = new Map<string, string>()
  answer: (name: Name) => Promise<void> = async () => undefined
  matches = (): boolean => true
  put(_label: string, name: Name): Promise<void> {
    this.asked.push(name)
    return this.answer(name)
  }
  suspend(label: string, reason: string): void {
    this.off.set(label, reason)
  }
  resume(label: string): void {
    this.off.delete(label)
  }
}

interface Guard {
  readonly clock: FakeClock
  readonly context: FakeContext
  readonly forward: FakeForward
  /** A question comes in; true: the guard answered it. */
  come(name: Name): boolean
  /** Time passes, and what was promised comes true. */
  pass(ms: number): Promise<void>
}

function guard(text = 'loop', over = {}): Guard {
  const clock = new FakeClock()
  const fake = new FakeForward()
  const context = fakeContext('loop', { clock, siblings: [fake], ...over })
  const plugin = loop.setup(use(text), context) as Plugin
  void plugin.onStartup?.()
  const { next, calls } = lastHandler((q) => q.reply('next', RCODE.NOERROR))
  return {
    clock,
    context,
    forward: fake,
    come(name) {
      const before = calls.length
      void plugin.serveDNS!(query(name.toString(), 'HINFO'), next as Handler)
      return calls.length === before
    },
    async pass(ms) {
      for (let left = ms; left > 0; left -= 50) {
        clock.advance(Math.min(50, left))
        await pending()
      }
    },
  }
}

describe('a nameserver', () => {
  it('that sends three questions back in a row loops: it is named and switched off', async () => {
    const g = guard()
    g.forward.answer = async (name) => void g.come(name)
    await g.pass(200)
    expect(g.forward.asked).toHaveLength(3)
    expect(new Set(g.forward.asked.map((name) => name.key)).size).toBe(3)
    expect(g.forward.off.get('127.0.0.53:53')).toBe('forwarding loop: nameserver 127.0.0.53:53 of /etc/resolv.conf sends queries back')
    expect(g.context.log.lines).toHaveLength(1)
    expect(g.context.log.lines[0]).toMatch(
      /^\[ERROR\] plugin\/loop: Loop \(10\.240\.0\.1:40212 -> :53\) detected for zone "\.": nameserver 127\.0\.0\.53:53 of \/etc\/resolv\.conf \("forward \." at Corefile:2\) sends our queries back to us and is asked no more; next look in 30s\. Query: "HINFO \d+\.\d+\."$/,
    )
  })

  it('that echoes one question, or echoes late, does not loop', async () => {
    const g = guard()
    let echoes = 1
    g.forward.answer = async (name) => {
      if (echoes-- > 0) g.come(name)
    }
    await g.pass(200)
    expect(g.forward.asked).toHaveLength(2)
    await g.pass(5000)
    for (const name of g.forward.asked) expect(g.come(name)).toBe(false)
    expect(g.forward.off.size).toBe(0)
    expect(g.context.log.lines).toEqual([])
  })

  it('is looked at again, and asked again once it loops no more', async () => {
    const g = guard()
    let loops = true
    g.forward.answer = async (name) => {
      if (loops) g.come(name)
    }
    await g.pass(200)
    await g.pass(30_000)
    expect(g.forward.asked).toHaveLength(6)
    expect(g.forward.off.size).toBe(1)
    loops = false
    await g.pass(33_000)
    expect(g.forward.off.size).toBe(0)
    expect(g.context.log.lines.at(-1)).toContain('[INFO] plugin/loop: nameserver 127.0.0.53:53 of /etc/resolv.conf')
    expect(g.context.log.lines).toHaveLength(2)
  })

  it('that does not answer is asked again for 30 s, and then no more', async () => {
    const g = guard()
    g.forward.answer = () => Promise.reject(new Error('refused'))
    await g.pass(5000)
    const early = g.forward.asked.length
    expect(early).toBeGreaterThan(5)
    await g.pass(40_000)
    const late = g.forward.asked.length
    expect(late).toBeLessThan(40)
    await g.pass(10_000)
    expect(g.forward.asked).toHaveLength(late)
  })
})

it('ends the process with loop exit, in the words of CoreDNS', async () => {
  const g = guard('loop exit')
  g.forward.answer = async (name) => void g.come(name)
  await g.pass(200)
  expect(g.context.log.lines.at(-1)).toMatch(
    /^\[FATAL\] plugin\/loop: Loop \(10\.240\.0\.1:40212 -> :53\) detected for zone "\.", see https:\/\/coredns\.io\/plugins\/loop#troubleshooting\. Query: "HINFO \d+\.\d+\."$/,
  )
  expect(g.forward.off.size).toBe(0)
})

it('passes other questions on, and needs no forward', async () => {
  const g = guard('loop', { siblings: [] })
  await g.pass(1000)
  expect(g.come(Name.parse('1.2.'))).toBe(false)
})

it.each([
  ['loop argument', "Wrong argument count or unexpected line ending after 'argument'"],
  ['loop exit now', "Wrong argument count or unexpected line ending after 'now'"],
  ['loop\nloop', 'plugin/loop: this plugin can only be used once per Server Block'],
])('refuses %j', (text, message) => {
  expect(() => loop.setup(use(text), fakeContext('loop'))).toThrow(message)
})

describe('in a server', () => {
  const open: { stop(): Promise<void> }[] = []
  afterEach(async () => {
    for (const thing of open.splice(0).reverse()) await thing.stop()
  })

  // Not one that the system picks for connections of other tests meanwhile.
  const freePort = async (): Promise<number> => (await freePorts(1))[0]!
  const until = async (condition: () => boolean): Promise<void> => {
    while (!condition()) await new Promise((resolve) => setTimeout(resolve, 10))
  }
  const local = answering('local', (q, next) => (q.name.toString() === 'local.' ? q.reply('local', RCODE.NOERROR) : next(q)))

  it('a forward to itself is cut, the names before it stay', async () => {
    const server = new ServingHarness({ local, loop, forward })
    open.push(server)
    const port = await freePort()
    await server.load(`.:${port} {\n local\n loop\n forward . 127.0.0.1:${port}\n}\n`)
    await until(() => server.log.some((line) => /Loop .*detected/.test(line)))
    expect(server.log.find((line) => line.includes('detected'))).toContain(`nameserver 127.0.0.1:${port} ("forward ." at Corefile:4)`)
    expect(Message.view((await udp(port, ask('local.')))!).rcode).toBe(RCODE.NOERROR)
    const answer = Message.view((await udp(port, ask('www.example.org.', 'A', { edns: opt() })))!)
    expect(answer.rcode).toBe(RCODE.SERVFAIL)
    expect(answer.edns!.options.map(({ data }) => data.toString('latin1', 2))).toEqual([
      `forwarding loop: nameserver 127.0.0.1:${port} sends queries back`,
    ])
  })

  it('of two nameservers only the one that relays our queries back is cut', async () => {
    const port = await freePort()
    const relay = await FakeUpstream.start(async (asked) => (await udp(port, asked.message.toBuffer(), '127.0.0.1', 3000)) ?? [])
    const good = await FakeUpstream.start((asked) => reply(asked))
    const server = new ServingHarness({ loop, forward })
    open.push(relay, good, server)
    await server.load(`.:${port} {\n loop\n forward . ${relay.address} ${good.address}\n}\n`)
    await until(() => server.log.some((line) => /Loop .*detected/.test(line)))
    relay.asked = []
    for (let i = 0; i < 10; i++) expect(Message.view((await udp(port, ask('www.example.org.')))!).rcode).toBe(RCODE.NOERROR)
    expect([relay.count('www'), good.count('www')]).toEqual([0, 10])
  })
})

describe('with several serving threads', () => {
  /** Guards of several threads on one line. */
  function guards(count: number): Guard[] {
    const listeners: { key: string; receive: (value: unknown) => void; index: number }[] = []
    return Array.from({ length: count }, (_, index) =>
      guard('loop', {
        thread: { index, count },
        counterparts: (key: string, receive: (value: unknown) => void) => {
          listeners.push({ key, receive, index })
          const tell = (value: unknown) => {
            for (const other of listeners) if (other.index !== index && other.key === key) other.receive(structuredClone(value))
          }
          return { tell, close: () => undefined }
        },
      }),
    )
  }

  it('the first asks, a question that comes back to another is seen, and all switch the nameserver off', async () => {
    const [first, second] = guards(2) as [Guard, Guard]
    first.forward.answer = async (name) => void expect(second.come(name)).toBe(true)
    await second.pass(400)
    expect(second.forward.asked).toEqual([])
    await first.pass(400)
    expect(first.forward.asked).toHaveLength(3)
    for (const { forward: fake } of [first, second]) expect([...fake.off.keys()]).toEqual(['127.0.0.53:53'])
    expect(second.context.log.lines).toEqual([])
    first.forward.answer = async () => undefined
    await first.pass(40_000)
    for (const { forward: fake } of [first, second]) expect(fake.off.size).toBe(0)
  })

  it('a name that nobody asks for is none of ours in any thread', async () => {
    const [first, second] = guards(2) as [Guard, Guard]
    await first.pass(5_000)
    expect(first.forward.asked).toHaveLength(1)
    expect(second.come(first.forward.asked[0]!)).toBe(false)
    expect(second.come(Name.parse('1.2.'))).toBe(false)
  })
})
