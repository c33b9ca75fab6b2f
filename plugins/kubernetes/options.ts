/** Options of the kubernetes directive: parsed alike by the serving half and the control half. */
import { type Directive, parseDuration, parseInteger, quote, type SetupContext, zonesOrDefault } from '../../src/plugins/contract.js'
import { parseSelector, type Selector } from './selector.js'

export type { Selector }

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
  /** `PodPut.labels`; with `pods verified` in a block that has `metadata`. */
  readonly podLabels: boolean
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
  /** Where the objects are kept over a restart; undefined: nowhere. `maxAge` in milliseconds. */
  readonly snapshot?: { readonly path: string; readonly maxAge: number }
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
  /** Milliseconds between two NOTIFY messages about a zone; undefined: none are sent. */
  readonly notifyInterval: number | undefined
}

/** Parses all uses of the directive in one block. Throws CorefileError, or Error where CoreDNS names no place. */
export function parseOptions(uses: readonly Directive[], ctx: OptionsContext): KubernetesOptions {
  const use = uses[0]
  if (use === undefined) throw ctx.fail('no use of the directive')
  if (uses.length > 1) throw ctx.fail('this plugin can only be used once per Server Block', uses[1])
  const zones = zonesOrDefault(words(use), ctx.block.zones, (arg, error) => ctx.warn(`zone '${arg}' is left out: ${error.message}`, use))
  const primaryZone = zones.find((zone) => !isReverse(zone))
  if (primaryZone === undefined) throw ctx.fail('non-reverse zone name must be used', use)
  const draft = new Draft(zones)
  for (const option of use.block ?? []) {
    const read = Object.hasOwn(READERS, option.name) ? READERS[option.name] : undefined
    if (read === undefined) throw ctx.error(`unknown property '${option.name}'`, option, Object.keys(READERS))
    read(draft, option, ctx)
  }
  return finish(draft, primaryZone, use, ctx)
}

/** Whether the zone lies below in-addr.arpa or ip6.arpa. */
export const isReverse = (zone: string): boolean => zone.endsWith('.in-addr.arpa.') || zone.endsWith('.ip6.arpa.')

type Reader = (draft: Draft, option: Directive, ctx: OptionsContext) => void

/** What the options say, before it is known whether they go together. */
class Draft {
  readonly zones: readonly string[]
  endpoint: string | undefined
  tls: { cert: string; key: string; ca: string } | undefined
  kubeconfig: { file: string; context: string } | undefined
  readonly manifests: string[] = []
  readonly namespaces = new Set<string>()
  labels: Selector | undefined
  namespaceLabels: Selector | undefined
  pods: KubernetesOptions['pods'] = 'disabled'
  endpointPodNames = false
  ttl = 5
  endpoints = true
  ignoreEmptyService = false
  fallthrough: readonly string[] | undefined
  multiclusterZones: readonly string[] = []
  zonal = false
  startupTimeout = 5000
  notifyInterval: number | undefined
  qps = 0
  burst = 0
  maxInflight = 0
  snapshot: { path: string; maxAge: number } | undefined
  constructor(zones: readonly string[]) {
    this.zones = zones
  }
}

const words = (directive: Directive): string[] => directive.args.map((arg) => arg.text)

const countError = (option: Directive, ctx: OptionsContext): Error => {
  const last = option.args.at(-1) ?? option
  return ctx.error(`Wrong argument count or unexpected line ending after '${'text' in last ? last.text : last.name}'`, last)
}

/** The arguments, if there are `min`…`max` of them. */
function args(option: Directive, ctx: OptionsContext, min: number, max = Number.POSITIVE_INFINITY): string[] {
  if (option.args.length < min || option.args.length > max) throw countError(option, ctx)
  return words(option)
}

const flag =
  (set: (draft: Draft) => void): Reader =>
  (draft, option, ctx) => {
    args(option, ctx, 0, 0)
    set(draft)
  }

const limit =
  (set: (draft: Draft, value: number) => void): Reader =>
  (draft, option, ctx) => {
    const [text = ''] = args(option, ctx, 1, 1)
    let value: number
    try {
      value = parseInteger(text)
    } catch (error) {
      throw ctx.error(`invalid ${option.name} ${quote(text)}: ${(error as Error).message}`, option.args[0])
    }
    if (value < 0) throw ctx.error(`${option.name} must be >= 0`, option.args[0])
    set(draft, value)
  }

const selector =
  (what: string, set: (draft: Draft, value: Selector) => void): Reader =>
  (draft, option, ctx) => {
    const text = args(option, ctx, 1).join(' ')
    try {
      set(draft, parseSelector(text))
    } catch (error) {
      throw ctx.fail(`unable to parse ${what} selector value: '${text}': ${(error as Error).message}`, option)
    }
  }

/** Gone from CoreDNS for long, found in many clusters still: they say nothing that we would not do anyway. */
const removed =
  (why: string): Reader =>
  (_draft, option, ctx) =>
    ctx.warn(`'${option.name}' is ignored: ${why}`, option)

/** Milliseconds: secondaries that transfer a cluster's zone more often than this do nothing else. */
const SHORTEST_NOTIFY = 1000

/** A duration of at least `least` milliseconds, the last argument of the option. */
function duration(text: string, least: number, option: Directive, ctx: OptionsContext): number {
  let value: number
  try {
    value = parseDuration(text)
  } catch (error) {
    throw ctx.error(`invalid duration for ${option.name}: ${(error as Error).message}`, option.args.at(-1))
  }
  if (value < least) throw ctx.error(`${option.name}: ${text} is too short`, option.args.at(-1))
  return value
}

const READERS: Readonly<Record<string, Reader>> = {
  endpoint(draft, option, ctx) {
    const [url = '', ...more] = args(option, ctx, 1)
    if (more.length > 0) ctx.warn(`Multiple endpoints have been deprecated, only the first specified endpoint '${url}' is used`, option)
    draft.endpoint = url
  },
  tls(draft, option, ctx) {
    const [cert = '', key = '', ca = ''] = args(option, ctx, 3, 3)
    const absolute = (file: string): string => (file === '' ? '' : ctx.path(file))
    draft.tls = { cert: absolute(cert), key: absolute(key), ca: absolute(ca) }
  },
  kubeconfig(draft, option, ctx) {
    const [file = '', context = ''] = args(option, ctx, 1, 2)
    draft.kubeconfig = { file: ctx.path(file), context }
  },
  manifests(draft, option, ctx) {
    for (const path of args(option, ctx, 1)) draft.manifests.push(ctx.path(path))
  },
  snapshot(draft, option, ctx) {
    const [path = '', age = '24h'] = args(option, ctx, 1, 2)
    draft.snapshot = { path: ctx.path(path), maxAge: duration(age, 1, option, ctx) }
  },
  notify(draft, option, ctx) {
    const [interval = '10s'] = args(option, ctx, 0, 1)
    draft.notifyInterval = duration(interval, SHORTEST_NOTIFY, option, ctx)
  },
  apiserver_qps(draft, option, ctx) {
    const [text = ''] = args(option, ctx, 1, 1)
    if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text))
      throw ctx.error(`invalid apiserver_qps ${quote(text)}: strconv.ParseFloat: parsing ${quote(text)}: invalid syntax`, option.args[0])
    draft.qps = Number(text)
    if (draft.qps < 0) throw ctx.error('apiserver_qps must be >= 0', option.args[0])
  },
  apiserver_burst: limit((draft, value) => {
    draft.burst = value
  }),
  apiserver_max_inflight: limit((draft, value) => {
    draft.maxInflight = value
  }),
  namespaces(draft, option, ctx) {
    for (const name of args(option, ctx, 1)) draft.namespaces.add(name)
  },
  labels: selector('label', (draft, value) => {
    draft.labels = value
  }),
  namespace_labels: selector('namespace_label', (draft, value) => {
    draft.namespaceLabels = value
  }),
  pods(draft, option, ctx) {
    const [mode = ''] = args(option, ctx, 1, 1)
    if (mode !== 'disabled' && mode !== 'insecure' && mode !== 'verified')
      throw ctx.fail(`wrong value for pods: ${mode},  must be one of: disabled, verified, insecure`, option)
    draft.pods = mode
  },
  endpoint_pod_names: flag((draft) => {
    draft.endpointPodNames = true
  }),
  ttl(draft, option, ctx) {
    const [text = ''] = args(option, ctx, 1)
    const value = plain(() => parseInteger(text), option, ctx)
    if (value < 0 || value > 3600) throw ctx.error(`ttl must be in range [0, 3600]: ${value}`, option.args[0])
    draft.ttl = value
  },
  noendpoints: flag((draft) => {
    draft.endpoints = false
  }),
  fallthrough(draft, option) {
    draft.fallthrough = zonesOrDefault(words(option), ['.'])
  },
  ignore(draft, option, ctx) {
    const what = option.args[0]?.text
    if (what === undefined) return
    if (what !== 'empty_service') throw ctx.fail(`unable to parse ignore value: '${what}'`, option)
    draft.ignoreEmptyService = true
  },
  multicluster(draft, option) {
    draft.multiclusterZones = zonesOrDefault(words(option), [])
  },
  zonal: flag((draft) => {
    draft.zonal = true
  }),
  startup_timeout(draft, option, ctx) {
    const [text = ''] = args(option, ctx, 1)
    try {
      draft.startupTimeout = parseDuration(text)
    } catch (error) {
      throw ctx.fail(`failed to parse startup_timeout: ${text}, ${(error as Error).message}`, option)
    }
  },
  upstream: removed('names outside the cluster always go through the whole server'),
  resyncperiod: removed('watches need no resync'),
  transfer: removed('zone transfers are set up by the transfer plugin'),
}

/** Runs a reader of arguments whose words CoreDNS passes on without a place. */
function plain<T>(read: () => T, option: Directive, ctx: OptionsContext): T {
  try {
    return read()
  } catch (error) {
    throw ctx.fail((error as Error).message, option)
  }
}

function finish(draft: Draft, primaryZone: string, use: Directive, ctx: OptionsContext): KubernetesOptions {
  if (draft.namespaces.size > 0 && draft.namespaceLabels !== undefined)
    throw ctx.error('namespaces and namespace_labels cannot both be set', use)
  for (const zone of draft.multiclusterZones)
    if (!draft.zones.includes(zone))
      throw ctx.error(`is not authoritative for the multicluster zone ${zone} (authoritative zones: [${draft.zones.join(' ')}])`, use)
  if (draft.zonal && !draft.endpoints) throw ctx.error('zonal requires the endpoint cache; remove noendpoints', use)
  return {
    zones: draft.zones,
    primaryZone,
    source: {
      access: access(draft, use, ctx),
      needs: {
        endpoints: draft.endpoints,
        pods: draft.pods === 'verified',
        podNames: draft.endpointPodNames,
        podLabels: draft.pods === 'verified' && ctx.block.directives.some(({ name }) => name === 'metadata'),
        zones: draft.zonal,
        multicluster: draft.multiclusterZones.length > 0,
      },
      labels: draft.labels,
      namespaceLabels: draft.namespaceLabels,
      qps: draft.qps,
      burst: draft.burst,
      maxInflight: draft.maxInflight,
      ...(draft.snapshot && { snapshot: draft.snapshot }),
    },
    namespaces: draft.namespaces.size > 0 ? draft.namespaces : undefined,
    pods: draft.pods,
    endpointPodNames: draft.endpointPodNames,
    ttl: draft.ttl,
    ignoreEmptyService: draft.ignoreEmptyService,
    fallthrough: draft.fallthrough,
    multiclusterZones: draft.multiclusterZones,
    zonal: draft.zonal,
    startupTimeout: draft.startupTimeout,
    notifyInterval: draft.notifyInterval,
  }
}

/** A kubeconfig overrides `endpoint`, as in CoreDNS; manifests take no API server beside them. */
function access(draft: Draft, use: Directive, ctx: OptionsContext): Access {
  if (draft.manifests.length > 0) {
    if (draft.endpoint !== undefined || draft.kubeconfig !== undefined || draft.tls !== undefined)
      throw ctx.error('manifests cannot be combined with endpoint, tls or kubeconfig', use)
    if (draft.snapshot !== undefined) throw ctx.error('manifests need no snapshot', use)
    return { kind: 'manifests', paths: draft.manifests }
  }
  if (draft.kubeconfig !== undefined) return { kind: 'kubeconfig', ...draft.kubeconfig }
  if (draft.endpoint !== undefined) return { kind: 'endpoint', url: draft.endpoint, tls: draft.tls }
  return { kind: 'cluster' }
}

/** Equal for uses that can share one source: `Source.key` and the key of the replica. */
export function sourceKey(source: SourceOptions): string {
  const { access, needs, labels, namespaceLabels, qps, burst, maxInflight, snapshot } = source
  return `kubernetes:${JSON.stringify([access, needs, labels?.text ?? null, namespaceLabels?.text ?? null, qps, burst, maxInflight, snapshot ?? null])}`
}
