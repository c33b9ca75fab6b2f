/** Waiting between attempts: doubles with jitter, falls back to the start on success, can be cut short. */
import type { Clock } from '../../../src/plugins/contract.js'

export interface BackoffLimits {
  /** Milliseconds before the second attempt, and the longest wait. */
  readonly first: number
  readonly longest: number
}

export class Backoff {
  readonly #limits: BackoffLimits
  readonly #random: () => number
  #failures = 0

  constructor(limits: BackoffLimits, random: () => number = Math.random) {
    this.#limits = limits
    this.#random = random
  }

  /** Milliseconds to wait now: between half and the whole of first · 2ⁿ, so that a thousand clients do not come back in step. */
  next(): number {
    const whole = Math.min(this.#limits.longest, this.#limits.first * 2 ** Math.min(this.#failures++, 20))
    return whole * (0.5 + this.#random() / 2)
  }

  reset(): void {
    this.#failures = 0
  }
}

/** Resolves after `ms`, or at once when `signal` aborts. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const done = () => {
      timer.cancel()
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = clock.timer(ms, done)
    signal.addEventListener('abort', done)
  })
}
