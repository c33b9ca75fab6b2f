/** A cluster zone record by record, for `transfer`: what CoreDNS lists, in its order. Pods are left out, as there. */
import { CLASS, Name, type RR, TYPE } from '../../src/dns/index.js'
import { octetsOf, packedAt, packedCount } from './address.js'
import type { NameServer } from './apex.js'
import type { ClusterIndex } from './cluster-index.js'
import { type Port, SERVICE, type ServiceEntry, type Slice } from './entries.js'
import { endpointName, type LookupOptions, namespaceExposed } from './lookup.js'
import type { KubernetesOptions } from './options.js'
import { addressRecord, nameRecord, nameUnder } from './records.js'
import type { Zone } from './zones.js'

export interface TransferOptions extends LookupOptions, Pick<KubernetesOptions, 'ttl'> {}

/**
 * All records of the zone with `soa` first and last. Services that come or go meanwhile are in it or not; the serial tells the client to
 * ask again.
 */
export function* zoneRecords(
  index: ClusterIndex,
  options: TransferOptions,
  zone: Zone,
  soa: RR,
  servers: readonly NameServer[],
): Generator<RR> {
  yield soa
  yield* apexRecords(zone, servers, options.ttl)
  const services = zone.reverse ? [] : [...(zone.multicluster ? index.serviceImports() : index.services())]
  services.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
  for (const entry of services) if (namespaceExposed(index, options, entry.namespace)) yield* serviceRecords(entry, options, zone)
  yield soa
}

function* apexRecords(zone: Zone, servers: readonly NameServer[], ttl: number): Generator<RR> {
  const named = new Set<string>()
  const addresses: RR[] = []
  for (const { labels, octets } of servers) {
    const target = nameUnder(labels, zone.name)
    if (target === undefined) continue
    if (named.size < named.add(target.key).size) yield nameRecord(zone.name, TYPE.NS, target, ttl)
    addresses.push(addressRecord(target, octets, ttl))
  }
  yield* addresses
}

function* serviceRecords(entry: ServiceEntry, options: TransferOptions, zone: Zone): Generator<RR> {
  const owner = nameUnder([entry.name, entry.namespace, 'svc'], zone.name)
  if (owner === undefined) return
  if (entry.form === SERVICE.headless) yield* endpointRecords(entry, owner, options)
  else if (entry.form === SERVICE.external) {
    // An address in place of a name makes no alias.
    const target = octetsOf(entry.externalName) === '' && entry.externalName !== '' ? Name.tryParse(entry.externalName) : undefined
    if (target !== undefined) yield nameRecord(owner, TYPE.CNAME, target, options.ttl)
  } else if (!options.ignoreEmptyService || entry.endpointCount > 0) yield* clusterRecords(entry, owner, options.ttl)
}

function* clusterRecords(entry: ServiceEntry, owner: Name, ttl: number): Generator<RR> {
  for (let i = 0; i < packedCount(entry.addresses); i++) yield addressRecord(owner, packedAt(entry.addresses, i), ttl)
  for (const port of entry.ports) {
    if (port.port < 0) continue
    yield srv(owner, port.port, 100, owner, ttl)
    const named = portName(port, owner)
    if (named !== undefined) yield srv(named, port.port, 100, owner, ttl)
  }
}

function* endpointRecords(entry: ServiceEntry, owner: Name, options: TransferOptions): Generator<RR> {
  const slices = entry.effective
  // An endpoint that moves from one slice to another stands in both for a while.
  const seen = slices.length > 1 ? new Set<string>() : undefined
  for (const slice of slices) {
    // As CoreDNS lists it: by slice, where an answer shares the weights out among all of them.
    const weight = Math.max(1, Math.floor(100 / slice.count))
    for (let i = 0; i < slice.count; i++) {
      const name = endpointName(slice, i, slice.address(i), options.endpointPodNames)
      if (seen === undefined || seen.size < seen.add(`${name} ${slice.address(i)}`).size)
        yield* oneEndpoint(slice, i, name, owner, weight, options.ttl)
    }
  }
}

function* oneEndpoint(slice: Slice, i: number, label: string, owner: Name, weight: number, ttl: number): Generator<RR> {
  const octets = slice.address(i)
  yield addressRecord(owner, octets, ttl)
  const name = nameUnder([label], owner)
  if (name === undefined) return
  yield addressRecord(name, octets, ttl)
  for (const port of slice.ports) {
    const named = port.port < 0 ? undefined : portName(port, owner)
    if (named !== undefined) yield srv(named, port.port, weight, name, ttl)
  }
}

/** An unnamed port has no name of its own. */
const portName = ({ name, protocol }: Port, owner: Name): Name | undefined =>
  name === '' ? undefined : nameUnder([`_${name}`, `_${protocol}`], owner)

function srv(name: Name, port: number, weight: number, target: Name, ttl: number): RR {
  return { name, type: TYPE.SRV, class: CLASS.IN, ttl, data: { kind: 'SRV', priority: 0, weight, port, target } }
}
