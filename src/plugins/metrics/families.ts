/** The metric families that count queries: names, labels and buckets are CoreDNS's. */
import type { MetricsScope } from '../contract.js'

/** 0.25 ms to 8 s. */
export const TIME_BUCKETS: readonly number[] = Array.from({ length: 16 }, (_, n) => 0.00025 * 2 ** n)
export const SIZE_BUCKETS: readonly number[] = [0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16e3, 32e3, 48e3, 64e3]

/** 0.25 ms to 2.5 s; those of `health`. */
const HEALTH_BUCKETS: readonly number[] = [0, 1, 2, 3, 4].map((n) => 0.00025 * 10 ** n)

const ZONE = ['server', 'zone', 'view'] as const

export type Families = ReturnType<typeof families>

export const families = (scope: MetricsScope) => ({
  requests: scope.counter('coredns_dns_requests_total', 'Queries by zone, protocol, address family and type.', [
    ...ZONE,
    'proto',
    'family',
    'type',
  ]),
  duration: scope.histogram('coredns_dns_request_duration_seconds', 'Time in seconds from query to reply, by zone.', ZONE, TIME_BUCKETS),
  requestSize: scope.histogram(
    'coredns_dns_request_size_bytes',
    'Size of queries in octets, by zone and protocol.',
    [...ZONE, 'proto'],
    SIZE_BUCKETS,
  ),
  dnssecOk: scope.counter('coredns_dns_do_requests_total', 'Queries with the DO bit, by zone.', ZONE),
  responseSize: scope.histogram(
    'coredns_dns_response_size_bytes',
    'Size of replies in octets before compression, by zone and protocol.',
    [...ZONE, 'proto'],
    SIZE_BUCKETS,
  ),
  responses: scope.counter('coredns_dns_responses_total', 'Replies by zone, rcode and plugin.', [...ZONE, 'rcode', 'plugin']),
  panics: scope.counter('coredns_panics_total', 'Crashes of a handler that cost one answer.', []),
  enabled: scope.gauge('coredns_plugin_enabled', 'Always 1; the labels name a plugin in the chain of a server and zone.', [
    ...ZONE,
    'name',
  ]),
})

/** What CoreDNS shows as 0 from the start, whether or not its plugin is in use. */
export function showZeros(scope: MetricsScope): void {
  for (const [name, help] of [
    ['coredns_panics_total', 'Crashes of a handler that cost one answer.'],
    ['coredns_forward_healthcheck_broken_total', 'Queries that found all upstreams unhealthy.'],
    ['coredns_forward_max_concurrent_rejects_total', 'Queries refused because too many were under way.'],
    ['coredns_health_request_failures_total', 'Checks of our own health endpoint that failed.'],
    ['coredns_local_localhost_requests_total', 'Queries for names below localhost or that begin with it.'],
    ['coredns_reload_failed_total', 'Reloads that were given up.'],
  ] as const)
    scope.counter(name, help, []).with().inc(0)
  scope.gauge('coredns_hosts_reload_timestamp_seconds', 'When the hosts file was last read, in seconds since 1970.', []).with()
  scope
    .histogram(
      'coredns_health_request_duration_seconds',
      'Time in seconds that the check of our own health endpoint took.',
      [],
      HEALTH_BUCKETS,
    )
    .with()
}
