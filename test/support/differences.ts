/** Compares two replies to one query: CoreDNS's (a) and ours (b). What docs/differences.md explains carries its reason. */
import { formatRecord, type Message, RCODE, type RR, rcodeName, TYPE } from '../../src/dns/index.js'
import type { TestQuery } from './questions.js'

export interface Difference {
  readonly query: string
  readonly what: string
  readonly why?: string
}

interface Pair {
  readonly query: TestQuery
  readonly a: Message
  readonly b: Message
}

const isNoData = ({ rcode, answers, authorities }: Message): boolean =>
  rcode === RCODE.NOERROR && answers.length === 0 && authorities.some((rr) => rr.type === TYPE.SOA)
const aliased = (message: Message): boolean => message.answers[0]?.type === TYPE.CNAME

/** What is known, and when it applies. A reason that applies takes the whole reply out, so each is as narrow as can be. */
const EXPLAINED: readonly { readonly why: string; readonly applies: (pair: Pair) => boolean }[] = [
  {
    why: 'a name with records of another type is no data, never NXDOMAIN or a fall-through',
    applies: ({ query, a, b }) => isNoData(b) && a.rcode === RCODE.NXDOMAIN && /(cluster\.local|arpa)\.$/i.test(query.name),
  },
  {
    why: 'a name of the cluster whose records are asked for under another type is not forwarded',
    applies: ({ query, a, b }) =>
      isNoData(b) &&
      a.rcode === RCODE.NOERROR &&
      !a.aa &&
      /arpa\.$/i.test(query.name) &&
      (query.type !== 'PTR' || /^ns\.dns\./i.test(query.name)),
  },
  {
    why: 'name servers of the zone in any letter case',
    applies: ({ query, a, b }) => query.type === 'NS' && isNoData(a) && b.answers.some((rr) => rr.type === TYPE.NS),
  },
  {
    why: 'ns.dns of the zone in any letter case',
    applies: ({ query, a, b }) =>
      /^ns\.dns\./i.test(query.name) && query.name !== query.name.toLowerCase() && a.answers.length === 0 && b.rcode === RCODE.NOERROR,
  },
  {
    why: 'the zone twice in ns.dns.ZONE.ZONE is no such name',
    applies: ({ query, a, b }) =>
      /^ns\.dns\.cluster\.local\..*cluster\.local\.$/i.test(query.name) && a.rcode === RCODE.NOERROR && b.rcode === RCODE.NXDOMAIN,
  },
  {
    why: 'an alias takes the rcode and the denial of its target',
    applies: ({ a, b }) =>
      aliased(b) && !aliased(a)
        ? isNoData(a)
        : aliased(b) && (a.rcode !== b.rcode || a.authorities.length === 0) && a.answers.length <= b.answers.length,
  },
  {
    why: 'labels in front of a whole reverse name name no address',
    applies: ({ query, a, b }) =>
      query.type === 'PTR' && a.answers.length > 0 && b.answers.length === 0 && query.name.split('.').length > 7,
  },
]

/** SOA serials of the cluster are times; whoami gives the client's own port. */
const neutral = (rr: RR): string =>
  formatRecord(rr)
    .toLowerCase()
    .replace(/(hostmaster\.\S+) \d+ /, '$1 NOW ')
    .replace(/(\tsrv\t0 0) \d+ \.$/, '$1 PORT .')
    .replace(/\s+/g, ' ')

/** Sorted, without TTL, and the TTLs beside: those of a cache may be apart by a second or two. */
function section(records: readonly RR[]): { text: string; ttls: number[] } {
  const lines = records
    .filter((rr) => rr.type !== TYPE.OPT)
    .map((rr) => ({ text: neutral({ ...rr, ttl: 0 }), ttl: rr.ttl }))
    .sort((x, y) => (x.text < y.text ? -1 : 1))
  return { text: lines.map((line) => line.text).join('; '), ttls: lines.map((line) => line.ttl) }
}

const CACHED = /cached\.test\.$/i

function* parts({ query, a, b }: Pair): Generator<[what: string, a: unknown, b: unknown]> {
  yield ['rcode', rcodeName(a.rcode), rcodeName(b.rcode)]
  for (const flag of ['aa', 'tc', 'rd', 'ra', 'ad', 'cd'] as const) {
    // A cache tells by AA whether it asked for this one or had it; two that are asked at once may differ in that.
    if (flag !== 'aa' || !CACHED.test(query.name)) yield [flag, a[flag], b[flag]]
  }
  yield ['question', a.question?.name.toString(), b.question?.name.toString()]
  const options = (message: Message): string | undefined =>
    message.edns &&
    `${message.edns.size} ${message.edns.dnssecOk} ${message.edns.options.map(({ code, data }) => `${code}:${data.toString('hex')}`).join(' ')}`
  yield ['edns', options(a), options(b)]
  yield ['size', false, b.toBuffer().length > query.limit]
  if (a.tc && b.tc) return
  for (const name of ['answers', 'authorities', 'additionals'] as const) {
    const [left, right] = [section(a[name]), section(b[name])]
    yield [name, left.text, right.text]
    const apart = left.ttls.some((ttl, i) => Math.abs(ttl - (right.ttls[i] ?? ttl)) > (CACHED.test(query.name) ? 2 : 0))
    yield [`ttl of ${name}`, apart && left.ttls.join(), apart && right.ttls.join()]
  }
}

export function compare(query: TestQuery, a: Message | Error, b: Message | Error): Difference[] {
  if (a instanceof Error || b instanceof Error) {
    if (a instanceof Error && b instanceof Error) return []
    return [
      {
        query: query.text,
        what: `CoreDNS: ${a instanceof Error ? a.message : rcodeName(a.rcode)}, ours: ${b instanceof Error ? b.message : rcodeName(b.rcode)}`,
      },
    ]
  }
  const differing = [...parts({ query, a, b })].filter(([, left, right]) => left !== right)
  if (differing.length === 0) return []
  const why = EXPLAINED.find(({ applies }) => applies({ query, a, b }))?.why
  const what = differing.map(([part, left, right]) => `${part}: CoreDNS ${left}, ours ${right}`).join(' | ')
  return [{ query: query.text, what, ...(why === undefined ? {} : { why }) }]
}
