/**
 * What the cache says of answers that the server may give again by itself (see the plugin contract): its own for as long as their entry is there
 * and has time left, live ones of others always.
 */
import { type Counter, GONE, type Passing, type Standing } from '../../src/plugins/contract.js'
import type { ServerCounters } from './metrics.js'
import type { Prefetching } from './prefetch.js'
import { type Dependent, type Item, type Side, type Slot, type Store, secondsLeft, timeLeft } from './store.js'

/** Milliseconds between two marks of an entry as used: enough for what decides about eviction, and its memory is left alone between. */
const MARK_INTERVAL = 100

/** Those of one server; what all of them need is here once. */
export class Standings {
  readonly store: Store
  readonly counters: ServerCounters
  readonly prefetching: Prefetching
  readonly keepTtl: boolean
  /** Live answers are misses. */
  readonly live: Passing

  constructor(store: Store, counters: ServerCounters, prefetching: Prefetching, keepTtl: boolean) {
    this.store = store
    this.counters = counters
    this.prefetching = prefetching
    this.keepTtl = keepTtl
    this.live = {
      passed() {
        counters.requests.inc()
        counters.misses.inc()
      },
    }
  }

  /** undefined: the entry is used beyond its time. */
  hit(slot: Slot, side: Side, item: Item, now: number): Standing | undefined {
    if (timeLeft(item, now) <= 0) return undefined
    const standing = new StandingHit(slot, side, item, this)
    slot.depends(standing)
    return standing
  }
}

class StandingHit implements Standing, Dependent {
  gone = false
  readonly #slot: Slot
  readonly #side: Side
  readonly #item: Item
  readonly #all: Standings
  readonly #hits: Counter
  /** Copies of the item's, so that it need not be looked at. */
  readonly #ttl: number
  readonly #storedAt: number
  #nextMark = 0

  constructor(slot: Slot, side: Side, item: Item, all: Standings) {
    this.#slot = slot
    this.#side = side
    this.#item = item
    this.#all = all
    this.#hits = all.counters.hits[side]
    this.#ttl = item.ttl
    this.#storedAt = item.storedAt
  }

  again(now: number): number {
    if (this.gone) return GONE
    const left = secondsLeft(this.#ttl, this.#storedAt, now)
    if (left <= 0) return GONE
    const { store, counters, prefetching, keepTtl } = this.#all
    if (prefetching.on) {
      // A refresh that is due is for the cache to see to.
      if (prefetching.wouldBeDue(this.#slot, this.#item, now, left)) return GONE
      prefetching.count(this.#item, now)
    }
    counters.requests.inc()
    this.#hits.inc()
    if (now >= this.#nextMark) {
      this.#nextMark = now + MARK_INTERVAL
      store.used(this.#slot, this.#side)
    }
    return keepTtl ? this.#ttl : left
  }
}
