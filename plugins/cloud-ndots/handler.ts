/** Serves `cloud_ndots`: domains mode. */
import { CLASS, type Message, type Name, OPCODE, RCODE, type RR, TYPE } from '../../src/dns/index.js'
import {
  type Counter,
  type Handler,
  isMessage,
  isPromise,
  type Passing,
  type Plugin,
  type Query,
  type Reply,
  ServeError,
  type SetupContext,
  UNTOUCHED,
} from '../../src/plugins/contract.js'
import { denied, failed, madeUpSoa, rewritten } from './answer.js'
import { Failures } from './failures.js'
import { type Match, matcher } from './match.js'
import type { Options } from './options.js'

const TYPES: ReadonlySet<number> = new Set([TYPE.A, TYPE.AAAA, TYPE.HTTPS, TYPE.SVCB, TYPE.MX, TYPE.TXT, TYPE.SRV, TYPE.CAA])

/** What we use of the block's `kubernetes`. */
interface ClusterView {
  synced(): boolean
  soa(zone: Name): RR
}
const isClusterView = (plugin: unknown): plugin is ClusterView =>
  typeof (plugin as ClusterView | undefined)?.synced === 'function' && typeof (plugin as ClusterView).soa === 'function'

const NO_MATCH = Symbol('no match')

type Outcome = 'rewritten' | 'passed' | 'nxdomain' | 'error'

export class CloudNdots implements Plugin {
  readonly name = 'cloud_ndots'
  readonly #options: Options
  readonly #ctx: SetupContext
  readonly #match: (name: Name) => Match | undefined
  readonly #failures: Failures
  readonly #counters = new Map<string, Counter>()
  readonly #passings = new Map<string, Passing>()
  #cluster: ClusterView | undefined
  /** Not the plugin itself, which would live as long as a question that remembers it. */
  readonly #owner = {}

  constructor(options: Options, ctx: SetupContext) {
    this.#options = options
    this.#ctx = ctx
    this.#match = matcher(options)
    this.#failures = new Failures(ctx.clock)
  }

  onStartup(): void {
    const sibling = this.#ctx.find('kubernetes')
    this.#cluster = isClusterView(sibling) ? sibling : undefined
  }

  serveDNS(q: Query, next: Handler): Reply | Promise<Reply> {
    if (!TYPES.has(q.type) || q.class !== CLASS.IN || q.message.opcode !== OPCODE.QUERY) return next(q)
    const match = this.#matchOf(q)
    if (match === undefined) return next(q)
    if (!this.#options.clusterZones.has(match.zone.key)) return this.#external(q, match, next)
    // A cluster name always wins; without the index nobody knows, so the client walks its list.
    if (this.#cluster?.synced() !== true) return this.#count(q.server, 'passed', next(q))
    const own = next(q)
    return isPromise(own) ? own.then((reply) => this.#unlessDenied(q, match, next, reply)) : this.#unlessDenied(q, match, next, own)
  }

  /** A cluster name is let pass whatever becomes of the index; what was answered for another name is not ours alone. */
  stands(q: Query, reply: Message): Passing | undefined {
    if (!TYPES.has(q.type) || q.class !== CLASS.IN) return UNTOUCHED
    const match = this.#matchOf(q)
    if (match === undefined) return UNTOUCHED
    if (!this.#options.clusterZones.has(match.zone.key) || reply.rcode === RCODE.NXDOMAIN || this.#cluster?.synced() !== true)
      return undefined
    return this.#passing(q.server)
  }

  #passing(server: string): Passing {
    let passing = this.#passings.get(server)
    if (passing === undefined) {
      passing = { passed: () => void this.#count(server, 'passed', undefined) }
      this.#passings.set(server, passing)
    }
    return passing
  }

  /** Depends on nothing but the name and the options, so a question that comes often keeps it. */
  #matchOf(q: Query): Match | undefined {
    const kept = q.message.question?.kept
    if (kept === undefined) return this.#match(q.name)
    const known = kept.get(this.#owner) as Match | typeof NO_MATCH | undefined
    if (known !== undefined) return known === NO_MATCH ? undefined : known
    const match = this.#match(q.name)
    kept.set(this.#owner, match ?? NO_MATCH)
    return match
  }

  #unlessDenied(q: Query, match: Match, next: Handler, reply: Reply): Reply | Promise<Reply> {
    if (!isMessage(reply) || reply.rcode !== RCODE.NXDOMAIN) return this.#count(q.server, 'passed', reply)
    return this.#external(q, match, next)
  }

  #external(q: Query, match: Match, next: Handler): Reply | Promise<Reply> {
    const key = `${q.type} ${match.external.key}`
    const known = this.#failures.get(key)
    if (known !== undefined) return this.#count(q.server, 'error', failed(q, known))
    q.metadata?.set('cloud_ndots/original', () => q.name.toString())
    q.metadata?.set('cloud_ndots/target', () => match.external.toString())
    q.note?.(`cloud_ndots: ${match.external} stands before a search suffix of ${match.zone}`)
    const derived = q.derive(match.external)
    try {
      const reply = this.#ctx.resolve(derived) ?? next(derived)
      if (!isPromise(reply)) return this.#finish(q, match, key, reply)
      return reply.then(
        (message) => this.#finish(q, match, key, message),
        (error: unknown) => this.#failure(q, key, error),
      )
    } catch (error) {
      return this.#failure(q, key, error)
    }
  }

  #finish(q: Query, match: Match, key: string, reply: Reply): Reply {
    if (!isMessage(reply)) return reply
    switch (reply.rcode) {
      case RCODE.NOERROR:
        return this.#count(q.server, 'rewritten', rewritten(q, match.external, reply, this.#options.ttlCap))
      case RCODE.NXDOMAIN:
        return this.#count(q.server, 'nxdomain', this.#deny(q, match.zone, reply))
      default:
        this.#failures.add(key, reply)
        return this.#count(q.server, 'error', failed(q, reply))
    }
  }

  #deny(q: Query, zone: Name, reply: Message): Message {
    const { ttlCap } = this.#options
    const own = this.#options.clusterZones.has(zone.key) ? this.#cluster?.soa(zone) : undefined
    return denied(q, reply, own ?? madeUpSoa(zone, ttlCap, Math.floor(this.#ctx.clock.now() / 1000)), ttlCap)
  }

  /** Rethrown, so that `errors` logs it once, under the name that the client asked. */
  #failure(q: Query, key: string, error: unknown): never {
    this.#failures.add(key, { rcode: error instanceof ServeError ? error.rcode : RCODE.SERVFAIL, ra: false })
    this.#count(q.server, 'error', undefined)
    throw error
  }

  #count<T>(server: string, outcome: Outcome, value: T): T {
    const key = `${outcome} ${server}`
    let counter = this.#counters.get(key)
    if (counter === undefined) {
      counter = this.#ctx.metrics
        .counter(
          'coredns_cloud_ndots_requests_total',
          'Queries under a search suffix that carry an external name, by what became of them.',
          ['server', 'mode', 'outcome'],
        )
        .with(server, 'domains', outcome)
      this.#counters.set(key, counter)
    }
    counter.inc()
    return value
  }
}
