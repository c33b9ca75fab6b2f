/** The live source: one reflector per resource, one store. */
import type { Clock, Logger, MetricsScope, Source } from '../../../src/plugins/contract.js'
import type { ClusterRecord } from '../objects.js'
import type { SourceOptions } from '../options.js'
import type { ApiAccess } from './access.js'
import { ApiClient, type ClientLimits, clientMetrics } from './client.js'
import { SnapshotKeeper } from './keeper.js'
import { Limiter } from './limiter.js'
import { Pace } from './pace.js'
import { REFLECTOR_TIMES, Reflector, type ReflectorTimes } from './reflector.js'
import { resourcesFor } from './resources.js'
import { ProgrammingLatency, ResourceSink } from './sink.js'
import { identityOf } from './snapshot.js'
import { ClusterStore } from './store.js'

export interface ApiSourceOptions {
  readonly key: string
  readonly options: SourceOptions
  /** Opened at the start, which fails with it. */
  readonly access: () => Promise<ApiAccess>
  readonly log: Logger
  readonly clock: Clock
  readonly metrics: MetricsScope
  /** For tests. */
  readonly times?: ReflectorTimes
  readonly limits?: ClientLimits
}

const LIMITS: ClientLimits = { connect: 5000, head: 30_000, idle: 40_000 }

export function apiSource(o: ApiSourceOptions): Source<ClusterRecord> {
  let store: ClusterStore | undefined
  let client: ApiClient | undefined
  let reflectors: Reflector[] = []
  let keeper: SnapshotKeeper | undefined
  let pace: Pace | undefined
  const reopened = o.metrics.counter(
    'coredns_kubernetes_watch_reopened_total',
    'Watches opened in place of another, by resource and why: closed by the server, failed, silent, or stalled (another one brought news).',
    ['resource', 'reason'],
  )
  const latency = new ProgrammingLatency(o.metrics, o.clock, o.log)

  const start = async (emit: (part: readonly ClusterRecord[]) => void) => {
    const target = new ClusterStore(emit, o.clock)
    store = target
    const paced = new Pace(() => target.flush(), o.clock)
    pace = paced
    const access = await o.access()
    if (o.options.snapshot !== undefined) {
      const identity = identityFor(access, o.options)
      keeper = new SnapshotKeeper(o.options.snapshot, identity, target, o.log, o.clock, o.metrics)
      await keeper.restore()
    }
    const api = new ApiClient(access, o.limits ?? LIMITS, clientMetrics(o.metrics), o.clock, new Limiter(o.options, o.clock))
    client = api
    const resources = resourcesFor(o.options)
    const missing = new Set(resources)
    const reflector = (resource: (typeof resources)[number]) => {
      const sink = new ResourceSink({ resource, store: target, pace: paced, needs: o.options.needs, log: o.log, latency })
      const onListed = () => {
        if (missing.size === 0) return
        missing.delete(resource)
        if (missing.size > 0) return
        target.setSynced()
        paced.now()
        keeper?.live()
      }
      return new Reflector({
        resource,
        client: api,
        sink,
        log: o.log,
        times: o.times ?? REFLECTOR_TIMES,
        reopened: (reason) => reopened.with(resource.name, reason),
        onListed,
      })
    }
    reflectors = resources.map(reflector)
    for (const r of reflectors) r.start()
  }

  return {
    key: o.key,
    start,
    snapshot: () => store?.snapshot() ?? [],
    remark() {
      const denied = [...(client?.denied.values() ?? [])].map((line) => `kubernetes: ${line}`)
      const lines = [keeper?.remark() ?? [], denied].flat()
      return lines.length === 0 ? undefined : lines.join('\n')
    },
    async stop() {
      await Promise.all(reflectors.map((r) => r.stop()))
      pace?.cancel()
      client?.close()
      await keeper?.stop()
    },
  }
}

function identityFor(access: ApiAccess, { needs, labels, namespaceLabels }: SourceOptions): string {
  return identityOf([access.base.href, access.authority(), needs, labels?.text ?? '', namespaceLabels?.text ?? ''])
}
