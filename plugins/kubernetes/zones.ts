/** The zones that a plugin answers for, with their SOA records. */
import { CLASS, Name, type RR, TYPE } from '../../src/dns/index.js'

export const IN_ADDR = Name.parse('in-addr.arpa.')
export const IP6 = Name.parse('ip6.arpa.')
const NS_DNS = Name.parse('ns.dns.')
const HOSTMASTER = Name.parse('hostmaster.')

export interface Zone {
  readonly name: Name
  readonly labelCount: number
  readonly multicluster: boolean
  /** Below in-addr.arpa or ip6.arpa: holds no services. */
  readonly reverse: boolean
  /** Key of `ns.dns.ZONE`. */
  readonly nsKey: string
}

export function makeZones(zones: readonly string[], multicluster: readonly string[]): Zone[] {
  const multi = multicluster.map((zone) => Name.parse(zone))
  const made = zones.map((text): Zone => {
    const name = Name.parse(text)
    return {
      name,
      labelCount: name.labelCount,
      reverse: name.isUnder(IN_ADDR) || name.isUnder(IP6),
      multicluster: multi.some((zone) => name.isUnder(zone)),
      nsKey: NS_DNS.append(name).key,
    }
  })
  // Most labels first: the first that fits is the longest.
  return made.sort((a, b) => b.labelCount - a.labelCount)
}

export function matchZone(zones: readonly Zone[], name: Name): Zone | undefined {
  for (const zone of zones) if (name.isUnder(zone.name)) return zone
  return undefined
}

/** The zone's name in the letters that the query has it in. */
export function zoneAsAsked(zone: Zone, asked: Name): Name {
  return asked.key.length === zone.name.key.length ? asked : asked.strip(asked.labelCount - zone.labelCount)
}

/** CoreDNS's SOA: TTL of the answers, at most 300 s; as negative TTL (RFC 2308) the whole. `apex` is the zone in the letters asked for. */
export function soaRecord(apex: Name, serial: number, ttl: number): RR {
  return {
    name: apex,
    type: TYPE.SOA,
    class: CLASS.IN,
    ttl: Math.min(ttl, 300),
    data: {
      kind: 'SOA',
      mname: NS_DNS.append(apex),
      rname: HOSTMASTER.append(apex),
      serial: serial >>> 0,
      refresh: 7200,
      retry: 1800,
      expire: 86_400,
      minimum: ttl,
    },
  }
}
