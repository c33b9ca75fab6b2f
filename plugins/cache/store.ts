/**
 * What is kept: per question (name, type, class, DO, CD, RD) at most one success and one denial, each in a room of its own with bounds in
 * entries and octets. Found by one look-up of the folded name in the map of its kind of question.
 */
import { FLAG, type Layout } from '../../src/dns/index.js'
import type { Query } from '../../src/plugins/contract.js'
import { type Node, S3Fifo, use } from './s3fifo.js'

/** A kept reply. Its octets never change; the rest is what becomes of it. */
export interface Item {
  readonly wire: Buffer
  readonly layout: Layout
  /** AD, RA and the rcode as they came; AA where hits are to carry it. */
  readonly flags: number
  /** Seconds. */
  readonly ttl: number
  /** Monotonic milliseconds. */
  readonly storedAt: number
  /** The question is answered, not merely replied to. */
  readonly answering: boolean
  /** What `zone/wildcard` said when it was stored. */
  readonly wildcard: string | undefined
  /** An answer that a later reply without one has taken the place of (prefer_positive). */
  readonly lastGood: Item | undefined
  /** Queries without a long gap, and when the last one came. */
  hits: number
  lastHit: number
  refreshing: boolean
  /** Monotonic milliseconds before which no refresh is tried again. */
  retryAt: number
}

/** Seconds left, rounded as CoreDNS does: whole seconds of age are taken off. */
export const timeLeft = ({ ttl, storedAt }: Item, now: number): number => secondsLeft(ttl, storedAt, now)

/** Of `ttl` seconds that began at `storedAt`. */
export const secondsLeft = (ttl: number, storedAt: number, now: number): number => ttl - Math.max(0, Math.floor((now - storedAt) / 1000))

export type Side = 'success' | 'denial'

/** Estimated octets of the objects around an item, measured with 10,000 entries. */
const OVERHEAD = 480
/** Room per entry, so that signed or otherwise large replies cannot take more memory than the capacity suggests. */
const OCTETS_PER_ENTRY = 2048

class Entry implements Node {
  item: Item
  readonly slot: Slot
  readonly side: Side
  readonly hash: number
  cost: number
  uses = 0
  queue: Node['queue'] = undefined
  newer: Node | undefined = undefined
  older: Node | undefined = undefined

  constructor(slot: Slot, side: Side, item: Item) {
    this.slot = slot
    this.side = side
    this.item = item
    this.hash = slot.hash
    this.cost = costOf(slot, item)
  }
}

const costOf = (slot: Slot, item: Item): number =>
  OVERHEAD + slot.key.length + item.wire.length + (item.lastGood === undefined ? 0 : OVERHEAD + item.lastGood.wire.length)

/** Made from what a slot keeps. */
export interface Dependent {
  /** The slot keeps something else by now. */
  gone: boolean
}

/** One for each combination of the client's bits and of the addresses that it may ask, as far as they come often. */
const MOST_DEPENDENTS = 16

/** All that is known of one question: what is kept, and the query that is on its way. */
export class Slot {
  readonly key: string
  readonly kind: number
  readonly hash: number
  success: Entry | undefined = undefined
  denial: Entry | undefined = undefined
  /** Set while the question is being asked behind the cache. */
  flight: object | undefined = undefined
  #dependents: Dependent[] | undefined = undefined

  constructor(key: string, kind: number) {
    this.key = key
    this.kind = kind
    this.hash = hashOf(key, kind)
  }

  /** `dependent` is told when what is kept here changes. */
  depends(dependent: Dependent): void {
    // Some of them are of no use to anybody any more; nobody says which.
    if ((this.#dependents?.length ?? 0) >= MOST_DEPENDENTS) this.changed()
    this.#dependents ??= []
    this.#dependents.push(dependent)
  }

  changed(): void {
    if (this.#dependents === undefined) return
    for (const dependent of this.#dependents) dependent.gone = true
    this.#dependents = undefined
  }
}

/** Number of the map for this kind of question: small (and so cheap) for class IN. */
export function kindOfQuestion(query: Query): number {
  const { message } = query
  const bits = (query.dnssecOk ? 4 : 0) | (message.flags & FLAG.CD ? 2 : 0) | (message.flags & FLAG.RD ? 1 : 0)
  const cls = query.class === 1 ? 0 : query.class
  return cls * 0x80000 + query.type * 8 + bits
}

/** FNV-1a over the key and the kind of question. */
function hashOf(key: string, kind: number): number {
  let hash = 0x811c9dc5 ^ (kind | 0)
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  return (hash ^ (hash >>> 15)) >>> 0
}

export interface StoreOptions {
  readonly success: number
  readonly denial: number
  /** Seconds that an expired item may still be of use. */
  readonly staleUpTo: number
  /** Monotonic milliseconds. */
  readonly now: () => number
}

export class Store {
  readonly #maps = new Map<number, Map<string, Slot>>()
  readonly #rooms: Readonly<Record<Side, S3Fifo<Entry>>>
  /** Entries that this store threw out since it was asked last. */
  #evicted: Record<Side, number> = { success: 0, denial: 0 }

  constructor(options: StoreOptions) {
    const isDead = (entry: Entry): boolean =>
      timeLeft(entry.item, options.now()) + options.staleUpTo <= 0 && entry.item.lastGood === undefined
    const room = (side: Side): S3Fifo<Entry> =>
      new S3Fifo<Entry>(options[side], options[side] * OCTETS_PER_ENTRY, isDead, (entry) => {
        this.#evicted[side]++
        this.#forget(entry)
      })
    this.#rooms = { success: room('success'), denial: room('denial') }
  }

  find(query: Query): Slot | undefined {
    return this.#maps.get(kindOfQuestion(query))?.get(query.name.key)
  }

  /** The slot for a question, made if there is none. One that stays empty must be given to `release`. */
  claim(query: Query): Slot {
    const kind = kindOfQuestion(query)
    let map = this.#maps.get(kind)
    if (map === undefined) {
      map = new Map()
      this.#maps.set(kind, map)
    }
    let slot = map.get(query.name.key)
    if (slot === undefined) {
      slot = new Slot(query.name.key, kind)
      map.set(query.name.key, slot)
    }
    return slot
  }

  /** Takes an empty slot out of its map. */
  release(slot: Slot): void {
    if (slot.success !== undefined || slot.denial !== undefined || slot.flight !== undefined) return
    const map = this.#maps.get(slot.kind)
    if (map?.get(slot.key) !== slot) return
    map.delete(slot.key)
    if (map.size === 0) this.#maps.delete(slot.kind)
  }

  put(slot: Slot, side: Side, item: Item): void {
    const old = slot[side]
    const room = this.#rooms[side]
    slot.changed()
    if (old === undefined) {
      const entry = new Entry(slot, side, item)
      slot[side] = entry
      room.add(entry)
      return
    }
    // Taken out and put in its place again, so that the room's sum stays right; its uses stay with it.
    const { queue } = old
    queue?.remove(old)
    old.item = item
    old.cost = costOf(slot, item)
    queue?.push(old)
    room.trim()
  }

  drop(slot: Slot, side: Side): void {
    const entry = slot[side]
    if (entry === undefined) return
    this.#rooms[side].remove(entry)
    this.#forget(entry)
  }

  used(slot: Slot, side: Side): void {
    const entry = slot[side]
    if (entry !== undefined) use(entry)
  }

  size(side: Side): number {
    return this.#rooms[side].size
  }
  octets(side: Side): number {
    return this.#rooms[side].octets
  }

  /** Evictions since the last call. */
  takeEvicted(side: Side): number {
    const count = this.#evicted[side]
    this.#evicted[side] = 0
    return count
  }

  clear(): void {
    for (const map of this.#maps.values())
      for (const slot of map.values()) {
        this.drop(slot, 'success')
        this.drop(slot, 'denial')
      }
  }

  #forget(entry: Entry): void {
    if (entry.slot[entry.side] === entry) entry.slot[entry.side] = undefined
    entry.slot.changed()
    this.release(entry.slot)
  }
}
