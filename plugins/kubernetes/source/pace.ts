/**
 * When changes are handed on: in the turn in which their octets were read, behind all reads of it; and while many come, once in some
 * milliseconds. A message to another thread costs both ends as much as the change in it.
 */
import type { Clock, Timer } from '../../../src/plugins/contract.js'

/** The shortest time between two messages, in milliseconds. */
const APART = 2

export class Pace {
  readonly #flush: () => void
  readonly #clock: Clock
  #last = Number.NEGATIVE_INFINITY
  #soon: NodeJS.Immediate | undefined
  #later: Timer | undefined

  constructor(flush: () => void, clock: Clock) {
    this.#flush = flush
    this.#clock = clock
  }

  /** There is something to hand on. */
  ask(): void {
    if (this.#soon !== undefined || this.#later !== undefined) return
    const left = this.#last + APART - this.#clock.monotonic()
    if (left > 0) this.#later = this.#clock.timer(left, () => this.now())
    else this.#soon = setImmediate(() => this.now())
  }

  /** Hands on what there is. */
  now(): void {
    this.cancel()
    this.#last = this.#clock.monotonic()
    this.#flush()
  }

  cancel(): void {
    clearImmediate(this.#soon)
    this.#later?.cancel()
    this.#soon = this.#later = undefined
  }
}
