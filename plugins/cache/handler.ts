/** The cache in the chain: looks up, asks on a miss (one query per question at a time), keeps what comes, and refreshes what runs out. */
import { FLAG, Message, Name, OPCODE, OPTION, RCODE, TYPE } from '../../src/dns/index.js'
import {
  type Clock,
  type Handler,
  isMessage,
  isPromise,
  type Logger,
  type Passing,
  type Plugin,
  type Proto,
  Query,
  type Reply,
  ServeError,
  type Standing,
  UNTOUCHED,
} from '../../src/plugins/contract.js'
import { bareEdns, type Captured, capLive, capture, replyOf } from './capture.js'
import type { ServerCounters } from './metrics.js'
import type { CacheOptions } from './options.js'
import { Prefetching } from './prefetch.js'
import { Standings } from './standing.js'
import { type Item, type Side, type Slot, type Store, timeLeft } from './store.js'

/** What asking behind the cache brought. `captured` is undefined for live replies, streams and DROP. */
interface Outcome {
  readonly reply: Reply
  readonly captured: Captured | undefined
  /** What was kept of it. */
  readonly item: Item | undefined
  /** Good enough to take the place of an expired entry (RFC 8767 §4). */
  readonly refreshes: boolean
  /** Others who asked the same may have it too. */
  readonly shared: boolean
}

/** A question on its way behind the cache. */
class Flight {
  reply!: Promise<Reply>
  /** There once `reply` is. */
  outcome: Outcome | undefined = undefined
}

/** `refresh`: an expired entry is there, so only what is better than it is kept. */
type Purpose = 'answer' | 'refresh'

export interface Surroundings {
  readonly clock: Clock
  readonly log: Logger
  /** The store; asked for when the plugin starts. */
  readonly open: () => Store
  readonly counters: (server: string) => ServerCounters
}

export class Cache implements Plugin {
  readonly name = 'cache'
  readonly wraps = true
  readonly #options: CacheOptions
  readonly #env: Surroundings
  readonly #zones: readonly Name[]
  readonly #everything: boolean
  readonly #notSuccess: readonly Name[]
  readonly #notDenial: readonly Name[]
  #store: Store | undefined
  /** Counters of the server that was asked last: nearly always the one that is asked now. */
  #server = ''
  #counters: ServerCounters | undefined
  readonly #servers = new Map<string, ServerCounters>()
  readonly #standings = new Map<string, Standings>()
  readonly #prefetching: Prefetching

  constructor(options: CacheOptions, env: Surroundings) {
    this.#options = options
    this.#env = env
    this.#prefetching = new Prefetching(options)
    this.#zones = options.zones.map((zone) => Name.parse(zone))
    this.#everything = this.#zones.some((zone) => zone.isRoot)
    this.#notSuccess = options.notSuccess.map((zone) => Name.parse(zone))
    this.#notDenial = options.notDenial.map((zone) => Name.parse(zone))
  }

  onStartup(): void {
    this.#store = this.#env.open()
  }

  serveDNS(query: Query, next: Handler): Reply | Promise<Reply> {
    const store = this.#store
    if (store === undefined || !this.#covers(query)) return next(query)
    const counters = this.#countersFor(query.server)
    counters.requests.inc()
    // A client's query brings the time along; a plugin's may be asked long after its client's came.
    const now = query.internal ? this.#env.clock.monotonic() : query.arrival.received
    const slot = store.find(query)
    const side = slot === undefined ? undefined : this.#pick(slot, now)
    if (slot === undefined || side === undefined) {
      counters.misses.inc()
      return this.#miss(query, next, slot)
    }
    counters.hits[side].inc()
    store.used(slot, side)
    const item = this.#itemOf(slot, side)
    const left = timeLeft(item, now)
    if (left <= 0) return this.#stale(query, next, slot, item, counters)
    if (this.#prefetching.isDueWith(slot, item, now, left)) this.#refreshBehind(query, next, slot, item, 'answer')
    return this.#hit(query, item, this.#options.keepTtl ? item.ttl : left)
  }

  stands(query: Query, reply: Message): Standing | Passing | undefined {
    if (!this.#covers(query)) return UNTOUCHED
    const store = this.#store
    if (store === undefined) return undefined
    const standings = this.#standingsFor(query.server)
    if (reply.live) return standings.live
    // Which of two replies is preferred may change with time alone.
    const slot = reply.by === this.name && !this.#options.preferPositive ? store.find(query) : undefined
    const { received } = query.arrival
    const side = slot === undefined ? undefined : this.#pick(slot, received)
    return slot === undefined || side === undefined ? undefined : standings.hit(slot, side, this.#itemOf(slot, side), received)
  }

  #standingsFor(server: string): Standings {
    let standings = this.#standings.get(server)
    if (standings === undefined) {
      standings = new Standings(this.#store!, this.#countersFor(server), this.#prefetching, this.#options.keepTtl)
      this.#standings.set(server, standings)
    }
    return standings
  }

  #covers(query: Query): boolean {
    if (query.message.opcode !== OPCODE.QUERY) return false
    return this.#everything || this.#zones.some((zone) => query.name.isUnder(zone))
  }

  // ---- looking up

  /** The side to answer from, in CoreDNS's order: a denial first, unless it is a failure and a usable success stands beside it. */
  #pick(slot: Slot, now: number): Side | undefined {
    const success = slot.success?.item
    const denial = slot.denial?.item
    if (this.#options.preferPositive && this.#options.staleUpTo > 0 && success !== undefined) {
      const good = success.answering ? success : success.lastGood
      if (good !== undefined && this.#isUsable(good, now)) return 'success'
    }
    const successUsable = success !== undefined && this.#isUsable(success, now)
    if (denial !== undefined && this.#isUsable(denial, now)) {
      return (denial.flags & 0xf) === RCODE.SERVFAIL && successUsable ? 'success' : 'denial'
    }
    return successUsable ? 'success' : undefined
  }

  #itemOf(slot: Slot, side: Side): Item {
    const { item } = slot[side]!
    const useLast = this.#options.preferPositive && this.#options.staleUpTo > 0 && !item.answering && side === 'success'
    return useLast ? (item.lastGood ?? item) : item
  }

  #isUsable(item: Item, now: number): boolean {
    const left = timeLeft(item, now)
    return left > 0 || (this.#options.staleUpTo > 0 && -left < this.#options.staleUpTo)
  }

  #hit(query: Query, item: Item, ttl: number): Message {
    const { message } = query
    const bits = item.flags & (query.dnssecOk || message.ad ? 0xffff : ~FLAG.AD)
    const reply = Message.stored(item.wire, item.layout, message, FLAG.QR | (message.flags & (FLAG.RD | FLAG.CD)) | bits, ttl)
    reply.by = 'cache'
    const { wildcard } = item
    if (wildcard !== undefined) query.metadata?.set('zone/wildcard', () => wildcard)
    return reply
  }

  // ---- asking behind the cache

  #miss(query: Query, next: Handler, slot: Slot | undefined): Reply | Promise<Reply> {
    if (slot?.flight !== undefined && this.#options.coalesce)
      return (this.#ask(query, next, slot, 'answer') as Promise<Outcome>).then(replyIn)
    const result = this.#begin(query, next, 'answer')
    if (isPromise(result)) return this.#fly(query, result, 'answer').reply
    // What every question about the cluster comes to.
    if (isMessage(result) && result.live) return this.#passLive(result, slot)
    return this.#settle(query, result, 'answer').reply
  }

  /** Asks, or waits for the one who is asking already. */
  #ask(query: Query, next: Handler, slot: Slot | undefined, purpose: Purpose): Outcome | Promise<Outcome> {
    const flight = slot?.flight
    if (flight !== undefined && this.#options.coalesce) return this.#join(query, next, flight as Flight, purpose)
    return this.#lead(query, next, purpose)
  }

  /** Each who waits gets a reply of its own; what is not for others sends it on its own way. */
  #join(query: Query, next: Handler, flight: Flight, purpose: Purpose): Promise<Outcome> {
    return flight.reply.then(() => {
      const led = flight.outcome!
      if (!led.shared || !isMessage(led.reply)) return this.#alone(query, next, purpose)
      const reply = led.captured === undefined ? led.reply.as(query.message, led.reply.flags) : replyOf(led.captured, query)
      return { ...led, reply }
    })
  }

  #alone(query: Query, next: Handler, purpose: Purpose): Outcome | Promise<Outcome> {
    query.authentic = true
    const result = next(query)
    return isPromise(result) ? result.then((reply) => this.#settle(query, reply, purpose)) : this.#settle(query, result, purpose)
  }

  #lead(query: Query, next: Handler, purpose: Purpose): Outcome | Promise<Outcome> {
    const result = this.#begin(query, next, purpose)
    if (!isPromise(result)) return this.#settle(query, result, purpose)
    const flight = this.#fly(query, result, purpose)
    return flight.reply.then(() => flight.outcome!)
  }

  /** Asks on, with AD=1 so that one answer serves clients with and without it (RFC 6840 §5.7). */
  #begin(query: Query, next: Handler, purpose: Purpose): Reply | Promise<Reply> {
    query.authentic = true
    try {
      return next(query)
    } catch (error) {
      this.#keepFailure(query, error, purpose)
      throw error
    }
  }

  /** Waits for what comes, keeps it, and lets others join until it is there. */
  #fly(query: Query, result: Promise<Reply>, purpose: Purpose): Flight {
    const slot = query.type === TYPE.AXFR || query.type === TYPE.IXFR ? undefined : this.#store!.claim(query)
    const flight = new Flight()
    const leads = slot !== undefined && slot.flight === undefined
    if (leads) slot.flight = flight
    flight.reply = result.then(
      (reply) => {
        try {
          flight.outcome = this.#settle(query, reply, purpose)
          return flight.outcome.reply
        } finally {
          if (leads) this.#land(slot, flight)
        }
      },
      (error) => {
        try {
          this.#keepFailure(query, error, purpose)
        } finally {
          if (leads) this.#land(slot, flight)
        }
        throw error
      },
    )
    return flight
  }

  #land(slot: Slot, flight: Flight): void {
    if (slot.flight === flight) slot.flight = undefined
    this.#store!.release(slot)
  }

  #settle(query: Query, reply: Reply, purpose: Purpose): Outcome {
    if (!isMessage(reply)) return { reply, captured: undefined, item: undefined, refreshes: true, shared: false }
    if (reply.live) return this.#settleLive(query, reply)
    const question = query.message.question!
    const captured = capture(reply, question, this.#options, Math.floor(this.#env.clock.now() / 1000))
    const refreshes = this.#refreshes(captured)
    // A refresh that brought nothing better leaves the expired entry alone, except that prefer_positive knows to look past a denial.
    const keep = purpose === 'answer' || refreshes || (this.#options.preferPositive && captured.matches && !captured.personal)
    const item = keep ? this.#keep(query, captured) : undefined
    return { reply: replyOf(captured, query), captured, item, refreshes, shared: !captured.personal }
  }

  #settleLive(query: Query, reply: Message): Outcome {
    const refreshes = isResolved(reply.flags & 0xf)
    return { reply: this.#passLive(reply, this.#store!.find(query)), captured: undefined, item: undefined, refreshes, shared: true }
  }

  /** What is kept of a name is outdated when the name is answered live. */
  #passLive(reply: Message, slot: Slot | undefined): Message {
    if (slot !== undefined) {
      this.#store!.drop(slot, 'success')
      this.#store!.drop(slot, 'denial')
    }
    return capLive(reply, this.#options)
  }

  #refreshes(captured: Captured): boolean {
    if ((captured.flags & FLAG.TC) !== 0 || !captured.matches) return false
    if (this.#options.preferPositive) return captured.kind === 'positive' && captured.answering
    if (captured.kind === 'unusable' || captured.kind === 'transfer') return false
    return isResolved(captured.rcode)
  }

  // ---- keeping

  #keep(query: Query, captured: Captured): Item | undefined {
    const counters = this.#countersFor(query.server)
    const { kind, ttl } = captured
    if (kind === 'unbounded' || kind === 'unusable' || kind === 'transfer' || captured.personal || ttl <= 0) return undefined
    if (!captured.matches) {
      counters.drops.inc()
      return undefined
    }
    const side: Side = kind === 'positive' || kind === 'delegation' ? 'success' : 'denial'
    const except = side === 'success' ? this.#notSuccess : this.#notDenial
    if (except.some((zone) => query.name.isUnder(zone))) return undefined
    const store = this.#store!
    const slot = store.claim(query)
    const item = this.#itemFrom(query, captured, this.#options.preferPositive && side === 'success' ? slot.success?.item : undefined)
    store.put(slot, side, item)
    this.#settleOther(slot, side, item, kind === 'failure')
    this.#countEntries(counters)
    return item
  }

  #itemFrom(query: Query, captured: Captured, before: Item | undefined): Item {
    const lastGood = captured.answering || before === undefined ? undefined : before.answering ? before : before.lastGood
    return {
      wire: captured.wire,
      layout: captured.layout,
      // Clients of old C libraries drop answers without AA, so CoreDNS sets it on every hit, and so do we.
      flags: (captured.flags & (FLAG.AD | FLAG.RA | 0xf)) | FLAG.AA,
      ttl: captured.ttl,
      storedAt: this.#env.clock.monotonic(),
      answering: captured.answering,
      wildcard: query.metadata?.get('zone/wildcard')?.(),
      lastGood,
      hits: 0,
      lastHit: Number.NEGATIVE_INFINITY,
      refreshing: false,
      retryAt: 0,
    }
  }

  /** News on one side outdates the other, unless prefer_positive wants the last answer kept; a failure says nothing of either. */
  #settleOther(slot: Slot, side: Side, item: Item, failure: boolean): void {
    if (failure) return
    if (side === 'denial') {
      if (!this.#options.preferPositive) this.#store!.drop(slot, 'success')
    } else if (!this.#options.preferPositive || item.answering) this.#store!.drop(slot, 'denial')
  }

  /** Nobody answered: that is known for a while as well (RFC 9520 §3.2), so that those who ask again don't wait again. */
  #keepFailure(query: Query, error: unknown, purpose: Purpose): void {
    if (!(error instanceof ServeError) || !error.unresolved || purpose === 'refresh' || this.#options.servfail < 1) return
    if (this.#notDenial.some((zone) => query.name.isUnder(zone))) return
    const store = this.#store!
    const captured = capture(Message.reply(query.message, error.rcode), query.message.question!, this.#options, 0)
    if (captured.kind !== 'failure') return
    const slot = store.claim(query)
    const item = this.#itemFrom(query, captured, undefined)
    store.put(slot, 'denial', { ...item, flags: item.flags & ~FLAG.AA })
    this.#countEntries(this.#countersFor(query.server))
  }

  #countEntries(counters: ServerCounters): void {
    const store = this.#store!
    for (const side of ['success', 'denial'] as const) {
      counters.entries[side].set(store.size(side))
      const evicted = store.takeEvicted(side)
      if (evicted > 0) counters.evictions[side].inc(evicted)
    }
  }

  // ---- refreshing

  #stale(query: Query, next: Handler, slot: Slot, item: Item, counters: ServerCounters): Reply | Promise<Reply> {
    const { verify, staleRecheck } = this.#options
    if (!verify) {
      this.#refreshBehind(query, next, slot, item, 'refresh')
      return this.#staleReply(query, item, counters)
    }
    if (staleRecheck === 0) return this.#verify(query, next, slot, item, counters)
    return this.#startRefresh(item, staleRecheck)
      ? this.#verify(query, next, slot, item, counters)
      : this.#staleReply(query, item, counters)
  }

  /** Asks first, and serves the expired entry only if nothing better comes (in time). */
  #verify(query: Query, next: Handler, slot: Slot, item: Item, counters: ServerCounters): Reply | Promise<Reply> {
    const { verifyTimeout } = this.#options
    const use = (outcome: Outcome | undefined): Reply => {
      if (outcome === undefined || !outcome.refreshes) return this.#staleReply(query, item, counters)
      const fresh = verifyTimeout > 0 ? outcome.item : undefined
      return fresh === undefined ? outcome.reply : this.#hit(query, fresh, fresh.ttl)
    }
    const outcome = this.#askQuietly(verifyTimeout > 0 ? detached(query, this.#env.clock, query.proto) : query, next, slot, item, 'refresh')
    if (!isPromise(outcome)) return use(outcome)
    if (verifyTimeout === 0) return outcome.then(use)
    return new Promise((resolve) => {
      let late = false
      const timer = this.#env.clock.timer(verifyTimeout, () => {
        late = true
        resolve(this.#staleReply(query, item, counters))
      })
      void outcome.then((led) => {
        timer.cancel()
        if (!late) resolve(use(led))
      })
    })
  }

  /** Asks in place of an item and notes on the item how it went. undefined: nobody answered. */
  #askQuietly(query: Query, next: Handler, slot: Slot, item: Item, purpose: Purpose): Outcome | undefined | Promise<Outcome | undefined> {
    const done = (outcome: Outcome): Outcome => {
      this.#end(item, purpose === 'answer' || outcome.refreshes)
      return outcome
    }
    const failed = (error: unknown): undefined => {
      this.#end(item, purpose === 'answer')
      this.#env.log.debug(`refreshing ${query.name} failed: ${error instanceof Error ? error.message : String(error)}`)
    }
    try {
      const outcome = this.#ask(query, next, slot, purpose)
      return isPromise(outcome) ? outcome.then(done, failed) : done(outcome)
    } catch (error) {
      return failed(error)
    }
  }

  #staleReply(query: Query, item: Item, counters: ServerCounters): Message {
    counters.stale.inc()
    const { staleTtl, keepTtl } = this.#options
    const reply = this.#hit(query, item, staleTtl > 0 ? staleTtl : keepTtl ? item.ttl : 0)
    if (query.message.edns === undefined) return reply
    // RFC 8914 §4.4 and §4.20: Stale Answer, Stale NXDOMAIN Answer.
    const code = (item.flags & 0xf) === RCODE.NXDOMAIN ? 19 : 3
    return reply.with({ edns: bareEdns(0, [{ code: OPTION.EDE, data: Buffer.from([0, code]) }]) })
  }

  /** Asks without a client, once per item at a time. */
  #refreshBehind(query: Query, next: Handler, slot: Slot, item: Item, purpose: Purpose): void {
    if (!this.#startRefresh(item, purpose === 'refresh' ? this.#options.staleRecheck : 0)) return
    this.#countersFor(query.server).prefetches.inc()
    const { hits, lastHit } = item
    const carryOver = (outcome: Outcome | undefined): void => {
      if (outcome?.item !== undefined) Object.assign(outcome.item, { hits, lastHit })
    }
    const outcome = this.#askQuietly(detached(query, this.#env.clock, 'tcp'), next, slot, item, purpose)
    if (isPromise(outcome)) void outcome.then(carryOver)
    else carryOver(outcome)
  }

  #startRefresh(item: Item, recheck: number): boolean {
    if (item.refreshing || (recheck > 0 && this.#env.clock.monotonic() < item.retryAt)) return false
    item.refreshing = true
    return true
  }

  #end(item: Item, refreshed: boolean): void {
    item.refreshing = false
    item.retryAt = refreshed || this.#options.staleRecheck === 0 ? 0 : this.#env.clock.monotonic() + this.#options.staleRecheck
  }

  #countersFor(server: string): ServerCounters {
    if (this.#counters !== undefined && server === this.#server) return this.#counters
    let counters = this.#servers.get(server)
    if (counters === undefined) {
      counters = this.#env.counters(server)
      this.#servers.set(server, counters)
    }
    this.#server = server
    this.#counters = counters
    return counters
  }
}

const isResolved = (rcode: number): boolean => rcode === RCODE.NOERROR || rcode === RCODE.NXDOMAIN

const replyIn = (outcome: Outcome): Reply => outcome.reply

/** The query without its client: octets of its own and a fresh span of time. By TCP nothing is cut short. */
function detached(query: Query, clock: Clock, proto: Proto): Query {
  const received = clock.monotonic()
  const { message, peer } = query
  const { address, port, family, localAddress, localPort } = peer
  const arrival = {
    ...query.arrival,
    peer: { address, port, family, localAddress, localPort },
    proto,
    received,
    deadline: received + (query.deadline - query.arrival.received),
  }
  const copy = new Query(Message.view(message.toBuffer()), arrival, true, query.depth)
  copy.zone = query.zone
  copy.view = query.view
  copy.authentic = true
  copy.metadata = query.metadata === undefined ? undefined : new Map()
  return copy
}
