/** Queries that wait for an answer: how many, and which have waited too long. One coarse timer for all of them. */
import type { Clock, Timer } from '../plugins/contract.js'

/** What waits. `deadline` in monotonic milliseconds. */
export interface Waiting {
  readonly deadline: number
  /** The time is up. */
  expire(): void
}

/** Milliseconds between looks; a deadline is kept that exactly. */
const STEP = 250

/** Every entry waits equally long, so the one that came first is due first: a Set in insertion order is the whole queue. */
export class Deadlines {
  readonly #clock: Clock
  readonly #waiting = new Set<Waiting>()
  #timer: Timer | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#waiting.size
  }

  add(entry: Waiting): void {
    this.#waiting.add(entry)
    this.#arm()
  }

  /** false: it has expired already. */
  remove(entry: Waiting): boolean {
    return this.#waiting.delete(entry)
  }

  close(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #arm(): void {
    this.#timer ??= this.#clock.timer(STEP, () => {
      this.#timer = undefined
      const now = this.#clock.monotonic()
      for (const entry of this.#waiting) {
        if (entry.deadline > now) break
        this.#waiting.delete(entry)
        entry.expire()
      }
      if (this.#waiting.size > 0) this.#arm()
    })
  }
}
