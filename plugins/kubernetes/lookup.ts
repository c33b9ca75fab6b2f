/** Finds what a request asks for in the index. No DNS records yet: these depend on the type asked for. */
import { addressText, dashed, isDashed4, octetsOf, packedAt, packedCount, packedIndexOf, undashed } from './address.js'
import type { ClusterIndex } from './cluster-index.js'
import { type Port, SERVICE, type ServiceEntry, type Slice } from './entries.js'
import type { KubernetesOptions } from './options.js'
import type { Request } from './request.js'

/** One address with the port and the labels that an SRV record needs. */
export interface Found {
  readonly octets: string
  /** -1: none, so no SRV record. */
  readonly port: number
  /** Labels before those of the service or pod: endpoint and cluster. Only filled in for SRV. */
  readonly labels: readonly string[]
}

/** `absent`: there is no such name. `empty`: there is, with no records of its own or none that fit. */
export type Outcome =
  | { readonly kind: 'absent' }
  | { readonly kind: 'empty' }
  | { readonly kind: 'external'; readonly target: string }
  | { readonly kind: 'found'; readonly found: readonly Found[] }

export const ABSENT: Outcome = { kind: 'absent' }
export const EMPTY: Outcome = { kind: 'empty' }
const NO_LABELS: readonly string[] = []

export interface LookupOptions extends Pick<KubernetesOptions, 'namespaces' | 'pods' | 'endpointPodNames' | 'ignoreEmptyService'> {}

/** What a look-up works on. `srv`: every matching port counts and labels are wanted; else each address comes once. */
interface Search {
  readonly index: ClusterIndex
  readonly options: LookupOptions
  readonly request: Request
  readonly srv: boolean
  readonly found: Found[]
}

export function namespaceExposed(index: ClusterIndex, options: LookupOptions, namespace: string): boolean {
  return (options.namespaces === undefined || options.namespaces.has(namespace)) && index.hasNamespace(namespace)
}

export function lookUp(index: ClusterIndex, options: LookupOptions, request: Request, multicluster: boolean, srv: boolean): Outcome {
  if (request.kind === '') return EMPTY
  if (!namespaceExposed(index, options, request.namespace)) return ABSENT
  if (request.kind === 'pod') return findPod(index, options, request)
  if (request.service === '') return EMPTY
  const { namespace, service } = request
  const entry = multicluster ? index.serviceImport(namespace, service) : index.service(namespace, service)
  if (entry === undefined) return ABSENT
  return findService({ index, options, request, srv, found: [] }, entry, multicluster)
}

function findService(search: Search, entry: ServiceEntry, multicluster: boolean): Outcome {
  const { request, options, found } = search
  const headless = entry.form === SERVICE.headless
  const external = entry.form === SERVICE.external
  if (options.ignoreEmptyService && !headless && !external && entry.endpointCount === 0) return ABSENT
  // A cluster address has no zone; to answer with it would drop the client's wish in silence.
  if (request.zone !== '' && !headless) return ABSENT
  if (external) return findExternal(entry, request)
  if (headless || request.endpoint !== '') {
    findEndpoints(search, entry, request.zone)
    if (found.length === 0 && request.prefer) findEndpoints(search, entry, '')
    if (found.length > 0) return { kind: 'found', found }
    return request.zone === '' ? ABSENT : EMPTY
  }
  // The stand-in port of a service without ports is CoreDNS's; its service imports have none.
  if (multicluster && entry.ports[0]!.port < 0) return ABSENT
  const ports = matchingPorts(entry.ports, request)
  if (ports.length === 0) return ABSENT
  for (const port of search.srv ? ports : ports.slice(0, 1))
    for (let i = 0; i < packedCount(entry.addresses); i++)
      found.push({ octets: packedAt(entry.addresses, i), port: port.port, labels: NO_LABELS })
  return { kind: 'found', found }
}

/** An alias has no endpoints and no ports; an address in place of a name makes none. */
function findExternal(entry: ServiceEntry, request: Request): Outcome {
  if (request.endpoint !== '' || request.port !== '' || request.protocol !== '') return ABSENT
  if (entry.externalName === '' || octetsOf(entry.externalName) !== '') return ABSENT
  return { kind: 'external', target: entry.externalName }
}

function findEndpoints(search: Search, entry: ServiceEntry, zone: string): void {
  const { request } = search
  const several = entry.slices.length > 1
  const seen = several ? new Set<string>() : undefined
  if (request.endpoint === '') {
    for (const slice of entry.effective) addSlice(search, slice, zone, undefined, seen)
    return
  }
  const asked = undashed(request.endpoint)
  // Slices of other clusters stand in no table.
  const indexed = several && !entry.slices[0]!.imported
  const slices = indexed ? search.index.slicesWithEndpoint(entry, request.endpoint, asked) : entry.effective
  for (const slice of slices) {
    if (request.cluster !== slice.details.cluster.toLowerCase()) continue
    addSlice(search, slice, zone, endpointsNamed(slice, request.endpoint, asked, search.options.endpointPodNames), seen)
  }
}

/** `only`: the endpoints that count, by their numbers. `seen`: what other slices brought; an endpoint that moves stands in two for a while. */
function addSlice(search: Search, slice: Slice, zone: string, only: readonly number[] | undefined, seen: Set<string> | undefined): void {
  const { request, options, found, srv } = search
  const ports = matchingPorts(slice.ports, request)
  if (ports.length === 0) return
  const count = only === undefined ? slice.count : only.length
  for (let n = 0; n < count; n++) {
    const i = only === undefined ? n : only[n]!
    if (zone !== '' && slice.details.zones?.[i] !== zone) continue
    const octets = slice.address(i)
    if (!srv) {
      if (seen !== undefined && seen.size === seen.add(octets).size) continue
      found.push({ octets, port: ports[0]!.port, labels: NO_LABELS })
      continue
    }
    const labels = endpointLabels(slice, i, octets, options.endpointPodNames)
    for (const port of ports) {
      if (seen !== undefined && seen.size === seen.add(`${labels[0]} ${octets} ${port.port} ${port.name}`).size) continue
      found.push({ octets, port: port.port, labels })
    }
  }
}

/** Numbers of the endpoints that go by this label, found without making their names: a slice may have a thousand. `asked`: its address or ''. */
function endpointsNamed(slice: Slice, label: string, asked: string, podNames: boolean): readonly number[] {
  const named: number[] = []
  if (slice.details.hostnames !== undefined || (podNames && slice.details.pods !== undefined))
    for (let i = 0; i < slice.count; i++) {
      const given = givenName(slice, i, podNames)
      if (isFolded(given, label)) named.push(i)
    }
  if (asked === '') return named
  for (let i = packedIndexOf(slice.addresses, asked); i >= 0; i = packedIndexOf(slice.addresses, asked, i + 1))
    if (givenName(slice, i, podNames) === '') named.push(i)
  return named
}

/** Whether `text` folds to `label`. From the end, where the names of one service differ; and nothing is made for it. */
function isFolded(text: string, label: string): boolean {
  if (text.length !== label.length) return false
  for (let i = text.length - 1; i >= 0; i--) {
    const unit = text.charCodeAt(i)
    if ((unit >= 0x41 && unit <= 0x5a ? unit + 0x20 : unit) !== label.charCodeAt(i)) return false
  }
  return true
}

/** The hostname, or with `endpoint_pod_names` the pod's name; "" where only the address names an endpoint. */
function givenName(slice: Slice, i: number, podNames: boolean): string {
  const hostname = slice.details.hostnames?.[i] ?? ''
  return hostname === '' && podNames ? (slice.details.pods?.[i] ?? '') : hostname
}

/** First label of an endpoint's name. */
export function endpointName(slice: Slice, i: number, octets: string, podNames: boolean): string {
  return givenName(slice, i, podNames) || dashed(octets)
}

function endpointLabels(slice: Slice, i: number, octets: string, podNames: boolean): readonly string[] {
  const name = endpointName(slice, i, octets, podNames)
  return slice.details.cluster === '' ? [name] : [name, slice.details.cluster]
}

function matchingPorts(ports: readonly Port[], request: Request): readonly Port[] {
  const { port, protocol } = request
  if (port === '' && protocol === '') return ports
  return ports.filter((p) => (port === '' || p.name === port) && (protocol === '' || p.protocol === protocol))
}

function findPod(index: ClusterIndex, options: LookupOptions, request: Request): Outcome {
  if (options.pods === 'disabled') return ABSENT
  const label = request.service
  if (label === '') return EMPTY
  // A dot inside a label is no separator of address parts.
  if (label.includes('.')) return ABSENT
  const text = label.replaceAll('-', isDashed4(label) ? '.' : ':')
  const octets = octetsOf(text)
  if (octets === '') return ABSENT
  const one: Found = { octets, port: 0, labels: NO_LABELS }
  if (options.pods === 'insecure') return { kind: 'found', found: [one] }
  // Only the one spelling that the API uses names a pod.
  if (addressText(octets) !== text) return ABSENT
  const pods = index.podsWithAddress(octets).filter((pod) => pod.namespace === request.namespace)
  return pods.length === 0 ? ABSENT : { kind: 'found', found: [one] }
}
