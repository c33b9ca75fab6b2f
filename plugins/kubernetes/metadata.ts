/** Values for `{/kubernetes/…}` in logs and for other plugins. Only gathered where the block has the metadata plugin. */

import { Name } from '../../src/dns/index.js'
import type { Query } from '../../src/plugins/contract.js'
import { octetsOf } from './address.js'
import type { ClusterIndex } from './cluster-index.js'
import type { KubernetesOptions } from './options.js'
import { labelsBefore, parseRequest } from './request.js'
import type { Zone } from './zones.js'

export function addMetadata(query: Query, zone: Zone | undefined, index: ClusterIndex, options: KubernetesOptions): void {
  const metadata = query.metadata
  if (metadata === undefined) return
  const set = (key: string, value: string): void => {
    metadata.set(`kubernetes/${key}`, () => value)
  }
  const pod = options.pods === 'verified' ? index.podsWithAddress(octetsOf(query.peer.address))[0] : undefined
  if (pod !== undefined) {
    set('client-namespace', pod.namespace)
    set('client-pod-name', pod.name)
    for (const [label, value] of Object.entries(pod.labels ?? {})) set(`client-label/${label}`, value)
  }
  if (zone === undefined) return
  const request = parseRequest(labelsBefore(query.name, zone.name).map(printable), zone.multicluster, options.zonal)
  if (request === undefined) {
    set('parse-error', 'invalid query name')
    return
  }
  set('port-name', request.port)
  set('protocol', request.protocol)
  set('endpoint', request.endpoint)
  if (zone.multicluster) set('cluster', request.cluster)
  if (options.zonal) set('zone', request.zone)
  set('service', request.service)
  set('namespace', request.namespace)
  set('kind', request.kind)
}

/** A label as names print it, with escapes: logs must not carry control characters. */
function printable(label: string): string {
  return /^[-\w]+$/.test(label)
    ? label
    : Name.fromLabels([Buffer.from(label, 'latin1')])
        .toString()
        .slice(0, -1)
}
