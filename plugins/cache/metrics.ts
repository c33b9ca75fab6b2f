/** CoreDNS's counters of `cache`, with the children of one server at hand. */
import type { Counter, Gauge, MetricsScope } from '../../src/plugins/contract.js'

export interface ServerCounters {
  readonly requests: Counter
  readonly misses: Counter
  readonly prefetches: Counter
  readonly drops: Counter
  readonly stale: Counter
  readonly hits: { readonly success: Counter; readonly denial: Counter }
  readonly evictions: { readonly success: Counter; readonly denial: Counter }
  readonly entries: { readonly success: Pick<Gauge, 'set'>; readonly denial: Pick<Gauge, 'set'> }
}

/** Makes the families now and returns what makes a server's children. */
export function countersOf(metrics: MetricsScope): (server: string, zones: string, view: string) => ServerCounters {
  const common = ['server', 'zones', 'view']
  const typed = ['server', 'type', 'zones', 'view']
  const requests = metrics.counter('coredns_cache_requests_total', 'The count of cache requests.', common)
  const misses = metrics.counter(
    'coredns_cache_misses_total',
    'The count of cache misses. Deprecated, derive misses from cache hits/requests counters.',
    common,
  )
  const prefetches = metrics.counter('coredns_cache_prefetch_total', 'The number of times the cache has prefetched a cached item.', common)
  const drops = metrics.counter(
    'coredns_cache_drops_total',
    'The number responses that are not cached, because the reply is malformed.',
    common,
  )
  const stale = metrics.counter('coredns_cache_served_stale_total', 'The number of requests served from stale cache entries.', common)
  const hits = metrics.counter('coredns_cache_hits_total', 'The count of cache hits.', typed)
  const evictions = metrics.counter('coredns_cache_evictions_total', 'The count of cache evictions.', typed)
  const entries = metrics.gauge('coredns_cache_entries', 'The number of elements in the cache.', typed)
  return (server, zones, view) => {
    // Only when counted first does CoreDNS show a series, so children are made as late.
    const counter = (make: () => Counter): Counter => {
      let made: Counter | undefined
      return {
        inc(by) {
          made ??= make()
          made.inc(by)
        },
      }
    }
    const gauge = (make: () => Gauge): Pick<Gauge, 'set'> => {
      let made: Gauge | undefined
      return {
        set(value) {
          made ??= make()
          made.set(value)
        },
      }
    }
    return {
      requests: counter(() => requests.with(server, zones, view)),
      misses: counter(() => misses.with(server, zones, view)),
      prefetches: counter(() => prefetches.with(server, zones, view)),
      drops: counter(() => drops.with(server, zones, view)),
      stale: counter(() => stale.with(server, zones, view)),
      hits: {
        success: counter(() => hits.with(server, 'success', zones, view)),
        denial: counter(() => hits.with(server, 'denial', zones, view)),
      },
      evictions: {
        success: counter(() => evictions.with(server, 'success', zones, view)),
        denial: counter(() => evictions.with(server, 'denial', zones, view)),
      },
      entries: {
        success: gauge(() => entries.with(server, 'success', zones, view)),
        denial: gauge(() => entries.with(server, 'denial', zones, view)),
      },
    }
  }
}
