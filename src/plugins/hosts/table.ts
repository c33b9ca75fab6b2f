/** Hosts data: lines in the form of hosts(5), and the tables that names and addresses are looked up in. */
import { formatAddress4, formatAddress6, Name, parseAddress } from '../../dns/index.js'

/** One line: an address and its names, lower-case with final dot, only those in the zones. Crosses threads. */
export interface HostsRow {
  readonly address: string
  readonly names: readonly string[]
}

/** Reads what is well-formed and leaves out the rest, as resolvers do with this file. */
export function parseHosts(text: string, zones: readonly string[]): HostsRow[] {
  const origins = zones.map((zone) => Name.parse(zone))
  const rows: HostsRow[] = []
  for (const line of text.split('\n')) {
    const [first, ...fields] = line.replace(/#.*/, '').trim().split(/\s+/)
    const address = canonical((first ?? '').replace(/%.*/, ''))
    if (address === undefined) continue
    const names = fields.flatMap((field) => {
      const name = Name.tryParse(field)
      return name !== undefined && origins.some((origin) => name.isUnder(origin)) ? [name.toLowerCase()] : []
    })
    if (names.length > 0) rows.push({ address, names })
  }
  return rows
}

/** An address as it is compared and printed; v4-mapped ones are IPv4. undefined: no address. */
function canonical(text: string): string | undefined {
  const octets = parseAddress(text)
  if (octets === undefined) return undefined
  if (octets.length === 4) return formatAddress4(octets)
  const mapped = octets.subarray(0, 10).every((octet) => octet === 0) && octets[10] === 0xff && octets[11] === 0xff
  return mapped ? formatAddress4(octets, 12) : formatAddress6(octets)
}

const isWildcard = (name: string): boolean => name.startsWith('*.')

/** What CoreDNS counts as entries: addresses of names and, where there are any, names of addresses. */
export function entriesOf(rows: readonly HostsRow[], reverse: boolean): number {
  let count = 0
  for (const { names } of rows) for (const name of names) count += reverse && !isWildcard(name) ? 2 : 1
  return count
}

export class HostsTable {
  static readonly empty = new HostsTable([], false)
  readonly #v4 = new Map<string, string[]>()
  readonly #v6 = new Map<string, string[]>()
  readonly #names = new Map<string, Name[]>()

  constructor(rows: readonly HostsRow[], reverse: boolean) {
    for (const { address, names } of rows) {
      const table = address.includes(':') ? this.#v6 : this.#v4
      for (const text of names) {
        const name = Name.parse(text)
        push(table, name.key, address)
        if (reverse && !isWildcard(text)) push(this.#names, address, name)
      }
    }
  }

  /** Addresses of a name, else those of the wildcard that stands in place of its first label. */
  addresses(name: Name, family: 4 | 6): readonly string[] {
    const table = family === 4 ? this.#v4 : this.#v6
    const found = table.get(name.key)
    if (found !== undefined) return found
    const parent = name.isRoot ? '' : name.key.slice(name.key.charCodeAt(0) + 1)
    return (parent === '' ? undefined : table.get(`\x01*${parent}`)) ?? NONE
  }

  names(address: string): readonly Name[] {
    return this.#names.get(address) ?? NO_NAMES
  }
}

const NONE: readonly string[] = []
const NO_NAMES: readonly Name[] = []

function push<T>(table: Map<string, T[]>, key: string, value: T): void {
  const list = table.get(key)
  if (list === undefined) table.set(key, [value])
  else list.push(value)
}

const IN_ADDR = Name.parse('in-addr.arpa.')
const IP6 = Name.parse('ip6.arpa.')

/** The address that a name under in-addr.arpa or ip6.arpa stands for, if it names a whole one. */
export function addressOf(name: Name): string | undefined {
  if (name.isUnder(IN_ADDR) && name.labelCount === 6) return canonical([3, 2, 1, 0].map((i) => name.foldedLabel(i)).join('.'))
  if (!name.isUnder(IP6) || name.labelCount !== 34) return undefined
  let hex = ''
  for (let i = 31; i >= 0; i--) {
    const nibble = name.foldedLabel(i)
    if (!/^[0-9a-f]$/.test(nibble)) return undefined
    hex += nibble
  }
  return canonical(hex.replace(/(....)(?=.)/g, '$1:'))
}
