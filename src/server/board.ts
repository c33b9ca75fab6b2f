/**
 * Numbers that serving threads count on together, on shared memory. Each thread writes its own column alone and the sum is taken on reading:
 * so nobody waits for anybody, and what a thread that died had under way is taken out by clearing its column.
 */
import type { Tally } from '../plugins/contract.js'

/** Threads; those beyond count as if all were like them. */
const COLUMNS = 256
/** Per generation, of which so many may be there at once. */
const ROWS = 64
const GENERATIONS = 8

export const newBoard = (): SharedArrayBuffer => new SharedArrayBuffer(GENERATIONS * ROWS * COLUMNS * Int32Array.BYTES_PER_ELEMENT)

/** The thread at `index` has ended: what it had added is gone. */
export function clearColumn(board: SharedArrayBuffer, index: number): void {
  const cells = new Int32Array(board)
  // Only what is set is written to: pages that were never used stay out of memory.
  for (let at = index; index < COLUMNS && at < cells.length; at += COLUMNS) if (Atomics.load(cells, at) !== 0) Atomics.store(cells, at, 0)
}

/** The `nth` number of a generation, as one thread of `count` sees it. */
export function tallyOn(board: SharedArrayBuffer, generation: number, nth: number, index: number, count: number): Tally {
  if (count === 1 || nth >= ROWS || count > COLUMNS) return new OwnTally(count)
  const row = (generation % GENERATIONS) * ROWS + nth
  return new SharedTally(new Int32Array(board, row * COLUMNS * Int32Array.BYTES_PER_ELEMENT, count), index)
}

class OwnTally implements Tally {
  readonly #count: number
  #own = 0

  constructor(count: number) {
    this.#count = count
  }
  add(by: number): void {
    this.#own += by
  }
  total(): number {
    return this.#own * this.#count
  }
}

class SharedTally implements Tally {
  readonly #cells: Int32Array
  readonly #index: number
  #own = 0

  constructor(cells: Int32Array, index: number) {
    this.#cells = cells
    this.#index = index
    // Of a generation long ago.
    Atomics.store(cells, index, 0)
  }
  add(by: number): void {
    this.#own += by
    Atomics.store(this.#cells, this.#index, this.#own)
  }
  total(): number {
    let sum = 0
    for (let i = 0; i < this.#cells.length; i++) sum += Atomics.load(this.#cells, i)
    return sum
  }
}
