/**
 * The questions that wait on one socket, by id. Ids are unpredictable already, so that their low bits do as a hash; a Map would make garbage
 * at this rate of coming and going.
 */
import type { Ask } from './ask.js'

const SMALLEST = 32

export class Pending {
  #table: (Ask | undefined)[] = new Array(SMALLEST).fill(undefined)
  #mask = SMALLEST - 1
  #size = 0

  get size(): number {
    return this.#size
  }

  /** The question with this id, if any waits. */
  get(id: number): Ask | undefined {
    let at = id & this.#mask
    let ask = this.#table[at]
    while (ask !== undefined && ask.id !== id) {
      at = (at + 1) & this.#mask
      ask = this.#table[at]
    }
    return ask
  }

  /** Takes a question whose id no other has. The id stays as it is until it is removed. */
  add(ask: Ask): void {
    if (2 * ++this.#size > this.#mask) this.#grow()
    this.#put(ask)
  }

  remove(ask: Ask): void {
    const table = this.#table
    const mask = this.#mask
    let hole = ask.id & mask
    while (table[hole] !== ask) {
      if (table[hole] === undefined) return
      hole = (hole + 1) & mask
    }
    this.#size--
    // Those behind it that would no longer be found move up.
    for (let at = (hole + 1) & mask; ; at = (at + 1) & mask) {
      const next = table[at]
      if (next === undefined) break
      if (((at - next.id) & mask) < ((at - hole) & mask)) continue
      table[hole] = next
      hole = at
    }
    table[hole] = undefined
  }

  /** All of them; none are left. */
  take(): Ask[] {
    const asks = this.#table.filter((ask) => ask !== undefined)
    this.#table.fill(undefined)
    this.#size = 0
    return asks
  }

  #put(ask: Ask): void {
    let at = ask.id & this.#mask
    while (this.#table[at] !== undefined) at = (at + 1) & this.#mask
    this.#table[at] = ask
  }

  #grow(): void {
    const asks = this.#table
    this.#mask = 2 * this.#mask + 1
    this.#table = new Array(this.#mask + 1).fill(undefined)
    for (const ask of asks) if (ask !== undefined) this.#put(ask)
  }
}
