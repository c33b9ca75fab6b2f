/** Options of the kubernetes directive: parsed alike by the serving half and the control half. */
import type { Directive, SetupContext } from '../../src/plugins/contract.js'

/** What both halves' contexts offer to the parser. */
export type OptionsContext = Pick<SetupContext, 'block' | 'error' | 'fail' | 'warn' | 'note' | 'path' | 'checking'>

/** Where the objects come from. */
export type Access =
  | { readonly kind: 'cluster' }
  /** `url` as written; `tls` holds paths made absolute, "" where the argument is "". */
  | {
      readonly kind: 'endpoint'
      readonly url: string
      readonly tls: { readonly cert: string; readonly key: string; readonly ca: string } | undefined
    }
  | { readonly kind: 'kubeconfig'; readonly file: string; readonly context: string }
  /** Files, folders or `kind: List` files, absolute. */
  | { readonly kind: 'manifests'; readonly paths: readonly string[] }

/** A label selector, as the API server takes it and as manifests are filtered. */
export interface Selector {
  /** Canonical text for `labelSelector=`. */
  readonly text: string
  matches(labels: Readonly<Record<string, string>>): boolean
}

/** What a source has to watch and to keep. Services and namespaces always. */
export interface SourceNeeds {
  /** EndpointSlices (and Endpoints of manifests); false with `noendpoints`. */
  readonly endpoints: boolean
  /** Pods; with `pods verified`. */
  readonly pods: boolean
  /** `SlicePut.pods`; with `endpoint_pod_names`. */
  readonly podNames: boolean
  /** `SlicePut.zones`; with `zonal`. */
  readonly zones: boolean
  /** ServiceImports and multi-cluster slices. */
  readonly multicluster: boolean
}

/** All that makes one source differ from another. */
export interface SourceOptions {
  readonly access: Access
  readonly needs: SourceNeeds
  /** Of services, slices, pods. */
  readonly labels: Selector | undefined
  /** Of namespaces (and ServiceImports). */
  readonly namespaceLabels: Selector | undefined
  /** Requests per second, 0: no limit of ours. */
  readonly qps: number
  readonly burst: number
  readonly maxInflight: number
}

export interface KubernetesOptions {
  /** Lower-case presentation form with final dot, in the order written. */
  readonly zones: readonly string[]
  /** The first zone that is not a reverse one. */
  readonly primaryZone: string
  readonly source: SourceOptions
  /** Names under `namespaces`; undefined: all. */
  readonly namespaces: ReadonlySet<string> | undefined
  readonly pods: 'disabled' | 'insecure' | 'verified'
  readonly endpointPodNames: boolean
  /** Seconds, 0…3600. */
  readonly ttl: number
  readonly ignoreEmptyService: boolean
  /** undefined: never; else zones (["."]: all). */
  readonly fallthrough: readonly string[] | undefined
  readonly multiclusterZones: readonly string[]
  readonly zonal: boolean
  /** Milliseconds. */
  readonly startupTimeout: number
}

/** Parses all uses of the directive in one block. Throws CorefileError. */
export function parseOptions(_uses: readonly Directive[], ctx: OptionsContext): KubernetesOptions {
  throw ctx.fail('not built yet')
}

/** Equal for uses that can share one source: `Source.key` and the key of the replica. */
export function sourceKey(source: SourceOptions): string {
  const { access, needs, labels, namespaceLabels, qps, burst, maxInflight } = source
  return `kubernetes:${JSON.stringify([access, needs, labels?.text ?? null, namespaceLabels?.text ?? null, qps, burst, maxInflight])}`
}
