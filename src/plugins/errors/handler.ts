/** `errors`: prints what went wrong behind it, alike errors together once per period. */
import {
  type Arrival,
  type Clock,
  formatDuration,
  type Handler,
  isCrash,
  isPromise,
  Later,
  type Logger,
  type Passing,
  type Pattern,
  type Plugin,
  type Query,
  type Reply,
  rcodeOf,
  type Step,
  type Timer,
  UNTOUCHED,
} from '../contract.js'
import { questionType } from '../words.js'

// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what it is about.
const CONTROL = /[\x00-\x1f\x7f]/g

export const LEVELS = ['warning', 'error', 'info', 'debug'] as const
export type Level = (typeof LEVELS)[number]
export const isLevel = (text: string): text is Level => (LEVELS as readonly string[]).includes(text)

export interface Consolidation {
  /** Milliseconds from the first error to the summary. */
  readonly period: number
  /** The pattern as it was written. */
  readonly text: string
  readonly pattern: Pattern
  readonly level: Level
  /** The first error of a period is printed at once. */
  readonly showFirst: boolean
}

interface Running extends Consolidation {
  count: number
  timer: Timer | undefined
}

export class ErrorsPlugin implements Plugin {
  readonly name = 'errors'
  readonly #rules: readonly Running[]
  readonly #log: Logger
  readonly #clock: Clock
  /** An error that goes up through `ctx.resolve` into the client's own chain is printed once. */
  readonly #printed = new WeakMap<object, Arrival>()

  constructor(rules: readonly Consolidation[], log: Logger, clock: Clock) {
    this.#rules = rules.map((rule) => ({ ...rule, count: 0, timer: undefined }))
    this.#log = log
    this.#clock = clock
  }

  serveDNS(query: Query, next: Handler): Reply | Promise<Reply> {
    try {
      const result = next(query)
      if (!isPromise(result)) return result
      if (result instanceof Later) return result.through(this.#passed, query, undefined)
      return result.catch((error: unknown) => {
        this.#report(query, error)
        throw error
      })
    } catch (error) {
      this.#report(query, error)
      throw error
    }
  }

  stands(): Passing {
    return UNTOUCHED
  }

  onShutdown(): void {
    for (const rule of this.#rules) this.#summarise(rule)
  }

  readonly #passed: Step<undefined> = (query, _, reply, error) => {
    if (reply !== undefined) return reply
    this.#report(query, error)
    throw error
  }

  #report(query: Query, error: unknown): void {
    // The server prints those, with or without `errors`.
    if (isCrash(error)) return
    if (typeof error === 'object' && error !== null) {
      if (this.#printed.get(error) === query.arrival) return
      this.#printed.set(error, query.arrival)
    }
    // One error, one line, whatever an upstream put into it.
    const message = (error instanceof Error ? error.message : String(error)).replace(CONTROL, '?')
    const { name, type } = query.asked
    const rule = this.#rules.find((r) => r.pattern.test(message))
    if (rule !== undefined && this.#consolidated(rule)) return
    this.#log[rule?.level ?? 'error'](`${rcodeOf(error)} ${name.toLowerCase()} ${questionType(type)}: ${message}`)
  }

  /** False if this one is to be printed by itself all the same. */
  #consolidated(rule: Running): boolean {
    if (++rule.count > 1) return true
    rule.timer = this.#clock.timer(rule.period, () => this.#summarise(rule))
    return !rule.showFirst
  }

  #summarise(rule: Running): void {
    rule.timer?.cancel()
    rule.timer = undefined
    const { count } = rule
    rule.count = 0
    // One error that was shown needs no summary.
    if (count > 1 || (count === 1 && !rule.showFirst))
      this.#log[rule.level](`${count} errors like '${rule.text}' occurred in last ${formatDuration(rule.period)}`)
  }
}
