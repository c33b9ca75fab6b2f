/** From the objects of one resource to the records of the store; measures how late slices are. */
import type { Clock, Histogram, Logger, MetricFamily, MetricsScope } from '../../../src/plugins/contract.js'
import type { ObjectPut } from '../objects.js'
import type { SourceNeeds } from '../options.js'
import type { Pace } from './pace.js'
import { PackError, type PackedMeta, packMeta, packNamespace, packPod, packService, packServiceImport, packSlice } from './pack.js'
import type { ObjectSink } from './reflector.js'
import type { Resource } from './resources.js'
import type { ClusterStore } from './store.js'
import type { RawObject } from './watch.js'

export interface SinkOptions {
  readonly resource: Resource
  readonly store: ClusterStore
  readonly pace: Pace
  readonly needs: SourceNeeds
  readonly log: Logger
  readonly latency: ProgrammingLatency
}

export class ResourceSink implements ObjectSink {
  readonly #o: SinkOptions

  constructor(options: SinkOptions) {
    this.#o = options
  }

  beginList(): void {
    this.#o.store.beginList(this.#o.resource.kinds)
  }

  endList(): void {
    this.#o.store.endList(this.#o.resource.kinds)
  }

  flush(): void {
    this.#o.pace.ask()
  }

  listed(object: RawObject): void {
    this.changed(object)
  }

  changed(object: RawObject): void {
    const meta = this.#meta(object)
    if (meta === undefined) return
    const { store, resource, latency } = this.#o
    const records = this.#pack(object, meta)
    for (const kind of resource.kinds) {
      const record = records?.find((r) => r.kind === kind)
      if (record !== undefined) store.put(record)
      // Unreadable, or a pod on its way out: it stays what it was until it is gone.
      else if (records === undefined) store.keep(kind, meta.namespace, meta.name)
      else store.delete(kind, meta.namespace, meta.name)
    }
    if (resource.name === 'endpointslices') latency.observe(meta, store)
  }

  removed(object: RawObject): void {
    const meta = this.#meta(object)
    if (meta === undefined) return
    const { store, resource, latency } = this.#o
    for (const kind of resource.kinds) store.delete(kind, meta.namespace, meta.name)
    if (resource.name === 'endpointslices') latency.observe(meta, store)
  }

  #meta(object: RawObject): PackedMeta | undefined {
    try {
      return packMeta(object, this.#o.resource.name !== 'namespaces')
    } catch (error) {
      this.#complain(object, error)
      return undefined
    }
  }

  /** undefined: nothing can be said about the object; []: it has no records. */
  #pack(object: RawObject, meta: PackedMeta): readonly ObjectPut[] | undefined {
    const { resource, needs } = this.#o
    try {
      switch (resource.name) {
        case 'services':
          return [packService(object, meta)]
        case 'namespaces':
          return [packNamespace(meta)]
        case 'endpointslices':
          return packSlice(object, meta, needs)
        case 'serviceimports':
          return [packServiceImport(object, meta)]
        case 'pods': {
          if (meta.terminating) return undefined
          const pod = packPod(object, meta, needs.podLabels)
          return pod === undefined ? [] : [pod]
        }
      }
    } catch (error) {
      this.#complain(object, error)
      return undefined
    }
  }

  #complain({ metadata }: RawObject, error: unknown): void {
    if (!(error instanceof PackError)) throw error
    const name = `${String(metadata?.namespace ?? '')}/${String(metadata?.name ?? '')}`.replace(/^\//, '')
    this.#o.log.warning(`ignoring a bad object of ${this.#o.resource.name}, ${JSON.stringify(name)}: ${error.message}`)
  }
}

const TRIGGER = 'endpoints.kubernetes.io/last-change-trigger-time'

/** `coredns_kubernetes_dns_programming_duration_seconds`: from the change that made a slice change until it can be answered with. */
export class ProgrammingLatency {
  readonly #histogram: MetricFamily<Histogram>
  readonly #clock: Clock
  readonly #log: Logger

  constructor(metrics: MetricsScope, clock: Clock, log: Logger) {
    this.#clock = clock
    this.#log = log
    this.#histogram = metrics.histogram(
      'coredns_kubernetes_dns_programming_duration_seconds',
      'Seconds from the change of a service or pod until its records were served.',
      ['service_kind'],
      Array.from({ length: 20 }, (_, i) => 0.001 * 2 ** i),
    )
  }

  /** Counts only slices that the control plane made (they carry the time) for a service that is known. */
  observe({ namespace, name, labels, annotations }: PackedMeta, store: ClusterStore): void {
    const text = annotations[TRIGGER]
    if (typeof text !== 'string') return
    const headless = store.isHeadless(namespace, String(labels['kubernetes.io/service-name'] ?? ''))
    const trigger = RFC3339.test(text) ? Date.parse(text) : Number.NaN
    if (Number.isNaN(trigger)) {
      this.#log.plain(
        'WARNING',
        `DnsProgrammingLatency cannot be calculated for Endpoints '${namespace}/${name}'; invalid "${TRIGGER}" annotation RFC3339 value of ${JSON.stringify(text)}`,
      )
      return
    }
    if (headless === undefined) return
    const kind = headless ? 'headless_with_selector' : 'cluster_ip'
    this.#histogram.with(kind).observe((this.#clock.now() - trigger) / 1000)
  }
}

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/
