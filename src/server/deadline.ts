/** Queries that wait for an answer: how many, and which have waited too long. One coarse timer for all of them. */
import type { Clock, Timer } from '../plugins/contract.js'

/** What waits, in one queue at a time. */
export abstract class Waiting {
  /** Monotonic milliseconds. */
  abstract readonly deadline: number
  waits = false
  earlier: Waiting | undefined = undefined
  later: Waiting | undefined = undefined
  /** The time is up; it no longer waits. */
  abstract expire(): void
}

/** Milliseconds between looks; a deadline is kept that exactly. */
const STEP = 250

/** Every entry waits equally long, so the one that came first is due first, and a list in the order of coming is the whole queue. */
export class Deadlines {
  readonly #clock: Clock
  #first: Waiting | undefined
  #last: Waiting | undefined
  #size = 0
  #timer: Timer | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#size
  }

  add(entry: Waiting): void {
    const last = this.#last
    entry.waits = true
    entry.earlier = last
    if (last === undefined) this.#first = entry
    else last.later = entry
    this.#last = entry
    this.#size++
    if (this.#timer === undefined) this.#arm()
  }

  /** false: it has expired already. */
  remove(entry: Waiting): boolean {
    if (!entry.waits) return false
    const { earlier, later } = entry
    if (earlier === undefined) this.#first = later
    else earlier.later = later
    if (later === undefined) this.#last = earlier
    else later.earlier = earlier
    entry.waits = false
    entry.earlier = undefined
    entry.later = undefined
    this.#size--
    return true
  }

  close(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #arm(): void {
    this.#timer = this.#clock.timer(STEP, () => {
      this.#timer = undefined
      const now = this.#clock.monotonic()
      for (let entry = this.#first; entry !== undefined && entry.deadline <= now; entry = this.#first) {
        this.remove(entry)
        entry.expire()
      }
      if (this.#size > 0 && this.#timer === undefined) this.#arm()
    })
  }
}
