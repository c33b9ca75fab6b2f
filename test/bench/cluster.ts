/** The objects of a cluster for benches, as large as an API server's are: with managed fields, labels and references. */

/** An object with its members in the API's order; `metadata.resourceVersion` is filled in where it is sent. */
export interface ApiObject {
  readonly metadata: { readonly name: string; readonly namespace?: string; resourceVersion: string; readonly [member: string]: unknown }
  readonly [member: string]: unknown
}

export interface ClusterSize {
  /** Services of type ClusterIP, each with a slice of ten endpoints. */
  readonly services: number
  /** Headless services: how many, and the endpoints of each (slices of 100). */
  readonly headless: readonly { readonly count: number; readonly endpoints: number }[]
}

export const SIZES: Readonly<Record<string, ClusterSize>> = {
  large: { services: 10_000, headless: [{ count: 50, endpoints: 100 }] },
  /** What `npm run bench` asks for. */
  speed: { services: 10_000, headless: [{ count: 50, endpoints: 10 }] },
  small: { services: 20, headless: [{ count: 2, endpoints: 3 }] },
  wide: {
    services: 20,
    headless: [
      { count: 1, endpoints: 5000 },
      { count: 1, endpoints: 4000 },
    ],
  },
}

export const NAMESPACES = 50
export const ENDPOINTS = 10
const PER_SLICE = 100

export const serviceName = (i: number): string => `service-${i}`
export const headlessName = (kind: number, i: number): string => `headless-${kind}-${i}`
export const namespaceName = (i: number): string => `namespace-${i % NAMESPACES}`

const dotted = (first: number, i: number): string => `${first}.${i >>> 16}.${(i >>> 8) & 255}.${i & 255}`
/** Cluster address of a service. */
export const clusterAddress = (i: number): string => dotted(96, i)
/** Endpoint `k` of service `i`. */
export const endpointAddress = (i: number, k: number): string => dotted(10, i * ENDPOINTS + k)
/** Endpoint `k` of headless service `i` of a kind. */
export const headlessAddress = (kind: number, i: number, k: number): string => dotted(40 + kind * 10, i * 10_000 + k)

const hex = (seed: number): string => (Math.imul(seed + 1, 0x9e3779b1) >>> 0).toString(16).padStart(8, '0')
const uid = (seed: number): string => `${hex(seed)}-1f0a-4c6e-9a53-${hex(seed + 7)}${hex(seed + 9).slice(4)}`
const CREATED = '2026-01-05T08:15:30Z'

function meta(
  name: string,
  namespace: string | undefined,
  seed: number,
  manager: string,
  fields: unknown,
  more = {},
): ApiObject['metadata'] {
  const managedFields = [{ manager, operation: 'Update', apiVersion: 'v1', time: CREATED, fieldsType: 'FieldsV1', fieldsV1: fields }]
  return {
    name,
    ...(namespace !== undefined && { namespace }),
    uid: uid(seed),
    resourceVersion: '',
    generation: 1,
    creationTimestamp: CREATED,
    ...more,
    managedFields,
  }
}

const SERVICE_FIELDS = {
  'f:metadata': { 'f:annotations': { '.': {}, 'f:example.org/team': {} }, 'f:labels': { '.': {}, 'f:app': {}, 'f:tier': {} } },
  'f:spec': {
    'f:internalTrafficPolicy': {},
    'f:ports': { '.': {}, 'k:{"port":80,"protocol":"TCP"}': { '.': {}, 'f:name': {}, 'f:port': {}, 'f:protocol': {}, 'f:targetPort': {} } },
    'f:selector': {},
    'f:sessionAffinity': {},
    'f:type': {},
  },
}
const SLICE_FIELDS = {
  'f:addressType': {},
  'f:endpoints': {},
  'f:metadata': {
    'f:annotations': { '.': {}, 'f:endpoints.kubernetes.io/last-change-trigger-time': {} },
    'f:generateName': {},
    'f:labels': { '.': {}, 'f:app': {}, 'f:endpointslice.kubernetes.io/managed-by': {}, 'f:kubernetes.io/service-name': {} },
    'f:ownerReferences': { '.': {}, 'k:{"uid":"c2f9e8a1"}': {} },
  },
  'f:ports': {},
}

export function namespaces(): ApiObject[] {
  return Array.from({ length: NAMESPACES }, (_, i) => ({
    metadata: meta(namespaceName(i), undefined, i, 'kubectl', {}, { labels: { 'kubernetes.io/metadata.name': namespaceName(i) } }),
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  }))
}

function service(name: string, namespace: string, seed: number, clusterIP: string): ApiObject {
  const labels = { app: name, tier: 'backend' }
  const more = { labels, annotations: { 'example.org/team': `team-${seed % 20}` } }
  return {
    metadata: meta(name, namespace, seed, 'kubectl-client-side-apply', SERVICE_FIELDS, more),
    spec: {
      ports: [
        { name: 'http', protocol: 'TCP', port: 80, targetPort: 8080 },
        { name: 'metrics', protocol: 'TCP', port: 9100, targetPort: 9100 },
      ],
      selector: { app: name },
      clusterIP,
      clusterIPs: [clusterIP],
      type: 'ClusterIP',
      sessionAffinity: 'None',
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      internalTrafficPolicy: 'Cluster',
    },
    status: { loadBalancer: {} },
  }
}

interface SliceShape {
  readonly service: string
  readonly namespace: string
  readonly name: string
  readonly seed: number
  readonly addresses: readonly string[]
  /** Of the first endpoint; undefined: they have no hostnames. */
  readonly hostnames: number | undefined
}

function slice({ service, namespace, name, seed, addresses, hostnames }: SliceShape): ApiObject {
  const ready = { ready: true, serving: true, terminating: false }
  return {
    metadata: meta(name, namespace, seed, 'kube-controller-manager', SLICE_FIELDS, {
      generateName: `${service}-`,
      labels: {
        app: service,
        'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
        'kubernetes.io/service-name': service,
      },
      annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': CREATED },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Service', name: service, uid: uid(seed), controller: true, blockOwnerDeletion: true }],
    }),
    addressType: 'IPv4',
    endpoints: addresses.map((address, k) => ({
      addresses: [address],
      conditions: { ...ready },
      ...(hostnames !== undefined && { hostname: `${service}-${hostnames + k}` }),
      targetRef: { kind: 'Pod', namespace, name: `${service}-7d9c5b6f4-${hex(seed + k).slice(3)}`, uid: uid(seed + k) },
      nodeName: `node-${k % 7}.example.org`,
      zone: `zone-${k % 3}`,
    })),
    ports: [
      { name: 'http', protocol: 'TCP', port: 8080 },
      { name: 'metrics', protocol: 'TCP', port: 9100 },
    ],
  }
}

const range = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))

export function services({ services: count, headless }: ClusterSize): ApiObject[] {
  const plain = range(count, (i) => service(serviceName(i), namespaceName(i), i, clusterAddress(i)))
  const bare = headless.flatMap(({ count: n }, kind) =>
    range(n, (i) => service(headlessName(kind, i), namespaceName(i), 20_000 + 100 * kind + i, 'None')),
  )
  return [...plain, ...bare]
}

/** The slices of ClusterIP services come first: slice `i` is that of service `i`. */
export function slices({ services: count, headless }: ClusterSize): ApiObject[] {
  const plain = range(count, (i) => {
    const addresses = range(ENDPOINTS, (k) => endpointAddress(i, k))
    const name = serviceName(i)
    return slice({
      service: name,
      namespace: namespaceName(i),
      name: `${name}-${hex(i).slice(3)}`,
      seed: i,
      addresses,
      hostnames: undefined,
    })
  })
  const bare = headless.flatMap(({ count: n, endpoints }, kind) => range(n, (i) => headlessSlices(kind, i, endpoints)).flat())
  return [...plain, ...bare]
}

function headlessSlices(kind: number, i: number, endpoints: number): ApiObject[] {
  const service = headlessName(kind, i)
  return range(Math.ceil(endpoints / PER_SLICE), (s) => {
    const first = s * PER_SLICE
    const addresses = range(Math.min(PER_SLICE, endpoints - first), (k) => headlessAddress(kind, i, first + k))
    // Small ones are like those of a StatefulSet.
    const hostnames = endpoints <= PER_SLICE ? first : undefined
    return slice({ service, namespace: namespaceName(i), name: `${service}-${s}`, seed: 30_000 + first, addresses, hostnames })
  })
}
