/** The counters of `forward`, by CoreDNS's names, and by those that it had before 1.11 beside them, which dashboards still ask for. */

import { rcodeName } from '../../src/dns/index.js'
import type { Counter, Histogram, MetricsScope } from '../../src/plugins/contract.js'

/** 0.25 ms to 8 s, doubling. */
const BUCKETS: readonly number[] = Array.from({ length: 16 }, (_, i) => 0.00025 * 2 ** i)

/** Rcodes as CoreDNS's library names them; others are plain numbers. */
const label = (rcode: number): string => {
  if (rcode === 16) return 'BADSIG'
  if (rcode === 11) return 'DSOTYPENI'
  const name = rcodeName(rcode)
  return name.startsWith('RCODE') ? String(rcode) : name
}

export interface ForwardMetrics {
  readonly broken: Counter
  readonly rejected: Counter
}

export function forwardMetrics(scope: MetricsScope): ForwardMetrics {
  return {
    broken: scope
      .counter('coredns_forward_healthcheck_broken_total', 'Counter of the number of complete failures of the healthchecks.', [])
      .with(),
    rejected: scope
      .counter(
        'coredns_forward_max_concurrent_rejects_total',
        'Counter of the number of queries rejected because the concurrent queries were at maximum.',
        [],
      )
      .with(),
  }
}

export interface UpstreamMetrics {
  /** A reply came, `seconds` after the question was sent. */
  replied(rcode: number, seconds: number): void
  asked(): void
  probeFailed(): void
  /** What to call with whether a kept connection was used. */
  connections(proto: string): (kept: boolean) => void
  ignored(): void
}

export function upstreamMetrics(scope: MetricsScope, to: string): UpstreamMetrics {
  const name = 'forward'
  const duration = scope.histogram(
    'coredns_proxy_request_duration_seconds',
    'Histogram of the time each request took.',
    ['proxy_name', 'to', 'rcode'],
    BUCKETS,
  )
  const failures = scope.counter('coredns_proxy_healthcheck_failures_total', 'Counter of the number of failed healthchecks.', [
    'proxy_name',
    'to',
  ])
  const hits = scope.counter('coredns_proxy_conn_cache_hits_total', 'Counter of connection cache hits per upstream and protocol.', [
    'proxy_name',
    'to',
    'proto',
  ])
  const misses = scope.counter('coredns_proxy_conn_cache_misses_total', 'Counter of connection cache misses per upstream and protocol.', [
    'proxy_name',
    'to',
    'proto',
  ])
  const oldDuration = scope.histogram(
    'coredns_forward_request_duration_seconds',
    'Histogram of the time each request took.',
    ['to', 'rcode'],
    BUCKETS,
  )
  const oldFailures = scope.counter('coredns_forward_healthcheck_failures_total', 'Counter of the number of failed healthchecks.', ['to'])
  const oldRequests = scope.counter('coredns_forward_requests_total', 'Counter of requests made per upstream.', ['to'])
  const oldResponses = scope.counter('coredns_forward_responses_total', 'Counter of responses received per upstream.', ['to', 'rcode'])
  const ignored = scope.counter(
    'coredns_forward_ignored_replies_total',
    'Counter of datagrams and replies that answered no question of ours.',
    ['to'],
  )

  interface PerRcode {
    readonly duration: Histogram
    readonly oldDuration: Histogram
    readonly oldResponses: Counter
  }
  const byRcode = new Map<number, PerRcode>()
  let lastRcode = -1
  let last: PerRcode | undefined
  const perRcode = (rcode: number): PerRcode => {
    if (last !== undefined && rcode === lastRcode) return last
    let counters = byRcode.get(rcode)
    if (counters === undefined) {
      const text = label(rcode)
      counters = {
        duration: duration.with(name, to, text),
        oldDuration: oldDuration.with(to, text),
        oldResponses: oldResponses.with(to, text),
      }
      byRcode.set(rcode, counters)
    }
    lastRcode = rcode
    last = counters
    return counters
  }
  let requests: Counter | undefined
  return {
    replied(rcode, seconds) {
      const counters = perRcode(rcode)
      counters.duration.observe(seconds)
      counters.oldDuration.observe(seconds)
      counters.oldResponses.inc()
    },
    asked() {
      requests ??= oldRequests.with(to)
      requests.inc()
    },
    probeFailed() {
      failures.with(name, to).inc()
      oldFailures.with(to).inc()
    },
    connections(proto) {
      // On their first use: both at once would show a zero where CoreDNS shows nothing.
      let hit: Counter | undefined
      let miss: Counter | undefined
      return (kept) => {
        if (kept) {
          hit ??= hits.with(name, to, proto)
          hit.inc()
        } else {
          miss ??= misses.with(name, to, proto)
          miss.inc()
        }
      }
    },
    ignored: () => ignored.with(to).inc(),
  }
}
