/** A cache alone, with an upstream that says what a test tells it. */

import module from '../../plugins/cache/index.js'
import { parseCorefile } from '../../src/corefile/index.js'
import { Message, parseRecord, RCODE } from '../../src/dns/index.js'
import type { Plugin, Query, Reply } from '../../src/plugins/contract.js'
import { FakeClock, type FakeContext, fakeContext, lastHandler, type QueryOptions, query } from '../../src/plugins/testing.js'

export type Upstream = (q: Query) => Reply | Promise<Reply>

export interface Bench {
  readonly clock: FakeClock
  readonly ctx: FakeContext
  readonly calls: Query[]
  ask(name: string, type?: string, options?: QueryOptions): Promise<Message>
  /** What reached the client, read from octets. */
  raw(name: string, type?: string, options?: QueryOptions): Reply | Promise<Reply>
  counted(metric: string): number
}

export function bench(corefile: string, upstream: Upstream, over: Partial<FakeContext> = {}): Bench {
  const clock = new FakeClock()
  const ctx = fakeContext('cache', { clock, ...over })
  const plugin = module.setup(parseCorefile(`. {\n${corefile}\n}`, 'Corefile').blocks[0]!.directives, ctx) as Plugin
  void plugin.onStartup?.()
  const end = lastHandler(upstream)
  const raw = (name: string, type = 'A', options: QueryOptions = {}): Reply | Promise<Reply> =>
    plugin.serveDNS!(query(name, type, { received: clock.monotonic(), ...options }), end.next)
  return {
    clock,
    ctx,
    calls: end.calls,
    raw,
    async ask(name, type, options) {
      return Message.view(((await raw(name, type, options)) as Message).toBuffer())
    },
    counted(metric) {
      let sum = 0
      for (const [key, value] of ctx.metrics.values) if (key.startsWith(`coredns_cache_${metric}`)) sum += value
      return sum
    },
  }
}

export interface Lines {
  rcode?: number
  answer?: string[]
  authority?: string[]
  additional?: string[]
  flags?: { aa?: boolean; ad?: boolean; ra?: boolean; tc?: boolean; cd?: boolean }
  edns?: boolean
  /** Reply made of octets, as forward's are. */
  wire?: boolean
}

export function respond(
  q: Query,
  { rcode = 0, answer = [], authority = [], additional = [], flags = {}, edns = false, wire = true }: Lines,
): Message {
  const parse = (lines: string[]) => lines.map((line) => parseRecord(line))
  const reply = Message.reply(q.message, rcode).with({
    answers: parse(answer),
    authorities: parse(authority),
    additionals: parse(additional),
    ...flags,
    ...(edns ? { edns: { size: 1232, extendedRcode: 0, version: 0, dnssecOk: q.dnssecOk, z: 0, options: [] } } : {}),
  })
  const message = wire ? Message.view(reply.toBuffer()) : reply
  message.by = 'forward'
  return message
}

export const address = (ttl = 60, last = 1): Lines => ({ answer: [`www.example.org. ${ttl} IN A 192.0.2.${last}`] })
export const SOA = 'example.org. 300 IN SOA ns.example.org. h.example.org. 1 2 3 4 300'
export const nxdomain: Lines = { rcode: RCODE.NXDOMAIN, authority: [SOA] }

/** Replies one after the other; the last repeats. */
export const sequence = (...replies: Lines[]): Upstream => {
  let i = 0
  return (q) => respond(q, replies[Math.min(i++, replies.length - 1)]!)
}

/** An upstream that answers when told to. */
export function held(lines: Lines = address()): { upstream: Upstream; release: (lines?: Lines) => void; fail: (error: Error) => void } {
  let open: { q: Query; resolve: (m: Message) => void; reject: (e: Error) => void }[] = []
  return {
    upstream: (q) => new Promise((resolve, reject) => open.push({ q, resolve, reject })),
    release(over = lines) {
      for (const { q, resolve } of open.splice(0)) resolve(respond(q, over))
      open = []
    },
    fail(error) {
      for (const { reject } of open.splice(0)) reject(error)
    },
  }
}
