/** Names behind an address, for PTR. */

import type { Name } from '../../src/dns/index.js'
import { octetsOf, packedIndexOf } from './address.js'
import type { ClusterIndex } from './cluster-index.js'
import { endpointName, type LookupOptions, namespaceExposed } from './lookup.js'
import { labelsBefore } from './request.js'
import { IN_ADDR, IP6 } from './zones.js'

/** The address that a name of a reverse zone stands for; "" if it is not a whole one. */
export function reverseAddress(name: Name): string {
  if (name.isUnder(IN_ADDR)) {
    const parts = labelsBefore(name, IN_ADDR)
    return parts.length === 4 ? octetsOf(parts.reverse().join('.')) : ''
  }
  if (!name.isUnder(IP6)) return ''
  const digits = labelsBefore(name, IP6)
  if (digits.length !== 32 || digits.some((digit) => digit.length !== 1)) return ''
  return octetsOf(
    digits
      .reverse()
      .join('')
      .replace(/.{4}(?=.)/g, '$&:'),
  )
}

/**
 * Labels before `svc` and the zone of every name that the address has, sorted: those of services with this cluster address, or else of
 * endpoints, one for each service that selects them.
 */
export function reverseNames(index: ClusterIndex, options: LookupOptions, octets: string): string[][] {
  const shown = (namespace: string): boolean => options.namespaces === undefined || namespaceExposed(index, options, namespace)
  const services = index.servicesWithAddress(octets).filter((entry) => shown(entry.namespace))
  const names = new Map<string, string[]>()
  for (const entry of services) add(names, [entry.name, entry.namespace])
  if (names.size > 0) return sorted(names)
  for (const slice of index.slicesWithAddress(octets)) {
    const { name, namespace } = slice.owner
    if (!shown(namespace)) continue
    for (let i = packedIndexOf(slice.addresses, octets); i >= 0; i = packedIndexOf(slice.addresses, octets, i + 1))
      add(names, [endpointName(slice, i, octets, options.endpointPodNames), name, namespace])
  }
  return sorted(names)
}

function add(names: Map<string, string[]>, labels: string[]): void {
  names.set(labels.join('.'), labels)
}

/** The order must not depend on how the index came about. */
function sorted(names: Map<string, string[]>): string[][] {
  return [...names].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, labels]) => labels)
}
