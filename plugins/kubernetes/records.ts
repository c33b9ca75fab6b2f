/** Records of an answer. Owner names keep the letters of the question. */
import { CLASS, Name, type RR, TYPE, WireError } from '../../src/dns/index.js'
import { addressText } from './address.js'
import type { Found } from './lookup.js'

export function addressRecord(name: Name, octets: string, ttl: number): RR {
  const address = addressText(octets)
  return octets.length === 4
    ? { name, type: TYPE.A, class: CLASS.IN, ttl, data: { kind: 'A', address } }
    : { name, type: TYPE.AAAA, class: CLASS.IN, ttl, data: { kind: 'AAAA', address } }
}

export function nameRecord(name: Name, type: number, target: Name, ttl: number): RR {
  return { name, type, class: CLASS.IN, ttl, data: { kind: 'NAME', target } }
}

export function textRecord(name: Name, text: string, ttl: number): RR {
  return { name, type: TYPE.TXT, class: CLASS.IN, ttl, data: { kind: 'TXT', strings: [Buffer.from(text)] } }
}

/** The name of these labels under `zone`; undefined if it would be too long to exist. */
export function nameUnder(labels: readonly string[], zone: Name): Name | undefined {
  try {
    return Name.fromLabels(labels.map((label) => Buffer.from(label, 'latin1'))).append(zone)
  } catch (error) {
    if (error instanceof WireError) return undefined
    throw error
  }
}

/** Address records of the type, each address once. */
export function addressRecords(name: Name, type: number, found: readonly { readonly octets: string }[], ttl: number): RR[] {
  const length = type === TYPE.A ? 4 : 16
  const records: RR[] = []
  const seen = found.length > 1 ? new Set<string>() : undefined
  for (const { octets } of found)
    if (octets.length === length && (seen === undefined || seen.size < seen.add(octets).size))
      records.push(addressRecord(name, octets, ttl))
  return records
}

/**
 * SRV records of what was found and the addresses of their targets. The weights share 100 out among all that was found, at least 1 each,
 * before equal targets are joined: as CoreDNS does it. `labels` and `zone` follow those of each find in its target.
 */
export function srvRecords(
  name: Name,
  found: readonly Found[],
  labels: readonly string[],
  zone: Name,
  ttl: number,
): { answers: RR[]; additionals: RR[] } {
  const weight = Math.max(1, Math.floor((100 / (found.length * 100)) * 100))
  const targets = new Map<string, Name | undefined>()
  const seen = new Set<string>()
  const answers: RR[] = []
  const additionals: RR[] = []
  for (const { octets, port, labels: own } of found) {
    if (port < 0) continue
    const key = own.join('.')
    if (!targets.has(key)) targets.set(key, nameUnder([...own, ...labels], zone))
    const target = targets.get(key)
    if (target === undefined) continue
    if (seen.size < seen.add(`${key} ${port}`).size)
      answers.push({ name, type: TYPE.SRV, class: CLASS.IN, ttl, data: { kind: 'SRV', priority: 0, weight, port, target } })
    if (seen.size < seen.add(`${key}  ${octets}`).size) additionals.push(addressRecord(target, octets, ttl))
  }
  return { answers, additionals }
}
