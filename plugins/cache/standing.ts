/** A hit that the server may give again by itself (see the plugin contract): for as long as its entry is there and has time left. */
import { type Counter, GONE, type Standing } from '../../src/plugins/contract.js'
import { type Dependent, type Item, type Side, type Slot, type Store, secondsLeft } from './store.js'

/** Milliseconds between two marks of an entry as used: enough for what decides about eviction, and its memory is left alone between. */
const MARK_INTERVAL = 100

/** What hits of one side have in common. */
export interface HitsOf {
  readonly store: Store
  readonly keepTtl: boolean
  readonly requests: Counter
  readonly hits: Counter
  /** Counts a hit for prefetching; false: a refresh is due, which the cache must see to. undefined: nothing is refreshed ahead. */
  readonly counts: ((slot: Slot, item: Item, now: number, left: number) => boolean) | undefined
}

export class StandingHit implements Standing, Dependent {
  gone = false
  readonly #slot: Slot
  readonly #side: Side
  readonly #item: Item
  readonly #shared: HitsOf
  /** Copies of the item's, so that it need not be looked at. */
  readonly #ttl: number
  readonly #storedAt: number
  #nextMark = 0

  constructor(slot: Slot, side: Side, item: Item, shared: HitsOf) {
    this.#slot = slot
    this.#side = side
    this.#item = item
    this.#shared = shared
    this.#ttl = item.ttl
    this.#storedAt = item.storedAt
  }

  again(now: number): number {
    if (this.gone) return GONE
    const left = secondsLeft(this.#ttl, this.#storedAt, now)
    const { counts, requests, hits, store, keepTtl } = this.#shared
    if (left <= 0 || (counts !== undefined && !counts(this.#slot, this.#item, now, left))) return GONE
    requests.inc()
    hits.inc()
    if (now >= this.#nextMark) {
      this.#nextMark = now + MARK_INTERVAL
      store.used(this.#slot, this.#side)
    }
    return keepTtl ? this.#ttl : left
  }
}
