/**
 * Objects of the Kubernetes API, cut down to the records that replicas take. What an object must have is checked here, for API and
 * manifests alike: one bad object costs one object.
 */
import { isIP } from 'node:net'
import type { NamespacePut, PodPut, PortRecord, ServiceImportPut, ServicePut, SlicePut } from '../objects.js'
import type { SourceNeeds } from '../options.js'
import { MCS_SERVICE_LABEL } from './resources.js'

/** What is wrong with an object; `path` leads to the member. */
export class PackError extends Error {
  readonly code = 'KUBE_OBJECT'
  readonly path: readonly (string | number)[]
  constructor(path: readonly (string | number)[], message: string) {
    super(`${path.map((step, i) => (typeof step === 'number' ? `[${step}]` : i === 0 ? step : `.${step}`)).join('')}: ${message}`)
    this.path = path
  }
}

type Path = readonly (string | number)[]
type Raw = Readonly<Record<string, unknown>>

export interface PackedMeta {
  readonly namespace: string
  readonly name: string
  readonly labels: Readonly<Record<string, unknown>>
  readonly annotations: Readonly<Record<string, unknown>>
  /** deletionTimestamp is set. */
  readonly terminating: boolean
}

/** `namespaced`: a namespace left out is "default", as kubectl takes it. */
export function packMeta(object: unknown, namespaced: boolean): PackedMeta {
  const metadata = member(record(object, []), 'metadata', [])
  const name = text(metadata, 'name', ['metadata'])
  if (name === '') throw new PackError(['metadata', 'name'], 'missing')
  return {
    name,
    namespace: namespaced ? text(metadata, 'namespace', ['metadata']) || 'default' : '',
    labels: member(metadata, 'labels', ['metadata']),
    annotations: member(metadata, 'annotations', ['metadata']),
    terminating: Boolean(metadata.deletionTimestamp),
  }
}

export function packNamespace({ name }: PackedMeta): NamespacePut {
  return { op: 'put', kind: 'namespace', name }
}

const SERVICE_TYPES = ['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'] as const

export function packService(object: unknown, { namespace, name }: PackedMeta): ServicePut {
  const spec = member(record(object, []), 'spec', [])
  const type = text(spec, 'type', ['spec']) || 'ClusterIP'
  const known = SERVICE_TYPES.find((t) => t === type)
  if (known === undefined) throw new PackError(['spec', 'type'], `unknown type ${JSON.stringify(type)}`)
  const clusterIP = text(spec, 'clusterIP', ['spec'])
  const listed = texts(spec, 'clusterIPs', ['spec'])
  const all = listed.length > 0 ? listed : [clusterIP]
  const addresses = all.filter((address) => address !== '' && address !== 'None')
  for (const address of addresses) checkAddress(address, ['spec', listed.length > 0 ? 'clusterIPs' : 'clusterIP'])
  const externalName = text(spec, 'externalName', ['spec'])
  const external = externals(object, spec)
  return {
    op: 'put',
    kind: 'service',
    namespace,
    name,
    type: known,
    ...(addresses.length > 0 && { addresses }),
    ...(all[0] === 'None' && { headless: true as const }),
    ...(known === 'ExternalName' && { externalName }),
    ...ports(spec, ['spec']),
    ...(external.length > 0 && { external }),
  }
}

function externals(object: unknown, spec: Raw): string[] {
  const status = member(record(object, []), 'status', [])
  const balancer = member(status, 'loadBalancer', ['status'])
  const path = ['status', 'loadBalancer']
  const ingress = list(balancer, 'ingress', path).map((entry, i) => {
    const at = [...path, 'ingress', i]
    const point = record(entry, at)
    return text(point, 'ip', at) || text(point, 'hostname', at)
  })
  return [...texts(spec, 'externalIPs', ['spec']), ...ingress].filter((address) => address !== '')
}

/** The one or two records of an EndpointSlice; none if it belongs to no service or nobody asked for its kind. */
export function packSlice(object: unknown, meta: PackedMeta, needs: SourceNeeds): SlicePut[] {
  const { namespace, name, labels } = meta
  const service = labels['kubernetes.io/service-name']
  const imported = labels[MCS_SERVICE_LABEL]
  const plain = needs.endpoints && typeof service === 'string' && service !== ''
  const multi = needs.multicluster && typeof imported === 'string' && imported !== ''
  if (!plain && !multi) return []
  const raw = record(object, [])
  // The names of an FQDN slice are no addresses; kube-proxy passes them by, too.
  const skip = text(raw, 'addressType', []) === 'FQDN'
  const endpoints = skip ? [] : list(raw, 'endpoints', []).map((entry, i) => sliceEndpoint(entry, ['endpoints', i]))
  const columns = { ...endpointColumns(endpoints, needs), ...ports(raw, []) }
  const records: SlicePut[] = []
  if (plain) records.push({ op: 'put', kind: 'slice', namespace, name, service, ...columns })
  if (multi) {
    const cluster = labels['multicluster.kubernetes.io/source-cluster']
    const from = typeof cluster === 'string' && cluster !== '' ? { cluster } : {}
    records.push({ op: 'put', kind: 'mcslice', namespace, name, service: imported, ...columns, ...from })
  }
  return records
}

interface Endpoint {
  readonly addresses: readonly string[]
  readonly hostname: string
  readonly pod: string
  readonly zone: string
}

/** A slice's endpoint; without addresses where it is not ready. Of the conditions only `ready` counts, and its absence means yes. */
function sliceEndpoint(entry: unknown, path: Path): Endpoint {
  const endpoint = record(entry, path)
  const ready = member(endpoint, 'conditions', path).ready
  const addresses = ready === false ? [] : texts(endpoint, 'addresses', path)
  checkAddresses(addresses, [...path, 'addresses'])
  return { addresses, hostname: text(endpoint, 'hostname', path), zone: text(endpoint, 'zone', path), pod: podName(endpoint, path) }
}

function podName(endpoint: Raw, path: Path): string {
  const name = text(member(endpoint, 'targetRef', path), 'name', [...path, 'targetRef'])
  return name.length < 64 ? name : ''
}

function endpointColumns(endpoints: readonly Endpoint[], needs: SourceNeeds): Pick<SlicePut, 'addresses' | 'hostnames' | 'pods' | 'zones'> {
  const rows = endpoints.flatMap((endpoint) => endpoint.addresses.map((address) => ({ address, endpoint })))
  if (rows.length === 0) return {}
  const column = (value: (endpoint: Endpoint) => string): string[] | undefined => {
    const values = rows.map((row) => value(row.endpoint))
    return values.some((v) => v !== '') ? values : undefined
  }
  const hostnames = column((e) => e.hostname)
  const pods = needs.podNames ? column((e) => e.pod) : undefined
  const zones = needs.zones ? column((e) => e.zone) : undefined
  return { addresses: rows.map((row) => row.address), ...(hostnames && { hostnames }), ...(pods && { pods }), ...(zones && { zones }) }
}

/** An Endpoints object: one record, or one per subset where their ports differ. */
export function packEndpoints(object: unknown, { namespace, name }: PackedMeta, needs: SourceNeeds): SlicePut[] {
  if (!needs.endpoints) return []
  const groups = new Map<string, { endpoints: Endpoint[]; ports: { ports?: readonly PortRecord[] } }>()
  list(record(object, []), 'subsets', []).forEach((entry, i) => {
    const path = ['subsets', i]
    const subset = record(entry, path)
    const found = ports(subset, path)
    const key = JSON.stringify(found)
    const group = groups.get(key) ?? { endpoints: [], ports: found }
    groups.set(key, group)
    list(subset, 'addresses', path).forEach((address, j) => void group.endpoints.push(subsetEndpoint(address, [...path, 'addresses', j])))
  })
  const parts = [...groups.values()]
  if (parts.length === 0) return [{ op: 'put', kind: 'endpoints', namespace, name, service: name }]
  return parts.map((part, i) => ({
    op: 'put',
    kind: 'endpoints',
    namespace,
    name: parts.length === 1 ? name : `${name}/${i}`,
    service: name,
    ...endpointColumns(part.endpoints, needs),
    ...part.ports,
  }))
}

function subsetEndpoint(entry: unknown, path: Path): Endpoint {
  const raw = record(entry, path)
  const ip = text(raw, 'ip', path)
  checkAddress(ip, [...path, 'ip'])
  return { addresses: [ip], hostname: text(raw, 'hostname', path), zone: '', pod: podName(raw, path) }
}

/** undefined: the pod has no name now. One without an address, or that is on its way out. */
export function packPod(object: unknown, meta: PackedMeta, withLabels: boolean): PodPut | undefined {
  const address = text(member(record(object, []), 'status', []), 'podIP', ['status'])
  if (address === '') return undefined
  checkAddress(address, ['status', 'podIP'])
  const labels = withLabels ? strings(meta.labels) : {}
  const kept = Object.keys(labels).length > 0 ? { labels } : {}
  return { op: 'put', kind: 'pod', namespace: meta.namespace, name: meta.name, address, ...kept }
}

export function packServiceImport(object: unknown, { namespace, name }: PackedMeta): ServiceImportPut {
  const spec = member(record(object, []), 'spec', [])
  const addresses = texts(spec, 'ips', ['spec']).filter((address) => address !== '')
  checkAddresses(addresses, ['spec', 'ips'])
  return {
    op: 'put',
    kind: 'serviceimport',
    namespace,
    name,
    ...(text(spec, 'type', ['spec']) === 'Headless' && { headless: true as const }),
    ...(addresses.length > 0 && { addresses }),
    ...ports(spec, ['spec']),
  }
}

/** Labels as selectors want them: what is no text is left out. */
export function strings(labels: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}

function ports(raw: Raw, path: Path): { ports?: readonly PortRecord[] } {
  const found = list(raw, 'ports', path).map((entry, i): PortRecord => {
    const at = [...path, 'ports', i]
    const port = record(entry, at)
    const number = port.port ?? -1
    if (typeof number !== 'number' || !Number.isInteger(number) || number < -1 || number > 65_535) {
      throw new PackError([...at, 'port'], `expected a number from 1 to 65535, found ${JSON.stringify(number)}`)
    }
    return { name: text(port, 'name', at), protocol: text(port, 'protocol', at) || 'TCP', port: number }
  })
  return found.length > 0 ? { ports: found } : {}
}

function checkAddress(address: string, path: Path): void {
  if (isIP(address) === 0) throw new PackError(path, `${JSON.stringify(address)} is no IP address`)
}

function checkAddresses(addresses: readonly string[], path: Path): void {
  for (let i = 0; i < addresses.length; i++) if (isIP(addresses[i]!) === 0) checkAddress(addresses[i]!, [...path, i])
}

function record(value: unknown, path: Path): Raw {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new PackError(path, 'expected an object')
  return value as Raw
}

/** A member that is an object; left out or null: an empty one. */
function member(raw: Raw, name: string, path: Path): Raw {
  const value = raw[name]
  return value === undefined || value === null ? NOTHING : record(value, [...path, name])
}
const NOTHING: Raw = {}

function list(raw: Raw, name: string, path: Path): readonly unknown[] {
  const value = raw[name]
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw new PackError([...path, name], 'expected a list')
  return value
}

function text(raw: Raw, name: string, path: Path): string {
  const value = raw[name]
  if (value === undefined || value === null) return ''
  if (typeof value !== 'string') throw new PackError([...path, name], `expected text, found ${JSON.stringify(value)?.slice(0, 40)}`)
  return value
}

function texts(raw: Raw, name: string, path: Path): readonly string[] {
  return list(raw, name, path).map((value, i) => {
    if (typeof value !== 'string') throw new PackError([...path, name, i], `expected text, found ${JSON.stringify(value)?.slice(0, 40)}`)
    return value
  })
}
