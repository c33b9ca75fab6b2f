/** The plugin as it serves one `forward` line: which queries are its own, how many at once, and the upstreams that it hands them to. */

import { type Message, type Name, OPCODE, OPTION, RCODE } from '../../src/dns/index.js'
import {
  type Clock,
  type Directive,
  type Handler,
  type Plugin,
  type Query,
  type Reply,
  ServeError,
  type SetupContext,
  type Tally,
  type Timer,
} from '../../src/plugins/contract.js'
import { Ask, Ids } from './ask.js'
import { Exchange } from './exchange.js'
import { questionFrame } from './frame.js'
import { lookUp } from './lookup.js'
import { type ForwardMetrics, forwardMetrics, upstreamMetrics } from './metrics.js'
import type { Options } from './options.js'
import { type Policy, policy } from './policy.js'
import { type HostTarget, isHost, type Target, withoutDoubles } from './targets.js'
import type { TlsClient } from './tls.js'
import { Upstream, type UpstreamSettings, type UpstreamSurroundings } from './upstream.js'
import { Wheel } from './wheel.js'

/** EDE "Other Error" (RFC 8914 §4.1): there is no code for a forwarding loop. */
const EDE_OTHER = 0

export interface ForwardSetup {
  readonly use: Directive
  readonly from: Name
  readonly options: Options
  readonly targets: readonly (Target | HostTarget)[]
  readonly tls: TlsClient
  /** Another `forward` of the same block follows. */
  readonly hasNext: boolean
}

export class Forward implements Plugin {
  readonly name = 'forward'
  readonly from: Name
  readonly options: Options
  readonly use: Directive
  readonly clock: Clock
  readonly ids = new Ids()
  readonly metrics: ForwardMetrics
  readonly policy: Policy
  /** What its queries wait in. */
  readonly wheel: Wheel
  readonly #ctx: SetupContext
  readonly #setup: ForwardSetup
  readonly #limit: number
  /** Under way in all serving threads. */
  readonly #running: Tally | undefined
  readonly #limitError: ServeError
  #upstreams: readonly Upstream[] = []
  /** Upstreams that are switched off, by label, with the reason. */
  readonly #suspended = new Map<string, string>()
  /** Those that are not. */
  #usable: readonly Upstream[] = []

  constructor(setup: ForwardSetup, ctx: SetupContext) {
    this.#ctx = ctx
    this.#setup = setup
    this.use = setup.use
    this.from = setup.from
    this.options = setup.options
    this.clock = ctx.clock
    this.wheel = new Wheel(ctx.clock)
    this.metrics = forwardMetrics(ctx.metrics)
    this.policy = policy(setup.options.policy, this.ids)
    const { maxConcurrent } = setup.options
    this.#limit = maxConcurrent
    this.#running = maxConcurrent === 0 ? undefined : ctx.tally()
    this.#limitError = new ServeError(`concurrent queries exceeded maximum ${maxConcurrent}`, RCODE.REFUSED)
  }

  async onStartup(): Promise<void> {
    const targets: Target[] = []
    for (const entry of this.#setup.targets) {
      if (!isHost(entry)) targets.push(entry)
      else targets.push(...(await this.#lookUp(entry)))
    }
    this.#upstreams = withoutDoubles(targets).map((target) => this.#upstream(target))
    this.#usable = this.#upstreams
    // Now rather than under the first query.
    if (targets.some((target) => target.transport !== 'dns')) void this.#setup.tls.context
  }

  serveDNS(query: Query, next: Handler): Reply | Promise<Reply> {
    if (!this.matches(query.name)) return next(query)
    // CoreDNS forwards NOTIFY; nobody upstream has asked for it.
    if (query.message.opcode !== OPCODE.QUERY) return query.reply('forward', RCODE.NOTIMP, { aa: false })
    if (this.#running !== undefined && this.#running.total() >= this.#limit) {
      this.metrics.rejected.inc()
      throw this.#limitError
    }
    if (this.#usable.length === 0) return this.#switchedOff(query)
    this.#running?.add(1)
    const now = this.clock.recent()
    const exchange = new Exchange(this, query, next, this.#usable, now)
    exchange.start(now)
    return exchange
  }

  /** An exchange has ended with this reply. Throws what the next `forward` throws, if it is for that one. */
  answered(query: Query, next: Handler, reply: Message): Reply | Promise<Reply> {
    this.#running?.add(-1)
    return this.#isForNext(reply) ? next(query) : reply
  }

  /** An exchange has ended without a reply. */
  failed(): void {
    this.#running?.add(-1)
  }

  /** Below FROM and not excepted; FROM itself never is. */
  matches(name: Name): boolean {
    if (!name.isUnder(this.from)) return false
    return name.equals(this.from) || !this.options.except.some((zone) => name.isUnder(zone))
  }

  // What follows is for `loop`.

  /** The upstreams as the Corefile and its files name them. */
  get upstreams(): readonly { readonly label: string; readonly file: string | undefined }[] {
    return this.#upstreams.map(({ target }) => ({ label: target.label, file: target.file }))
  }

  /** Asks one upstream a question of class IN by itself. Rejects if it does not answer within `read_timeout`. */
  put(label: string, name: Name, type: number): Promise<void> {
    const upstream = this.#upstreams.find((one) => one.label === label)
    if (upstream === undefined) return Promise.reject(new Error(`no upstream ${label}`))
    return new Promise((resolve, reject) => {
      let timer: Timer | undefined
      const ask = new Ask(this.options.forceTcp ? 'tcp' : 'udp', {
        settled: (_, reply, error) => {
          timer?.cancel()
          upstream.learn(ask, reply, error)
          if (reply === undefined) reject(error ?? new Error('no reply'))
          else resolve()
        },
      })
      ask.frame = questionFrame(name, type, true)
      upstream.ask(ask, this.clock.monotonic())
      // An upstream whose socket can't even be made answers before `ask` returns.
      if (ask.settled) return
      timer = this.clock.timer(upstream.settings.readTimeout, () => {
        ask.cancel()
        reject(new Error('i/o timeout'))
      })
    })
  }

  /** Asks an upstream no more. Without any left, queries get SERVFAIL with the reason. */
  suspend(label: string, reason: string): void {
    this.#suspended.set(label, reason)
    this.#usable = this.#upstreams.filter((upstream) => !this.#suspended.has(upstream.label))
  }

  resume(label: string): void {
    this.#suspended.delete(label)
    this.#usable = this.#upstreams.filter((upstream) => !this.#suspended.has(upstream.label))
  }

  #isForNext(reply: Message): boolean {
    if (!this.#setup.hasNext) return false
    const { next, nextOnNodata } = this.options
    if (next.size > 0 && next.has(reply.rcode)) return true
    return nextOnNodata && (reply.flags & 0xf) === RCODE.NOERROR && reply.count(1) === 0
  }

  /** By the policy, `usable[first]` first; those last that have lately not answered. */
  order(usable: readonly Upstream[], first: number): readonly Upstream[] {
    const order = this.policy.order(usable, first)
    if (order.length < 2) return order
    const suspect = new Set(order.filter((upstream) => upstream.health.suspect))
    if (suspect.size === 0) return order
    return [...order.filter((upstream) => !suspect.has(upstream)), ...suspect]
  }

  #switchedOff(query: Query): Message {
    const [reason] = this.#suspended.values()
    const reply = query.reply('forward', RCODE.SERVFAIL, { aa: false })
    const { edns } = query.message
    if (edns === undefined || reason === undefined) return reply
    const data = Buffer.concat([Buffer.from([0, EDE_OTHER]), Buffer.from(reason)])
    const explained = reply.with({
      edns: { size: edns.size, extendedRcode: 0, version: 0, dnssecOk: edns.dnssecOk, z: 0, options: [{ code: OPTION.EDE, data }] },
    })
    explained.by = 'forward'
    return explained
  }

  async #lookUp(host: HostTarget): Promise<Target[]> {
    try {
      return await lookUp(host, this.options.resolver)
    } catch (error) {
      throw this.#ctx.fail((error as Error).message, this.#setup.use)
    }
  }

  #upstream(target: Target): Upstream {
    const { options, tls } = this.#setup
    const secure = target.transport !== 'dns'
    const settings: UpstreamSettings = {
      expire: options.expire,
      maxAge: options.maxAge,
      maxIdle: options.maxIdle,
      readTimeout: options.readTimeout,
      maxFails: options.maxFails,
      probeInterval: options.health.interval,
      probeDomain: options.health.domain,
      probeRecursion: options.health.recursionDesired,
      forceTcp: options.forceTcp,
      sourceAddress: options.sourceAddress,
      cookies: options.cookies,
      dohMethod: options.dohMethod,
      tls: secure ? tls : undefined,
      serverName: secure ? options.tlsServerName || target.serverName : '',
    }
    const key = `forward ${JSON.stringify([target, { ...settings, probeDomain: settings.probeDomain.key }])}`
    const { clock, metrics, connectDatagram: connect, thread } = this.#ctx
    const line: UpstreamSurroundings['line'] = (receive) => this.#ctx.counterparts(key, receive)
    return this.#ctx.shared(
      key,
      () =>
        new Upstream(target, settings, {
          clock,
          connect,
          ids: this.ids,
          metrics: upstreamMetrics(metrics, target.label),
          thread: thread.index,
          line,
        }),
      (upstream) => upstream.close(),
    )
  }
}
