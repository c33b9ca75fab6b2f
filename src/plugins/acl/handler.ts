/** `acl`: who may ask what, by the address that a query comes from. */
import type { BlockList } from 'node:net'
import { type Message, type Name, OPTION, RCODE } from '../../dns/index.js'
import { type Counter, DROP, type Handler, type MetricFamily, type MetricsScope, type Plugin, type Query, type Reply } from '../contract.js'

export const ACTIONS = ['allow', 'block', 'filter', 'drop'] as const
export type Action = (typeof ACTIONS)[number]

export interface Policy {
  readonly action: Action
  /** undefined: all. */
  readonly types: ReadonlySet<number> | undefined
  /** undefined: all. */
  readonly sources: BlockList | undefined
}

export interface Rule {
  /** The longest first. */
  readonly zones: readonly { readonly zone: string; readonly name: Name }[]
  readonly policies: readonly Policy[]
}

/** Extended DNS errors (RFC 8914). */
const BLOCKED = 15
const FILTERED = 17

export class Acl implements Plugin {
  readonly name = 'acl'
  readonly #rules: readonly Rule[]
  readonly #allowed: MetricFamily<Counter>
  readonly #counts: Readonly<Record<Exclude<Action, 'allow'>, MetricFamily<Counter>>>
  /** The child for the server and view of the last query that was let through. */
  #last: { readonly server: string; readonly view: string; readonly counter: Counter } | undefined

  constructor(rules: readonly Rule[], metrics: MetricsScope) {
    this.#rules = rules
    const count = (name: string, what: string) =>
      metrics.counter(`coredns_acl_${name}_requests_total`, `Queries that were ${what}.`, ['server', 'zone', 'view'])
    this.#allowed = metrics.counter('coredns_acl_allowed_requests_total', 'Queries that were let through.', ['server', 'view'])
    this.#counts = {
      block: count('blocked', 'refused'),
      filter: count('filtered', 'answered with nothing'),
      drop: count('dropped', 'not answered'),
    }
  }

  serveDNS(query: Query, next: Handler): Reply | Promise<Reply> {
    for (const { zones, policies } of this.#rules) {
      const zone = zones.find(({ name }) => query.name.isUnder(name))?.zone
      if (zone === undefined) continue
      const action = policies.find((policy) => fits(policy, query))?.action
      if (action === undefined) continue
      if (action === 'allow') break
      this.#counts[action].with(query.server, zone, query.view).inc()
      if (action === 'drop') return DROP
      return action === 'block' ? denial(query, RCODE.REFUSED, BLOCKED) : denial(query, RCODE.NOERROR, FILTERED)
    }
    this.#count(query)
    return next(query)
  }

  #count({ server, view }: Query): void {
    if (this.#last?.server !== server || this.#last.view !== view) this.#last = { server, view, counter: this.#allowed.with(server, view) }
    this.#last.counter.inc()
  }
}

const fits = ({ types, sources }: Policy, { type, peer }: Query): boolean =>
  (types === undefined || types.has(type)) && (sources === undefined || sources.check(peer.address, peer.family === 4 ? 'ipv4' : 'ipv6'))

/** An empty reply that says why. */
function denial(query: Query, rcode: number, why: number): Message {
  const options = [{ code: OPTION.EDE, data: Buffer.from([0, why]) }]
  const edns = { size: 4096, extendedRcode: 0, version: 0, dnssecOk: true, z: 0, options }
  return query.reply('acl', rcode, { aa: false }).with({ edns })
}
