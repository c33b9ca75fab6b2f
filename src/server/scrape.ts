/** The reading side of the metrics: adds the slots of all threads up and lets prom-client print them in the Prometheus text format. */
import type { Metric, MetricValue, Registry } from 'prom-client'
import { CHUNK_SLOTS, childKey, type MetricsNotice, type SlotMetrics, slotsOf } from './metrics.js'
import type { FamilyNotice } from './protocol.js'

interface Child {
  readonly values: readonly string[]
  /** Where the threads count: an array and the first slot in it. */
  readonly places: Map<number, { readonly array: Float64Array; readonly at: number }>
}
interface Family {
  readonly notice: FamilyNotice
  readonly children: Map<string, Child>
}
interface Thread {
  readonly families: Map<number, Family>
  readonly chunks: Float64Array[]
}

export class MetricsHub {
  readonly #families = new Map<string, Family>()
  readonly #threads = new Map<number, Thread>()
  #registry: Promise<Registry> | undefined

  /** Takes a notice of the thread with this number. Numbers are never used again. */
  take(thread: number, notice: MetricsNotice): void {
    let state = this.#threads.get(thread)
    if (state === undefined) {
      state = { families: new Map(), chunks: [] }
      this.#threads.set(thread, state)
    }
    for (const chunk of notice.chunks) state.chunks.push(new Float64Array(chunk))
    for (const family of notice.families) state.families.set(family.id, this.#family(family))
    for (const { family: id, values, slot, removed } of notice.children) {
      const family = state.families.get(id)
      const array = state.chunks[Math.floor(slot / CHUNK_SLOTS)]
      if (family === undefined || array === undefined) throw new Error(`thread ${thread} names a metric that it has not announced`)
      if (removed) remove(family, values, thread)
      else this.#child(family, values).places.set(thread, { array, at: slot % CHUNK_SLOTS })
    }
  }

  /** A thread has ended: what it counted is kept, in `into`; its gauges go. */
  retire(thread: number, into: SlotMetrics): void {
    this.#threads.delete(thread)
    for (const { notice, children } of this.#families.values()) {
      for (const [key, child] of children) {
        const place = child.places.get(thread)
        if (place === undefined) continue
        child.places.delete(thread)
        if (notice.type !== 'gauge') into.add(notice, child.values, place.array.subarray(place.at, place.at + slotsOf(notice)))
        else if (child.places.size === 0) children.delete(key)
      }
    }
  }

  /** Sum over all threads of one child; undefined if there is none. A histogram gives its count. */
  value(name: string, values: readonly string[]): number | undefined {
    const family = this.#families.get(name)
    const child = family?.children.get(childKey(values))
    if (family === undefined || child === undefined) return undefined
    const sums = sum(family.notice, child)
    if (family.notice.type !== 'histogram') return sums[0]
    return sums.subarray(0, -1).reduce((a, b) => a + b, 0)
  }

  /** The text of all metrics, the process's own included. */
  async text(): Promise<{ contentType: string; body: string }> {
    this.#registry ??= openRegistry()
    const registry = await this.#registry
    const { Registry } = await import('prom-client')
    const own = new Registry()
    const sorted = [...this.#families.values()].sort((a, b) => (a.notice.name < b.notice.name ? -1 : 1))
    for (const family of sorted) if (family.children.size > 0) own.registerMetric(printable(family) as unknown as Metric<string>)
    const body = `${await own.metrics()}\n${await registry.metrics()}`
    // Blank lines between families are prom-client's; CoreDNS has none.
    return { contentType: own.contentType, body: body.replace(/\n{2,}/g, '\n') }
  }

  #family(notice: FamilyNotice): Family {
    let family = this.#families.get(notice.name)
    if (family === undefined) {
      family = { notice, children: new Map() }
      this.#families.set(notice.name, family)
    }
    return family
  }
  #child(family: Family, values: readonly string[]): Child {
    const key = childKey(values)
    let child = family.children.get(key)
    if (child === undefined) {
      child = { values, places: new Map() }
      family.children.set(key, child)
    }
    return child
  }
}

function remove(family: Family, values: readonly string[], thread: number): void {
  const child = family.children.get(childKey(values))
  child?.places.delete(thread)
  if (child?.places.size === 0) family.children.delete(childKey(values))
}

/** process_* and nodejs_* of prom-client, started at the first scrape so that a server nobody scrapes doesn't load them. */
async function openRegistry(): Promise<Registry> {
  const { Registry, collectDefaultMetrics } = await import('prom-client')
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return registry
}

function sum(notice: FamilyNotice, child: Child): Float64Array {
  const sums = new Float64Array(slotsOf(notice))
  for (const { array, at } of child.places.values()) for (let i = 0; i < sums.length; i++) sums[i]! += array[at + i]!
  return sums
}

/** What prom-client's registry needs of a metric: a name, and its values when asked. */
function printable({ notice, children }: Family): { name: string; get(): Promise<unknown> } {
  const { name, help, type } = notice
  return {
    name,
    get: async () => {
      const sorted = [...children.entries()].sort(([a], [b]) => (a < b ? -1 : 1))
      return { name, help, type, values: sorted.flatMap(([, child]) => valuesOf(notice, child)), aggregator: 'sum' }
    },
  }
}

function valuesOf(notice: FamilyNotice, child: Child): MetricValue<string>[] {
  const sums = sum(notice, child)
  // Prometheus sorts labels by name.
  const labels = Object.fromEntries(notice.labels.map((label, i) => [label, child.values[i] ?? '']).sort(([a], [b]) => (a! < b! ? -1 : 1)))
  if (notice.type !== 'histogram') return [{ value: sums[0]!, labels }]
  const values: (MetricValue<string> & { metricName: string })[] = []
  let count = 0
  for (let i = 0; i <= notice.buckets.length; i++) {
    count += sums[i]!
    values.push({ metricName: `${notice.name}_bucket`, value: count, labels: { ...labels, le: bound(notice.buckets[i]) } })
  }
  values.push({ metricName: `${notice.name}_sum`, value: sums[sums.length - 1]!, labels })
  values.push({ metricName: `${notice.name}_count`, value: count, labels })
  return values
}

/** A bucket's bound as Go prints it ("8e-05", "0.00025", "+Inf"): the text is part of the label. */
function bound(value: number | undefined): string {
  if (value === undefined || value === Number.POSITIVE_INFINITY) return '+Inf'
  if (value !== 0 && Math.abs(value) < 1e-4) return value.toExponential().replace(/e-(\d)$/, 'e-0$1')
  return String(value)
}
