/** Dashboards and alerts written for CoreDNS find what they ask for: every metric of 1.14.7 that belongs to a built plugin, by name, labels and buckets. */
import { afterEach, expect, it, vi } from 'vitest'
import { SlotMetrics } from '../../src/server/metrics.js'
import { startServer } from '../../src/server/testing.js'

const doubling = (first: number, count: number): number[] => Array.from({ length: count }, (_, i) => first * 2 ** i)
const DURATIONS = doubling(0.00025, 16)
const SIZES = [0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16_000, 32_000, 48_000, 64_000]
const REQUESTS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

type Row = readonly [name: string, type: 'counter' | 'gauge' | 'histogram', labels: string, buckets?: readonly number[]]
const TABLE: readonly Row[] = [
  ['coredns_acl_allowed_requests_total', 'counter', 'server view'],
  ['coredns_acl_blocked_requests_total', 'counter', 'server view zone'],
  ['coredns_acl_dropped_requests_total', 'counter', 'server view zone'],
  ['coredns_acl_filtered_requests_total', 'counter', 'server view zone'],
  ['coredns_build_info', 'gauge', 'goversion revision version'],
  ['coredns_cache_drops_total', 'counter', 'server view zones'],
  ['coredns_cache_entries', 'gauge', 'server type view zones'],
  ['coredns_cache_evictions_total', 'counter', 'server type view zones'],
  ['coredns_cache_hits_total', 'counter', 'server type view zones'],
  ['coredns_cache_misses_total', 'counter', 'server view zones'],
  ['coredns_cache_prefetch_total', 'counter', 'server view zones'],
  ['coredns_cache_requests_total', 'counter', 'server view zones'],
  ['coredns_cache_served_stale_total', 'counter', 'server view zones'],
  ['coredns_dns_do_requests_total', 'counter', 'server view zone'],
  ['coredns_dns_https_responses_total', 'counter', 'server status'],
  ['coredns_dns_request_duration_seconds', 'histogram', 'server view zone', DURATIONS],
  ['coredns_dns_request_size_bytes', 'histogram', 'proto server view zone', SIZES],
  ['coredns_dns_requests_total', 'counter', 'family proto server type view zone'],
  ['coredns_dns_response_size_bytes', 'histogram', 'proto server view zone', SIZES],
  ['coredns_dns_responses_total', 'counter', 'plugin rcode server view zone'],
  ['coredns_forward_healthcheck_broken_total', 'counter', ''],
  ['coredns_forward_max_concurrent_rejects_total', 'counter', ''],
  ['coredns_health_request_duration_seconds', 'histogram', '', [0.00025, 0.0025, 0.025, 0.25, 2.5]],
  ['coredns_health_request_failures_total', 'counter', ''],
  ['coredns_hosts_entries', 'gauge', 'hostsfile'],
  ['coredns_hosts_reload_timestamp_seconds', 'gauge', ''],
  ['coredns_kubernetes_dns_programming_duration_seconds', 'histogram', 'service_kind', doubling(0.001, 20)],
  ['coredns_kubernetes_rest_client_rate_limiter_duration_seconds', 'histogram', 'host verb', REQUESTS],
  ['coredns_kubernetes_rest_client_request_duration_seconds', 'histogram', 'host verb', REQUESTS],
  ['coredns_kubernetes_rest_client_requests_total', 'counter', 'code host method'],
  ['coredns_local_localhost_requests_total', 'counter', ''],
  ['coredns_panics_total', 'counter', ''],
  ['coredns_plugin_enabled', 'gauge', 'name server view zone'],
  ['coredns_proxy_conn_cache_hits_total', 'counter', 'proto proxy_name to'],
  ['coredns_proxy_conn_cache_misses_total', 'counter', 'proto proxy_name to'],
  ['coredns_proxy_healthcheck_failures_total', 'counter', 'proxy_name to'],
  ['coredns_proxy_request_duration_seconds', 'histogram', 'proxy_name rcode to', DURATIONS],
  ['coredns_reload_failed_total', 'counter', ''],
  ['coredns_reload_version_info', 'gauge', 'hash value'],
  ['coredns_template_matches_total', 'counter', 'class server type view zone'],
  ['coredns_template_rr_failures_total', 'counter', 'class section server template type view zone'],
  ['coredns_template_template_failures_total', 'counter', 'class section server template type view zone'],
]

/** Port 9 refuses: the API server and the upstream are not there, and need not be. */
const COREFILE = `
.:0 {
    errors
    health localhost:0
    prometheus localhost:0
    reload
    acl {
        allow
    }
    local
    cache
    template IN A example.net {
        answer "{{ .Name }} 60 IN A 192.0.2.1"
    }
    hosts {
        192.0.2.2 example.org
        fallthrough
    }
    kubernetes cluster.local {
        endpoint http://127.0.0.1:9
        startup_timeout 0s
    }
    forward . 127.0.0.1:9
}
https://.:0 {
    whoami
}
`

afterEach(() => vi.restoreAllMocks())

it('declares every metric that CoreDNS has, with its labels and buckets', async () => {
  const seen = new Map<string, Row>()
  const row = (name: string, type: Row[1], labels: readonly string[], buckets?: readonly number[]): void => {
    const sorted = [...labels].sort().join(' ')
    seen.set(name, buckets === undefined ? [name, type, sorted] : [name, type, sorted, buckets])
  }
  const { counter, gauge, histogram } = SlotMetrics.prototype
  vi.spyOn(SlotMetrics.prototype, 'counter').mockImplementation(function (this: SlotMetrics, name, help, labels) {
    row(name, 'counter', labels)
    return counter.call(this, name, help, labels)
  })
  vi.spyOn(SlotMetrics.prototype, 'gauge').mockImplementation(function (this: SlotMetrics, name, help, labels) {
    row(name, 'gauge', labels)
    return gauge.call(this, name, help, labels)
  })
  vi.spyOn(SlotMetrics.prototype, 'histogram').mockImplementation(function (this: SlotMetrics, name, help, labels, buckets) {
    row(name, 'histogram', labels, buckets)
    return histogram.call(this, name, help, labels, buckets)
  })
  const server = await startServer({ corefile: COREFILE })
  try {
    expect(TABLE.map(([name, type, labels, buckets]) => seen.get(name) ?? [name, 'missing', type, labels, buckets])).toEqual(TABLE)
  } finally {
    await server.close()
  }
})
