/**
 * One client's query on its way through the upstreams: who is asked first, who next and when, until a reply is good enough or the
 * attempts or the time are used up. While an upstream is slow the next one is asked too; the first reply wins.
 */

import { FLAG, Message } from '../../src/dns/index.js'
import { type Query, ServeError, type Timer } from '../../src/plugins/contract.js'
import type { Ask, Proto } from './ask.js'
import type { Forward } from './forward.js'
import { makeFrame, type Received, randomizeCase, restore, truncated } from './frame.js'
import { CASE_MISMATCH, COOKIE_MISSING } from './udp.js'
import type { Upstream } from './upstream.js'

/** As long as CoreDNS tries. */
const TOTAL_MS = 5000
/** With `max_connect_attempts 0` nothing else keeps refusals from becoming a busy loop. */
const PAUSE_MS = 100
/** Timers are rounded up to this, so that many queries share one. */
const GRAIN_MS = 10

interface Attempt {
  readonly upstream: Upstream
  ask: Ask
  readonly began: number
  /** The next upstream was asked beside it. */
  overtaken: boolean
  /** The upstream was told that it is late. */
  overdue: boolean
}

export class Exchange {
  readonly #forward: Forward
  readonly #query: Query
  readonly #order: readonly Upstream[]
  readonly #deadline: number
  readonly #budget: number
  #frame: Buffer | undefined
  #at = 0
  #launched = 0
  #failovers = 0
  /** All upstreams are down: one of them was drawn, and there is no other try. */
  #lastChance = false
  readonly #active = new Set<Attempt>()
  /** When the pause before another try ends; -1: no pause. */
  #resumeAt = -1
  #timer: Timer | undefined
  #error: Error | undefined
  /** A reply that is not good enough as long as a better one may come. */
  #fallback: { readonly upstream: Upstream; readonly reply: Received } | undefined
  #finished = false
  readonly #resolve: (reply: Message) => void
  readonly #reject: (error: Error) => void

  constructor(
    forward: Forward,
    query: Query,
    order: readonly Upstream[],
    resolve: (reply: Message) => void,
    reject: (error: Error) => void,
  ) {
    this.#forward = forward
    this.#query = query
    this.#order = order
    this.#resolve = resolve
    this.#reject = reject
    this.#deadline = Math.min(query.deadline, forward.clock.monotonic() + TOTAL_MS)
    const attempts = forward.options.maxConnectAttempts ?? 2 * order.length
    this.#budget = attempts === 0 ? Number.POSITIVE_INFINITY : attempts
  }

  start(): void {
    this.#frame = makeFrame(this.#query, this.#forward.options.ecsPass)
    if (this.#launch()) this.#arm()
    else this.#giveUp()
  }

  /** Asks the next upstream. False if there is none to ask now. */
  #launch(): boolean {
    if (this.#launched >= this.#budget || this.#lastChance) return false
    const upstream = this.#next()
    if (upstream === undefined) return false
    this.#launched++
    this.#query.metadata?.set('forward/upstream', () => upstream.label)
    const proto = this.#proto()
    const attempt: Attempt = {
      upstream,
      ask: undefined as unknown as Ask,
      began: this.#forward.clock.monotonic(),
      overtaken: false,
      overdue: false,
    }
    this.#active.add(attempt)
    this.#put(attempt, proto)
    return true
  }

  #put(attempt: Attempt, proto: Proto): void {
    // The first attempt may have the frame itself: it is only changed (id, case) before it is sent.
    const frame = this.#launched === 1 && proto === this.#proto() ? this.#frame! : Buffer.from(this.#frame!)
    const exact = this.#forward.options.randomCase && proto === 'udp' && attempt.upstream.target.transport === 'dns'
    if (exact) randomizeCase(frame, this.#forward.ids.octets())
    let settled = false
    const ask = attempt.upstream.ask(frame, proto, exact, (_, reply, error) => {
      settled = true
      if (this.#finished || !this.#active.has(attempt)) return
      if (reply === undefined) this.#failed(attempt, error!)
      else this.#replied(attempt, proto, reply)
    })
    if (!settled) attempt.ask = ask
  }

  #proto(): Proto {
    const { forceTcp, preferUdp } = this.#forward.options
    if (forceTcp) return 'tcp'
    return preferUdp || this.#query.proto === 'udp' ? 'udp' : 'tcp'
  }

  /** The next upstream that is not down and not being asked already. If all are down: any one, once, or none with failfast. */
  #next(): Upstream | undefined {
    const order = this.#order
    for (let looked = 0; looked < order.length; looked++) {
      const upstream = order[this.#at++ % order.length]!
      if (!upstream.health.down && !this.#isAsked(upstream)) return upstream
    }
    if (this.#active.size > 0 || order.some((upstream) => !upstream.health.down)) return undefined
    this.#forward.metrics.broken.inc()
    if (this.#forward.options.failfast) return undefined
    this.#lastChance = true
    return order[this.#forward.ids.below(order.length)]
  }

  #isAsked(upstream: Upstream): boolean {
    for (const attempt of this.#active) if (attempt.upstream === upstream) return true
    return false
  }

  #replied(attempt: Attempt, proto: Proto, reply: Received): void {
    const { options } = this.#forward
    const upstream = attempt.upstream
    const plain = upstream.target.transport === 'dns'
    const tooLarge = proto === 'udp' && plain && reply.size > Math.max(512, this.#query.size)
    const flags = reply.bytes.readUInt16BE(2)
    if (proto === 'udp' && plain && options.preferUdp && !options.forceTcp && (tooLarge || (flags & FLAG.TC) !== 0)) {
      if (this.#query.proto === 'udp') this.#fallback = { upstream, reply: tooLarge ? { ...reply, bytes: truncated(reply.bytes) } : reply }
      this.#put(attempt, 'tcp')
      return
    }
    this.#active.delete(attempt)
    const good = tooLarge ? { ...reply, bytes: truncated(reply.bytes) } : reply
    if (options.failover.has(reply.rcode) && ++this.#failovers < this.#order.length) {
      this.#fallback = { upstream, reply: good }
      if (this.#launch() || this.#active.size > 0) {
        this.#arm()
        return
      }
    }
    this.#finish(upstream, good)
  }

  #failed(attempt: Attempt, error: Error): void {
    if (error === CASE_MISMATCH || error === COOKIE_MISSING) {
      this.#put(attempt, 'tcp')
      return
    }
    this.#active.delete(attempt)
    this.#error = error
    attempt.upstream.health.check(attempt.began)
    this.#goOn()
  }

  /** After a failure: the next upstream, or what is still under way, or the end. */
  #goOn(): void {
    if (this.#launched >= 2 * this.#order.length && this.#launched < this.#budget)
      this.#resumeAt = this.#forward.clock.monotonic() + PAUSE_MS
    else if (!this.#launch() && this.#active.size === 0) {
      this.#giveUp()
      return
    }
    this.#arm()
  }

  #giveUp(): void {
    if (this.#fallback !== undefined) this.#finish(this.#fallback.upstream, this.#fallback.reply)
    else
      this.#end(() =>
        this.#reject(new ServeError(this.#error?.message ?? 'no healthy proxies', 2, { cause: this.#error, unresolved: true })),
      )
  }

  #finish(upstream: Upstream, reply: Received): void {
    const message = Message.view(restore(reply.bytes, this.#query))
    message.by = 'forward'
    this.#query.metadata?.set('forward/upstream', () => upstream.label)
    this.#end(() => this.#resolve(message))
  }

  #end(tell: () => void): void {
    if (this.#finished) return
    this.#finished = true
    this.#timer?.cancel()
    for (const attempt of this.#active) this.#linger(attempt)
    this.#active.clear()
    tell()
  }

  /** An upstream that was overtaken is given its full time: whether it answers at all says whether it is alive. */
  #linger(attempt: Attempt): void {
    const { ask, upstream, began } = attempt
    const left = began + upstream.settings.readTimeout - this.#forward.clock.monotonic()
    this.#forward.clock.timer(round(Math.max(0, left)), () => {
      if (ask.settled) return
      ask.cancel()
      if (!attempt.overdue) upstream.health.overdue(began)
      upstream.health.check(began)
    })
  }

  /** Sets the timer to what comes first: the deadline, the end of an attempt, the end of somebody's patience. */
  #arm(): void {
    if (this.#finished) return
    this.#timer?.cancel()
    const now = this.#forward.clock.monotonic()
    let next = this.#deadline
    if (this.#resumeAt >= 0) next = Math.min(next, this.#resumeAt)
    for (const attempt of this.#active) {
      next = Math.min(next, this.#endOf(attempt))
      if (!attempt.overtaken) next = Math.min(next, attempt.began + this.#hedge(attempt.upstream))
      if (!attempt.overdue && this.#order.length > 1) next = Math.min(next, attempt.began + attempt.upstream.patience)
    }
    this.#timer = this.#forward.clock.timer(round(Math.max(0, next - now)), () => this.#tick())
  }

  /** When the attempt's read timeout is over. Connecting has a limit of its own. */
  #endOf(attempt: Attempt): number {
    const { readTimeout } = attempt.upstream.settings
    const { sentAt } = attempt.ask
    return (sentAt < 0 ? attempt.began + Math.max(1000, readTimeout) : sentAt) + readTimeout
  }

  /** When the next upstream is asked too. */
  #hedge(upstream: Upstream): number {
    const { hedge } = this.#forward.options
    if (hedge === undefined) return upstream.patience
    if (hedge === 'auto') return upstream.estimate.p95 > 0 ? Math.max(GRAIN_MS, upstream.estimate.p95) : upstream.patience
    return Math.min(hedge, upstream.patience)
  }

  #tick(): void {
    const now = this.#forward.clock.monotonic()
    if (now >= this.#deadline) {
      for (const attempt of [...this.#active]) this.#expire(attempt)
      this.#giveUp()
      return
    }
    if (this.#resumeAt >= 0 && now >= this.#resumeAt) {
      this.#resumeAt = -1
      if (!this.#launch() && this.#active.size === 0) this.#giveUp()
    }
    for (const attempt of [...this.#active]) {
      if (this.#finished) return
      if (now >= this.#endOf(attempt)) {
        this.#expire(attempt)
        this.#goOn()
      } else this.#lookAt(attempt, now)
    }
    this.#arm()
  }

  #lookAt(attempt: Attempt, now: number): void {
    const { upstream, began } = attempt
    // Where nobody else could be asked there is nothing to gain from knowing early; a probe would only be one more question.
    if (!attempt.overdue && this.#order.length > 1 && now >= began + upstream.patience) {
      attempt.overdue = true
      upstream.health.overdue(began)
    }
    if (!attempt.overtaken && now >= began + this.#hedge(upstream)) {
      attempt.overtaken = true
      // Another upstream, not another try of the same: that would only be more of what is slow.
      if (this.#order.length > 1) this.#launch()
    }
  }

  #expire(attempt: Attempt): void {
    const local = attempt.ask.via?.local ?? ''
    this.#active.delete(attempt)
    attempt.ask.cancel()
    if (!attempt.overdue) attempt.upstream.health.overdue(attempt.began)
    attempt.upstream.health.check(attempt.began)
    const proto = attempt.ask.proto === 'udp' && attempt.upstream.target.transport === 'dns' ? 'udp' : 'tcp'
    this.#error = new Error(`read ${proto} ${local}->${attempt.upstream.label}: i/o timeout`)
  }
}

const round = (ms: number): number => Math.ceil(ms / GRAIN_MS) * GRAIN_MS
