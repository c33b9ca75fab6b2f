/**
 * One client's query on its way through the upstreams: who is asked first, who next and when, until a reply is good enough or the
 * attempts or the time are used up. While an upstream is slow the next one is asked too; the first reply wins.
 */

import { FLAG, type Message } from '../../src/dns/index.js'
import { type Handler, Later, type Query, type Reply, ServeError } from '../../src/plugins/contract.js'
import { Ask, type Asker, type Proto } from './ask.js'
import type { Forward } from './forward.js'
import { makeFrame, randomizeCase } from './frame.js'
import { messageFor, type Received, truncated } from './reply.js'
import { CASE_MISMATCH, COOKIE_MISSING } from './udp.js'
import type { Upstream } from './upstream.js'
import type { Waiter } from './wheel.js'

/** As long as CoreDNS tries. */
const TOTAL_MS = 5000
/** With `max_connect_attempts 0` nothing else keeps refusals from becoming a busy loop. */
const PAUSE_MS = 100
/** `hedge auto` waits at least so long. */
const SOONEST_HEDGE_MS = 10

/** One upstream being asked, if need be twice (by UDP, then by TCP). */
class Attempt extends Ask {
  readonly upstream: Upstream
  /** Monotonic ms when it was asked first. */
  readonly since: number
  /** The next upstream was asked beside it. */
  overtaken = false
  /** The upstream was told that it is late. */
  overdue = false

  constructor(proto: Proto, asker: Asker, upstream: Upstream, since: number) {
    super(proto, asker)
    this.upstream = upstream
    this.since = since
  }
}

export class Exchange extends Later implements Asker, Waiter {
  due = 0
  grain = -1
  earlier: Waiter | undefined = undefined
  later: Waiter | undefined = undefined
  readonly #forward: Forward
  readonly #query: Query
  readonly #next: Handler
  /** All that may be asked, and the place there of the one that is asked first. */
  readonly #usable: readonly Upstream[]
  readonly #first: number
  /** In the order of asking; made when the second one is needed. */
  #order: readonly Upstream[] | undefined = undefined
  /** Place in that order. */
  #at = 0
  readonly #deadline: number
  #launched = 0
  #failovers = 0
  /** All upstreams are down: one of them was drawn, and there is no other try. */
  #lastChance = false
  /** Nearly always the only one. */
  #attempt: Attempt | undefined = undefined
  #others: Attempt[] | undefined = undefined
  /** When the pause before another try ends; -1: no pause. */
  #resumeAt = -1
  #error: Error | undefined = undefined
  /** A reply that is not good enough as long as a better one may come. */
  #fallback: { readonly upstream: Upstream; readonly reply: Received } | undefined = undefined
  #finished = false

  constructor(forward: Forward, query: Query, next: Handler, usable: readonly Upstream[], now: number) {
    super()
    this.#forward = forward
    this.#query = query
    this.#next = next
    this.#usable = usable
    this.#first = forward.policy.first(usable.length)
    this.#deadline = Math.min(query.deadline, now + TOTAL_MS)
  }

  start(now: number): void {
    const upstream = this.#usable[this.#first]!
    if (upstream.health.down || upstream.health.suspect) {
      if (!this.#launch(now)) {
        this.#giveUp()
        return
      }
    } else {
      this.#at = 1
      this.#begin(upstream, now)
    }
    this.#arm(now)
  }

  /** Asks the next upstream. False if there is none to ask now. */
  #launch(now: number): boolean {
    if (this.#launched >= this.#budget || this.#lastChance) return false
    const upstream = this.#successor()
    if (upstream === undefined) return false
    this.#begin(upstream, now)
    return true
  }

  #begin(upstream: Upstream, now: number): void {
    this.#launched++
    const attempt = new Attempt(this.#proto(), this, upstream, now)
    if (this.#attempt === undefined) this.#attempt = attempt
    else {
      this.#others ??= []
      this.#others.push(attempt)
    }
    this.#query.metadata?.set('forward/upstream', () => upstream.label)
    this.#put(attempt, now)
  }

  #put(attempt: Attempt, now: number): void {
    const { randomCase, ecsPass } = this.#forward.options
    const { upstream } = attempt
    attempt.query = this.#query
    attempt.ecsPass = ecsPass
    if (randomCase && attempt.proto === 'udp' && upstream.target.transport === 'dns') {
      attempt.exact = true
      attempt.frame = makeFrame(this.#query, ecsPass)
      randomizeCase(attempt.frame, this.#forward.ids.octets())
    }
    upstream.ask(attempt, now)
  }

  /** Goes on with another ask in its place. */
  #putByTcp(attempt: Attempt): void {
    const again = new Attempt('tcp', this, attempt.upstream, attempt.since)
    again.overtaken = attempt.overtaken
    again.overdue = attempt.overdue
    if (this.#attempt === attempt) this.#attempt = again
    else this.#others = this.#others?.map((other) => (other === attempt ? again : other))
    this.#put(again, this.#forward.clock.monotonic())
  }

  #proto(): Proto {
    const { forceTcp, preferUdp } = this.#forward.options
    if (forceTcp) return 'tcp'
    return preferUdp || this.#query.proto === 'udp' ? 'udp' : 'tcp'
  }

  get #budget(): number {
    const attempts = this.#forward.options.maxConnectAttempts ?? 2 * this.#usable.length
    return attempts === 0 ? Number.POSITIVE_INFINITY : attempts
  }

  /** The next upstream that is not down and not being asked already. If all are down: any one, once, or none with failfast. */
  #successor(): Upstream | undefined {
    this.#order ??= this.#forward.order(this.#usable, this.#first)
    const order = this.#order
    for (let looked = 0; looked < order.length; looked++) {
      const upstream = order[this.#at++ % order.length]!
      if (!upstream.health.down && !this.#isAsked(upstream)) return upstream
    }
    if (this.#isWaiting || order.some((upstream) => !upstream.health.down)) return undefined
    this.#forward.metrics.broken.inc()
    if (this.#forward.options.failfast) return undefined
    this.#lastChance = true
    return order[this.#forward.ids.below(order.length)]
  }

  // ---- who is being asked

  get #isWaiting(): boolean {
    return this.#attempt !== undefined || (this.#others !== undefined && this.#others.length > 0)
  }

  #attempts(): Attempt[] {
    const others = this.#others ?? []
    return this.#attempt === undefined ? [...others] : [this.#attempt, ...others]
  }

  #isAsked(upstream: Upstream): boolean {
    return this.#attempts().some((attempt) => attempt.upstream === upstream)
  }

  #attemptOf(ask: Ask): Attempt | undefined {
    return this.#attempt === ask ? this.#attempt : this.#others?.find((attempt) => attempt === ask)
  }

  #remove(attempt: Attempt): void {
    if (this.#attempt === attempt) this.#attempt = undefined
    else this.#others = this.#others?.filter((other) => other !== attempt)
  }

  // ---- what comes of it

  settled(ask: Ask, reply: Received | undefined, error: Error | undefined): void {
    const attempt = this.#attemptOf(ask)
    if (attempt === undefined) return
    attempt.upstream.learn(ask, reply, error)
    if (this.#finished) return
    if (reply === undefined) this.#failed(attempt, error!)
    else this.#replied(attempt, reply)
  }

  #replied(attempt: Attempt, reply: Received): void {
    const { options } = this.#forward
    const { upstream } = attempt
    const byUdp = attempt.proto === 'udp' && upstream.target.transport === 'dns'
    const tooLarge = byUdp && reply.size > 512 && reply.size > this.#query.size
    const good = tooLarge ? truncated(reply) : reply
    if (byUdp && options.preferUdp && !options.forceTcp && (tooLarge || (reply.flags & FLAG.TC) !== 0)) {
      if (this.#query.proto === 'udp') this.#fallback = { upstream, reply: good.kept() }
      this.#putByTcp(attempt)
      return
    }
    this.#remove(attempt)
    if (options.failover.size > 0 && options.failover.has(reply.rcode) && ++this.#failovers < this.#usable.length) {
      this.#fallback = { upstream, reply: good.kept() }
      const now = this.#forward.clock.monotonic()
      if (this.#launch(now) || this.#isWaiting) {
        this.#arm(now)
        return
      }
    }
    this.#finish(upstream, good)
  }

  #failed(attempt: Attempt, error: Error): void {
    if (error === CASE_MISMATCH || error === COOKIE_MISSING) {
      this.#putByTcp(attempt)
      return
    }
    this.#remove(attempt)
    this.#error = error
    attempt.upstream.health.check(attempt.since)
    this.#goOn(this.#forward.clock.monotonic())
  }

  /** After a failure: the next upstream, or what is still under way, or the end. */
  #goOn(now: number): void {
    if (this.#launched >= 2 * this.#usable.length && this.#launched < this.#budget) this.#resumeAt = now + PAUSE_MS
    else if (!this.#launch(now) && !this.#isWaiting) {
      this.#giveUp()
      return
    }
    this.#arm(now)
  }

  #giveUp(): void {
    if (this.#finished) return
    if (this.#fallback !== undefined) {
      this.#finish(this.#fallback.upstream, this.#fallback.reply)
      return
    }
    this.#end()
    this.#forward.failed()
    this.ready(undefined, new ServeError(this.#error?.message ?? 'no healthy proxies', 2, { cause: this.#error, unresolved: true }))
  }

  #finish(upstream: Upstream, reply: Received): void {
    const message: Message = messageFor(this.#query, this.keeps ? reply.kept() : reply)
    message.by = 'forward'
    this.#query.metadata?.set('forward/upstream', () => upstream.label)
    this.#end()
    let answer: Reply | Promise<Reply>
    try {
      answer = this.#forward.answered(this.#query, this.#next, message)
    } catch (error) {
      this.ready(undefined, error)
      return
    }
    this.resolve(answer)
  }

  #end(): void {
    this.#finished = true
    this.#forward.wheel.remove(this)
    if (this.#isWaiting) this.#linger(this.#forward.clock.monotonic())
  }

  #linger(now: number): void {
    for (const attempt of this.#attempts()) {
      const due = attempt.since + attempt.upstream.settings.readTimeout
      this.#forward.wheel.add(new Lingering(attempt), due, now)
    }
  }

  // ---- time

  /** Waits for what comes first: the deadline, the end of an attempt, the end of somebody's patience. */
  #arm(now: number): void {
    if (this.#finished) return
    let due = this.#deadline
    if (this.#resumeAt >= 0) due = Math.min(due, this.#resumeAt)
    if (this.#attempt !== undefined) due = Math.min(due, this.#dueOf(this.#attempt))
    if (this.#others !== undefined) for (const attempt of this.#others) due = Math.min(due, this.#dueOf(attempt))
    this.#forward.wheel.add(this, due, now)
  }

  #dueOf(attempt: Attempt): number {
    let due = endOf(attempt)
    // Where nobody else could be asked there is nothing to gain from knowing early; a probe would only be one more question.
    if (this.#usable.length < 2) return due
    if (!attempt.overtaken) due = Math.min(due, attempt.since + this.#hedge(attempt.upstream))
    return attempt.overdue ? due : Math.min(due, attempt.since + attempt.upstream.patience)
  }

  /** When the next upstream is asked too. */
  #hedge(upstream: Upstream): number {
    const { hedge } = this.#forward.options
    if (hedge === undefined) return upstream.patience
    if (hedge === 'auto') return upstream.estimate.p95 > 0 ? Math.max(SOONEST_HEDGE_MS, upstream.estimate.p95) : upstream.patience
    return Math.min(hedge, upstream.patience)
  }

  fire(now: number): void {
    if (this.#finished) return
    if (now >= this.#deadline) {
      for (const attempt of this.#attempts()) this.#expire(attempt)
      this.#giveUp()
      return
    }
    if (this.#resumeAt >= 0 && now >= this.#resumeAt) {
      this.#resumeAt = -1
      if (!this.#launch(now) && !this.#isWaiting) this.#giveUp()
    }
    for (const attempt of this.#attempts()) {
      if (this.#finished) return
      if (now >= endOf(attempt)) {
        this.#expire(attempt)
        this.#goOn(now)
      } else if (this.#usable.length > 1) this.#lookAt(attempt, now)
    }
    this.#arm(now)
  }

  #lookAt(attempt: Attempt, now: number): void {
    const { upstream, since } = attempt
    if (!attempt.overdue && now >= since + upstream.patience) {
      attempt.overdue = true
      upstream.health.overdue(since)
    }
    if (!attempt.overtaken && now >= since + this.#hedge(upstream)) {
      attempt.overtaken = true
      // Another upstream, not another try of the same: that would only be more of what is slow.
      this.#launch(now)
    }
  }

  #expire(attempt: Attempt): void {
    const { upstream } = attempt
    const local = attempt.via?.local ?? ''
    this.#remove(attempt)
    giveUpOn(attempt)
    const proto = attempt.proto === 'udp' && upstream.target.transport === 'dns' ? 'udp' : 'tcp'
    this.#error = new Error(`read ${proto} ${local}->${upstream.label}: i/o timeout`)
  }
}

/** When the attempt's read timeout is over. Connecting has a limit of its own. */
function endOf({ sentAt, since, upstream }: Attempt): number {
  const { readTimeout } = upstream.settings
  return (sentAt < 0 ? since + Math.max(1000, readTimeout) : sentAt) + readTimeout
}

function giveUpOn(attempt: Attempt): void {
  const { upstream, since } = attempt
  attempt.cancel()
  if (!attempt.overdue) upstream.health.overdue(since)
  upstream.health.check(since)
}

/** An upstream that was overtaken is given its full time: whether it answers at all says whether it is alive. */
class Lingering implements Waiter {
  due = 0
  grain = -1
  earlier: Waiter | undefined = undefined
  later: Waiter | undefined = undefined
  readonly #attempt: Attempt

  constructor(attempt: Attempt) {
    this.#attempt = attempt
  }

  fire(): void {
    if (!this.#attempt.settled) giveUpOn(this.#attempt)
  }
}
