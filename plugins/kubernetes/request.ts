/** What a name below a cluster zone asks for, by the Kubernetes DNS specification and CoreDNS's reading of it. Labels are folded. */
import type { Name } from '../../src/dns/index.js'

export interface Request {
  /** "svc" or "pod"; "" for the zone itself and for `svc` and `pod` right below it. */
  readonly kind: '' | 'svc' | 'pod'
  readonly namespace: string
  /** Name of a service, or a pod's dashed address. "": the namespace itself. */
  readonly service: string
  readonly endpoint: string
  /** Of a multi-cluster endpoint. */
  readonly cluster: string
  /** Without underscore; "" for any. */
  readonly port: string
  readonly protocol: string
  /** Topology zone of a zonal name, else "". */
  readonly zone: string
  /** A zonal name that falls back to all endpoints. */
  readonly prefer: boolean
}

const APEX: Request = {
  kind: '',
  namespace: '',
  service: '',
  endpoint: '',
  cluster: '',
  port: '',
  protocol: '',
  zone: '',
  prefer: false,
}

/** Folded labels of `name` that stand before `zone`, from the left. */
export function labelsBefore(name: Name, zone: Name): string[] {
  const key = name.key
  const end = key.length - zone.key.length
  const labels: string[] = []
  for (let at = 0; at < end; ) {
    const next = at + 1 + key.charCodeAt(at)
    labels.push(key.slice(at + 1, next))
    at = next
  }
  return labels
}

/**
 * Reads the labels before the zone: `[[PORT.]PROTOCOL.|[ENDPOINT.[CLUSTER.]]]SERVICE.NAMESPACE.svc|pod` or, with `zonal`,
 * `ZONE.pin|prefer._zone.SERVICE.NAMESPACE.svc`. undefined: no such name can exist.
 */
export function parseRequest(labels: readonly string[], multicluster: boolean, zonal: boolean): Request | undefined {
  const count = labels.length
  const kind = labels[count - 1]
  if (kind === undefined) return APEX
  if (kind !== 'svc' && kind !== 'pod') return undefined
  if (count === 1) return APEX
  const base = { ...APEX, kind, namespace: labels[count - 2]!, service: labels[count - 3] ?? '' } as const
  if (count <= 3) return base
  if (count === 4) return { ...base, endpoint: labels[0]! }
  if (count === 5) {
    const [left = '', right = ''] = labels
    // An underscore says port and protocol. Without one, only multi-cluster names mean something else.
    if (!multicluster || left.startsWith('_') || right.startsWith('_')) return { ...base, port: bare(left), protocol: bare(right) }
    return { ...base, endpoint: left, cluster: right }
  }
  // A zone's name may itself have dots: it is all that stands left of the directive.
  const directive = labels[count - 5]!
  if (!zonal || multicluster || kind !== 'svc' || labels[count - 4] !== '_zone') return undefined
  if (directive !== 'pin' && directive !== 'prefer') return undefined
  return { ...base, zone: labels.slice(0, count - 5).join('.'), prefer: directive === 'prefer' }
}

const bare = (label: string): string => (label.startsWith('_') ? label.slice(1) : label)
