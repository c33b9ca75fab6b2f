/** Which entries are refreshed before they run out: those that are asked for often, once they are near their end. */
import type { CacheOptions } from './options.js'
import type { Item, Slot } from './store.js'

export class Prefetching {
  readonly #options: CacheOptions
  /** Some are refreshed ahead at all. */
  readonly on: boolean

  constructor(options: CacheOptions) {
    this.#options = options
    this.on = options.prefetch > 0
  }

  /** Counts a hit at `now`, which has `left` seconds before it; true: with it, a refresh is due. */
  isDueWith(slot: Slot, item: Item, now: number, left: number): boolean {
    if (!this.on) return false
    const due = this.wouldBeDue(slot, item, now, left)
    this.count(item, now)
    return due
  }

  count(item: Item, now: number): void {
    item.hits = this.#hitsWith(item, now)
    item.lastHit = now
  }

  /**
   * Popular with one more hit, and near its end. Of long windows up to a tenth comes on top, another for each entry and each time it is kept:
   * entries that were filled together then are not all refreshed in the same second.
   */
  wouldBeDue(slot: Slot, item: Item, now: number, left: number): boolean {
    if (this.#hitsWith(item, now) < this.#options.prefetch) return false
    const window = Math.ceil((this.#options.prefetchPercentage / 100) * item.ttl)
    if (left <= window) return true
    const spread = Math.floor(window / 10)
    return left <= window + spread && left <= window + (((slot.hash ^ Math.trunc(item.storedAt)) >>> 0) % (spread + 1))
  }

  /** Hits without a long gap, with the one at `now`. */
  #hitsWith(item: Item, now: number): number {
    return item.lastHit < now - this.#options.prefetchGap ? 1 : item.hits + 1
  }
}
