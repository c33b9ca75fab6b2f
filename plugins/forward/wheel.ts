/**
 * Waiting for very many things at once with one timer. Nearly everything that waits here is answered long before its time: to begin and to
 * end a wait must cost next to nothing, and a wait may last up to one grain too long.
 */
import type { Clock, Timer } from '../../src/plugins/contract.js'

/** Milliseconds that a wait may last too long. */
const GRAIN = 10
/** Power of two. What waits for longer than all slots together goes round again. */
const SLOTS = 512

/** Something that waits; in at most one wheel at a time. */
export interface Waiter {
  /** Monotonic milliseconds. */
  due: number
  /** Number of the grain that it waits for; -1: it does not wait. */
  grain: number
  earlier: Waiter | undefined
  later: Waiter | undefined
  /** The time has come; it no longer waits. */
  fire(now: number): void
}

export class Wheel {
  readonly #clock: Clock
  readonly #slots: (Waiter | undefined)[] = new Array(SLOTS).fill(undefined)
  #count = 0
  /** The grain that was looked at last. */
  #done = 0
  #timer: Timer | undefined
  #timerGrain = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Lets `waiter` wait until `due`; ends the wait that it was in. */
  add(waiter: Waiter, due: number, now: number): void {
    if (waiter.grain >= 0) this.remove(waiter)
    if (this.#count === 0) this.#done = Math.max(this.#done, Math.floor(now / GRAIN))
    const grain = Math.min(Math.max(Math.ceil(due / GRAIN), this.#done + 1), this.#done + SLOTS - 1)
    const slot = grain & (SLOTS - 1)
    const first = this.#slots[slot]
    waiter.due = due
    waiter.grain = grain
    waiter.later = first
    if (first !== undefined) first.earlier = waiter
    this.#slots[slot] = waiter
    this.#count++
    if (this.#timer === undefined || grain < this.#timerGrain) this.#wake(grain, now)
  }

  remove(waiter: Waiter): void {
    if (waiter.grain < 0) return
    const { earlier, later } = waiter
    if (earlier === undefined) this.#slots[waiter.grain & (SLOTS - 1)] = later
    else earlier.later = later
    if (later !== undefined) later.earlier = earlier
    waiter.earlier = undefined
    waiter.later = undefined
    waiter.grain = -1
    this.#count--
  }

  #wake(grain: number, now: number): void {
    this.#timer?.cancel()
    this.#timerGrain = grain
    this.#timer = this.#clock.timer(Math.max(0, Math.ceil(grain * GRAIN - now)), () => this.#turn())
  }

  #turn(): void {
    this.#timer = undefined
    const now = this.#clock.monotonic()
    // A timer may come some fraction of a millisecond early.
    const until = Math.floor((now + 1) / GRAIN)
    // All slots were seen after one round, however long nobody turned the loop.
    if (until - this.#done > SLOTS) this.#done = until - SLOTS
    while (this.#done < until) {
      this.#done++
      const slot = this.#done & (SLOTS - 1)
      // What is put in meanwhile goes to other slots.
      for (let waiter = this.#slots[slot]; waiter !== undefined; waiter = this.#slots[slot]) {
        this.remove(waiter)
        if (waiter.due > now + 1) this.add(waiter, waiter.due, now)
        else waiter.fire(now)
      }
    }
    if (this.#count > 0) this.#wakeForNext(now)
  }

  #wakeForNext(now: number): void {
    let grain = this.#done + 1
    while (this.#slots[grain & (SLOTS - 1)] === undefined) grain++
    if (this.#timer === undefined || grain < this.#timerGrain) this.#wake(grain, now)
  }
}
