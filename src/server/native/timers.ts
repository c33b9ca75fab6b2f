/** Timers of a loop of our own: a heap by due time, from which a timer that is cancelled is taken out at once. */
import type { Timer } from '../../plugins/contract.js'

class HeapTimer implements Timer {
  due: number
  readonly order: number
  /** Index in the heap; -1: not in it. */
  at = -1
  readonly fn: () => void
  readonly #timers: Timers

  constructor(timers: Timers, due: number, order: number, fn: () => void) {
    this.#timers = timers
    this.due = due
    this.order = order
    this.fn = fn
  }
  cancel(): void {
    this.#timers.remove(this)
  }
}

export class Timers {
  readonly #heap: HeapTimer[] = []
  #order = 0

  /** Calls `fn` once when `fire` is given a time of `due` or later. */
  add(due: number, fn: () => void): Timer {
    const timer = new HeapTimer(this, due, this.#order++, fn)
    this.#rise(timer, this.#heap.length)
    return timer
  }

  /** When the next one is due; Infinity: there is none. */
  get next(): number {
    return this.#heap[0]?.due ?? Number.POSITIVE_INFINITY
  }

  /** Calls what is due at `now`, not what is added meanwhile. Returns whether there was something. */
  fire(now: number): boolean {
    const first = this.#heap[0]
    if (first === undefined || first.due > now) return false
    const limit = this.#order
    for (let timer = this.#heap[0]; timer !== undefined && timer.due <= now && timer.order < limit; timer = this.#heap[0]) {
      this.remove(timer)
      timer.fn()
    }
    return true
  }

  remove(timer: HeapTimer): void {
    const { at } = timer
    if (at < 0) return
    timer.at = -1
    const last = this.#heap.pop()!
    if (last === timer) return
    this.#sink(last, at)
    this.#rise(last, last.at)
  }

  #rise(timer: HeapTimer, from: number): void {
    let at = from
    while (at > 0) {
      const parent = this.#heap[(at - 1) >> 1]!
      if (!isBefore(timer, parent)) break
      this.#put(parent, at)
      at = (at - 1) >> 1
    }
    this.#put(timer, at)
  }

  #sink(timer: HeapTimer, from: number): void {
    const { length } = this.#heap
    let at = from
    for (;;) {
      let child = 2 * at + 1
      if (child >= length) break
      if (child + 1 < length && isBefore(this.#heap[child + 1]!, this.#heap[child]!)) child++
      if (!isBefore(this.#heap[child]!, timer)) break
      this.#put(this.#heap[child]!, at)
      at = child
    }
    this.#put(timer, at)
  }

  #put(timer: HeapTimer, at: number): void {
    this.#heap[at] = timer
    timer.at = at
  }
}

const isBefore = (one: HeapTimer, other: HeapTimer): boolean => one.due < other.due || (one.due === other.due && one.order < other.order)
