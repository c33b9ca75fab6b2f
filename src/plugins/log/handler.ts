/** `log`: one line per query of a client whose name and class of answer a rule takes. */
import { Message, type Name } from '../../dns/index.js'
import { type Clock, type Handler, type Logger, type Plugin, type Query, type Reply, watch } from '../contract.js'
import { classOf, kindOf } from './classify.js'
import type { Entry } from './format.js'

export type Classes = 'all' | ReadonlySet<string>

export interface Rule {
  readonly zone: Name
  readonly print: (entry: Entry) => string
  readonly classes: Classes
}

export class LogPlugin implements Plugin {
  readonly name = 'log'
  readonly wraps = true
  readonly #rules: readonly Rule[]
  readonly #log: Logger
  readonly #clock: Clock

  constructor(rules: readonly Rule[], log: Logger, clock: Clock) {
    this.#rules = rules
    this.#log = log
    this.#clock = clock
  }

  serveDNS(query: Query, next: Handler): Reply | Promise<Reply> {
    const rule = query.internal ? undefined : this.#rules.find(({ zone }) => query.name.isUnder(zone))
    if (rule === undefined) return next(query)
    const start = this.#clock.monotonic()
    return watch(query, next, (_, message, size, rcode, error) => this.#line(rule, start, query, message, size, rcode, error))
  }

  #line(rule: Rule, start: number, query: Query, message: Message | undefined, size: number, rcode: number, error: unknown): void {
    // What the server will answer in place of a plugin that failed: header and question.
    const reply = error === undefined ? message : Message.reply(query.message, rcode)
    if (rule.classes !== 'all' || query.metadata !== undefined) {
      const kind = kindOf(reply, this.#clock.now())
      const cls = classOf(kind)
      query.metadata?.set('log/type', () => kind).set('log/class', () => cls)
      if (rule.classes !== 'all' && !rule.classes.has(cls)) return
    }
    const octets = error === undefined ? size : 16 + query.name.wire.length
    const duration = this.#clock.monotonic() - start
    this.#log.plain('INFO', rule.print({ query, reply, rcode, size: octets, duration }))
  }
}
