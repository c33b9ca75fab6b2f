/** The name servers of a zone: the cluster's own DNS service if this server is one of its endpoints, else this machine's addresses. */
import { networkInterfaces } from 'node:os'
import { addressText, octetsOf, packedAt, packedCount } from './address.js'
import type { ClusterIndex } from './cluster-index.js'
import { SERVICE } from './entries.js'
import { endpointName } from './lookup.js'

/** Where a name server answers. `labels` stand before the zone. */
export interface NameServer {
  readonly labels: readonly string[]
  readonly octets: string
}

const NS_LABELS: readonly string[] = ['ns', 'dns']

/** Octets of the addresses listened on, or of all of this machine; loopback ones serve nobody else. */
export function localAddresses(bound: readonly string[] | undefined): string[] {
  const all = bound === undefined || bound.some((address) => address === '0.0.0.0' || address === '::')
  const texts = all ? Object.values(networkInterfaces()).flatMap((list) => list?.map((address) => address.address) ?? []) : bound
  const octets = texts.map((text) => octetsOf(text.split('%')[0]!)).filter((address) => address !== '' && !isLoopback(address))
  return [...new Set(octets)]
}

const isLoopback = (octets: string): boolean => (octets.length === 4 ? octets.startsWith('\x7f') : addressText(octets) === '::1')

export function nameServers(index: ClusterIndex, local: readonly string[], podNames: boolean): NameServer[] {
  const servers = new Map<string, NameServer>()
  const add = (labels: readonly string[], octets: string): void => {
    servers.set(`${labels.join('.')} ${octets}`, { labels, octets })
  }
  for (const address of local)
    for (const slice of index.slicesWithAddress(address)) {
      const { form, name, namespace, addresses } = slice.owner
      const service = [name, namespace, 'svc']
      if (form === SERVICE.headless)
        for (let i = 0; i < slice.count; i++) {
          const octets = slice.address(i)
          add([endpointName(slice, i, octets, podNames), ...service], octets)
        }
      else if (form === SERVICE.cluster) for (let i = 0; i < packedCount(addresses); i++) add(service, packedAt(addresses, i))
    }
  if (servers.size === 0) for (const address of local) add(NS_LABELS, address)
  return [...servers.values()]
}
