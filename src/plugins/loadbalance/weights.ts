/** The weight file: a domain name on a line of its own, then lines of its addresses with their weights (1…255). */
import { formatAddress4, formatAddress6, Name, parseAddress, type RR } from '../../dns/index.js'
import { isAddress, parseUnsigned } from '../contract.js'
import type { First, Random } from './order.js'

/** One address of one domain. Crosses threads. */
export interface WeightRow {
  /** Lower-case with final dot. */
  readonly domain: string
  readonly address: string
  readonly weight: number
}

/** Throws Error in CoreDNS's words for a line that is none of these. */
export function parseWeights(text: string, file: string): WeightRow[] {
  const rows: WeightRow[] = []
  let domain: string | undefined
  for (const raw of text.split('\n')) {
    const line = raw.trim()
    if (line === '' || line.startsWith('#')) continue
    const fields = line.split(/\s+/)
    const [first = '', second] = fields
    if (fields.length > 2) throw new Error(`could not parse weight line:"${line}" in weight file ${file}`)
    if (second === undefined) {
      domain = domainOf(first, file)
      continue
    }
    const address = sameForm(first)
    if (address === undefined) throw new Error(`wrong IP address:"${first}" in weight file ${file}`)
    const weight = weightOf(second)
    if (weight === 0) throw new Error(`wrong weight value:"${second}" in weight file ${file}`)
    if (domain === undefined) throw new Error(`missing domain name in weight file ${file}`)
    rows.push({ domain, address, weight })
  }
  return rows
}

function domainOf(text: string, file: string): string {
  const name = isAddress(text) ? undefined : Name.tryParse(text)
  if (name === undefined) throw new Error(`wrong domain name:"${text}" in weight file ${file}. (Maybe a missing weight value?)`)
  return name.toLowerCase()
}

/** 0 for what is no weight. */
function weightOf(text: string): number {
  try {
    return parseUnsigned(text, 8)
  } catch {
    // The caller's words name the file.
    return 0
  }
}

/** An address in the form that records print it; v4-mapped ones are IPv4. */
function sameForm(text: string): string | undefined {
  const octets = parseAddress(text)
  if (octets === undefined) return undefined
  if (octets.length === 4) return formatAddress4(octets)
  const printed = formatAddress6(octets)
  return printed.startsWith('::ffff:') && printed.includes('.') ? printed.slice(7) : printed
}

export type Weights = ReadonlyMap<string, ReadonlyMap<string, number>>

/** By folded name, then by address; of several lines for one address the first counts. */
export function tableOf(rows: readonly WeightRow[]): Weights {
  const table = new Map<string, Map<string, number>>()
  for (const { domain, address, weight } of rows) {
    const { key } = Name.parse(domain)
    let addresses = table.get(key)
    if (addresses === undefined) {
      addresses = new Map()
      table.set(key, addresses)
    }
    if (!addresses.has(address)) addresses.set(address, weight)
  }
  return table
}

/** Chooses by weight; an address without one has 1. */
export function chooserOf(weights: () => Weights, random: Random): First {
  return (addresses) => {
    const table = weights()
    const each = addresses.map((record) => weightIn(table, record))
    let left = random(each.reduce((sum, weight) => sum + weight, 0))
    for (const [i, weight] of each.entries()) {
      left -= weight
      if (left < 0) return i
    }
    return 0
  }
}

function weightIn(table: Weights, { name, data }: RR): number {
  if (!('address' in data)) return 1
  const { address } = data
  const plain = address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
  return table.get(name.key)?.get(plain) ?? 1
}
