/** Two replies to one question beside each other: what is missing in the second, what is new, which flags differ. */
import { formatRecord, type Message, OPTION, type RR, rcodeName, rdataOctets, typeName } from '../../src/dns/index.js'

export interface Allowance {
  /** Bits of the header's second word that may differ. */
  readonly flags?: number
  /** Seconds that TTLs may be apart. */
  readonly ttl?: number
  /** Each TTL of the second is at most the lowest of the first. */
  readonly cached?: boolean
  /** Letter case of names in data may differ, and what is additional. */
  readonly spelling?: boolean
  /** Beside an answer, nothing else may be there. */
  readonly bare?: boolean
  /** EDNS options are not looked at. */
  readonly anyOptions?: boolean
}

/** Seconds: the lowest TTL that `cache` gives unless told otherwise. */
const LEAST_KEPT = 5

/** Options that are between two neighbours. */
const HOP: ReadonlySet<number> = new Set([OPTION.COOKIE, OPTION.PADDING, OPTION.KEEPALIVE])

/** Owner names are equal whatever their letter case; data is compared octet by octet. */
const identity = (rr: RR, spelling: boolean): string =>
  `${rr.name.key}|${rr.type}|${rr.class}|${spelling && rr.data.kind === 'NAME' ? rr.data.target.key : rdataOctets(rr.type, rr.data).toString('hex')}`
const text = (rr: RR): string => formatRecord(rr).replaceAll(/\s+/g, ' ').slice(0, 120)

function section(
  what: string,
  direct: readonly RR[],
  through: readonly RR[],
  { ttl = 0, cached = false, spelling = false }: Allowance,
  lowest: number,
): string[] {
  const found: string[] = []
  const left = new Map<string, RR[]>()
  for (const rr of through) left.set(identity(rr, spelling), [...(left.get(identity(rr, spelling)) ?? []), rr])
  for (const rr of direct) {
    const other = left.get(identity(rr, spelling))?.pop()
    if (other === undefined) found.push(`${what} lost: ${text(rr)}`)
    else if (cached ? other.ttl > Math.max(lowest, LEAST_KEPT) + ttl : Math.abs(other.ttl - rr.ttl) > ttl)
      found.push(`${what} TTL ${rr.ttl} became ${other.ttl}: ${text(rr)}`)
  }
  for (const rest of left.values()) for (const rr of rest) found.push(`${what} new: ${text(rr)}`)
  return found
}

const FLAGS: readonly (readonly [string, number])[] = [
  ['AA', 0x0400],
  ['TC', 0x0200],
  ['RD', 0x0100],
  ['RA', 0x0080],
  ['Z', 0x0040],
  ['AD', 0x0020],
  ['CD', 0x0010],
]

function edns(direct: Message, through: Message): string[] {
  const [a, b] = [direct.edns, through.edns]
  if (a === undefined || b === undefined) return a === b ? [] : [`OPT ${a === undefined ? 'new' : 'lost'}`]
  const options = (message: Message): string =>
    message
      .edns!.options.filter(({ code }) => !HOP.has(code))
      .map(({ code, data }) => `${code}:${data.toString('hex')}`)
      .sort()
      .join()
  const found = a.dnssecOk === b.dnssecOk ? [] : [`DO ${a.dnssecOk} became ${b.dnssecOk}`]
  if (options(direct) !== options(through)) found.push(`options [${options(direct)}] became [${options(through)}]`)
  return found
}

export function differences(direct: Message, through: Message, allowance: Allowance = {}): string[] {
  const found: string[] = []
  if (direct.rcode !== through.rcode) found.push(`${rcodeName(direct.rcode)} became ${rcodeName(through.rcode)}`)
  const changed = (direct.flags ^ through.flags) & ~(allowance.flags ?? 0)
  for (const [name, bit] of FLAGS) if ((changed & bit) !== 0) found.push(`${name} ${direct.flags & bit ? 'lost' : 'new'}`)
  if (direct.question!.name.toString() !== through.question!.name.toString()) found.push(`question became ${through.question!.name}`)
  if (direct.question!.type !== through.question!.type) found.push(`type became ${typeName(through.question!.type)}`)
  // Which records are left of a set that did not fit is nobody's promise.
  if (!direct.tc || !through.tc) {
    const all = [...direct.answers, ...direct.authorities, ...direct.additionals]
    const lowest = Math.min(...all.map((rr) => rr.ttl))
    found.push(...section('answer', direct.answers, through.answers, allowance, lowest))
    if (allowance.bare === true && direct.answers.length > 0) return found
    found.push(...section('authority', direct.authorities, through.authorities, allowance, lowest))
    if (allowance.spelling !== true) found.push(...section('additional', direct.additionals, through.additionals, allowance, lowest))
  }
  if (allowance.anyOptions !== true) found.push(...edns(direct, through))
  return found
}
