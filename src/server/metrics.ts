/**
 * Counting: a slot in a Float64Array on shared memory per child, so that an increment costs a few nanoseconds and the control thread
 * reads it without asking. This is the counting side; `scrape.ts` adds the threads up and prints.
 */
import type { Counter, Gauge, Histogram, MetricFamily, MetricsScope } from '../plugins/contract.js'
import type { ChildNotice, FamilyNotice } from './protocol.js'

/** Slots per chunk of shared memory (32 KiB). */
export const CHUNK_SLOTS = 4096

export interface MetricsNotice {
  readonly families: readonly FamilyNotice[]
  readonly children: readonly ChildNotice[]
  readonly chunks: readonly SharedArrayBuffer[]
}

type Announcements = { -readonly [K in keyof MetricsNotice]: MetricsNotice[K][number][] }

/** Slots a child of the family takes: a histogram has one per bucket, one for +Inf, then the sum. */
export const slotsOf = (family: FamilyNotice): number => (family.type === 'histogram' ? family.buckets.length + 2 : 1)

/** Label values joined: no label may hold the separator unescaped, and none that we have does (NUL comes from no escape of a name). */
export const childKey = (values: readonly string[]): string => values.join('\0')

class Family<T> implements MetricFamily<T> {
  readonly #make: (values: readonly string[]) => T
  readonly #drop: (values: readonly string[]) => void
  readonly #children: Map<string, T> = new Map()

  constructor(make: (values: readonly string[]) => T, drop: (values: readonly string[]) => void) {
    this.#make = make
    this.#drop = drop
  }
  with(...values: readonly string[]): T {
    const key = childKey(values)
    let child = this.#children.get(key)
    if (child === undefined) {
      child = this.#make(values)
      this.#children.set(key, child)
    }
    return child
  }
  remove(...values: readonly string[]): void {
    if (this.#children.delete(childKey(values))) this.#drop(values)
  }
}

/** The scope of one thread. `notify` hears of new families and children, in groups. */
export class SlotMetrics implements MetricsScope {
  readonly #notify: (notice: MetricsNotice) => void
  readonly #families = new Map<string, { notice: FamilyNotice; handle: Family<unknown> }>()
  readonly #slots = new Map<string, number>()
  readonly #arrays: Float64Array[] = []
  #used = CHUNK_SLOTS
  #pending: Announcements | undefined

  constructor(notify: (notice: MetricsNotice) => void) {
    this.#notify = notify
  }

  counter(name: string, help: string, labels: readonly string[]): MetricFamily<Counter> {
    return this.#family(
      name,
      help,
      'counter',
      labels,
      [],
      (array, at): Counter => ({
        inc: (by = 1) => {
          array[at]! += by
        },
      }),
    )
  }
  gauge(name: string, help: string, labels: readonly string[]): MetricFamily<Gauge> {
    return this.#family(
      name,
      help,
      'gauge',
      labels,
      [],
      (array, at): Gauge => ({
        set: (value) => {
          array[at] = value
        },
        inc: (by = 1) => {
          array[at]! += by
        },
      }),
    )
  }
  histogram(name: string, help: string, labels: readonly string[], buckets: readonly number[]): MetricFamily<Histogram> {
    const bounds = Float64Array.from(buckets)
    const count = bounds.length
    return this.#family(name, help, 'histogram', labels, buckets, (array, at): Histogram => {
      const slotFor = (value: number): number => {
        let bucket = 0
        while (bucket < count && value > bounds[bucket]!) bucket++
        return at + bucket
      }
      return {
        observe: (value, times = 1) => {
          array[slotFor(value)]! += times
          array[at + count + 1]! += value * times
        },
        at: (value) => {
          const slot = slotFor(value)
          return {
            inc: (by = 1) => {
              array[slot]! += by
              array[at + count + 1]! += value * by
            },
          }
        },
      }
    })
  }

  /** Adds the slots of another thread's counter or histogram to this one's. */
  add({ name, help, type, labels, buckets }: FamilyNotice, values: readonly string[], slots: Float64Array): void {
    if (type === 'histogram') this.histogram(name, help, labels, buckets).with(...values)
    else this.counter(name, help, labels).with(...values)
    const slot = this.#slot(this.#families.get(name)!.notice, values)
    const array = this.#arrayOf(slot)
    for (let i = 0; i < slots.length; i++) array[(slot % CHUNK_SLOTS) + i]! += slots[i]!
  }

  /** Hands on at once what has been announced. */
  flush(): void {
    const pending = this.#pending
    this.#pending = undefined
    if (pending !== undefined) this.#notify(pending)
  }

  #family<T>(
    name: string,
    help: string,
    type: FamilyNotice['type'],
    labels: readonly string[],
    buckets: readonly number[],
    make: (array: Float64Array, at: number) => T,
  ): MetricFamily<T> {
    const known = this.#families.get(name)
    if (known !== undefined) {
      const same =
        known.notice.type === type && known.notice.labels.join() === labels.join() && known.notice.buckets.join() === buckets.join()
      if (!same) throw new Error(`metric ${name} is registered already with another type, other labels or buckets`)
      return known.handle as Family<T>
    }
    const notice: FamilyNotice = { id: this.#families.size, name, help, type, labels, buckets }
    const announce = (values: readonly string[]): T => {
      if (values.length !== labels.length) throw new Error(`metric ${name} takes ${labels.length} label values, not ${values.length}`)
      const slot = this.#slot(notice, values)
      this.#announced().children.push({ family: notice.id, values, slot, removed: false })
      return make(this.#arrayOf(slot), slot % CHUNK_SLOTS)
    }
    const drop = (values: readonly string[]): void => {
      const slot = this.#slot(notice, values)
      this.#arrayOf(slot).fill(0, slot % CHUNK_SLOTS, (slot % CHUNK_SLOTS) + slotsOf(notice))
      this.#announced().children.push({ family: notice.id, values, slot, removed: true })
    }
    const handle = new Family<T>(announce, drop)
    this.#families.set(name, { notice, handle: handle as Family<unknown> })
    this.#announced().families.push(notice)
    return handle
  }

  #arrayOf(slot: number): Float64Array {
    return this.#arrays[Math.floor(slot / CHUNK_SLOTS)]!
  }
  /** A child that was taken out and comes back gets its old slots. */
  #slot(family: FamilyNotice, values: readonly string[]): number {
    const key = `${family.id}\0${childKey(values)}`
    const known = this.#slots.get(key)
    if (known !== undefined) return known
    const size = slotsOf(family)
    if (size > CHUNK_SLOTS) throw new Error(`metric ${family.name} has too many buckets`)
    if (this.#used + size > CHUNK_SLOTS) {
      const shared = new SharedArrayBuffer(CHUNK_SLOTS * 8)
      this.#arrays.push(new Float64Array(shared))
      this.#used = 0
      this.#announced().chunks.push(shared)
    }
    const slot = (this.#arrays.length - 1) * CHUNK_SLOTS + this.#used
    this.#used += size
    this.#slots.set(key, slot)
    return slot
  }
  #announced(): Announcements {
    if (this.#pending === undefined) {
      this.#pending = { families: [], children: [], chunks: [] }
      queueMicrotask(() => this.flush())
    }
    return this.#pending
  }
}
