/** The order of records in a section: CNAMEs ahead of addresses, because stub resolvers insist on it, and the rest by policy. */
import { type Message, type RR, TYPE } from '../../dns/index.js'

/** A number from 0 up to, but not including, `limit`. */
export type Random = (limit: number) => number

interface Groups {
  readonly cname: RR[]
  readonly address: RR[]
  readonly mx: RR[]
  readonly rest: RR[]
}

function group(records: readonly RR[]): Groups {
  const groups: Groups = { cname: [], address: [], mx: [], rest: [] }
  for (const record of records) {
    if (record.type === TYPE.CNAME) groups.cname.push(record)
    else if (record.type === TYPE.A || record.type === TYPE.AAAA) groups.address.push(record)
    else if (record.type === TYPE.MX) groups.mx.push(record)
    else groups.rest.push(record)
  }
  return groups
}

/** Fisher and Yates, in place. */
function shuffle(records: RR[], random: Random): RR[] {
  for (let i = records.length - 1; i > 0; i--) {
    const j = random(i + 1)
    const record = records[i]!
    records[i] = records[j]!
    records[j] = record
  }
  return records
}

/** `round_robin`: addresses and MX in random order, in all sections. On the octets wherever that is enough. */
export function roundRobin(reply: Message, random: Random): Message {
  const { layout } = reply
  if (layout !== undefined && !layout.mixed && layout.addresses.length < 2) return reply
  const quick = reply.shuffled(random(0x7fffffff) + 1)
  if (quick !== undefined) return quick
  const { answers, authorities, additionals } = reply
  if (answers.length <= 1 && authorities.length <= 1 && additionals.length <= 1) return reply
  return reply.with({ answers: mixed(answers, random), authorities: mixed(authorities, random), additionals: mixed(additionals, random) })
}

function mixed(records: readonly RR[], random: Random): readonly RR[] {
  if (records.length <= 1) return records
  const { cname, address, mx, rest } = group(records)
  return [...cname, ...rest, ...shuffle(address, random), ...shuffle(mx, random)]
}

/** Chooses which of several addresses comes first; their owner's name may differ from one to the next. */
export type First = (addresses: readonly RR[]) => number

/** `weighted`: one address comes first, the others keep their order but for the one that changes places with it. */
export function weighted(reply: Message, first: First): Message {
  const { answers, additionals } = reply
  const type = reply.question?.type
  if (type !== TYPE.A && type !== TYPE.AAAA && type !== TYPE.SRV) return reply
  const front = withFirst(answers, first)
  const back = withFirst(additionals, first)
  return front === answers && back === additionals ? reply : reply.with({ answers: front, additionals: back })
}

function withFirst(records: readonly RR[], first: First): readonly RR[] {
  const { cname, address, mx, rest } = group(records)
  if (address.length === 0 || records.length === 1) return records
  const chosen = first(address)
  const record = address[chosen]!
  address[chosen] = address[0]!
  address[0] = record
  return [...cname, ...rest, ...address, ...mx]
}

/** `prefer`: addresses inside the networks come first, in the order of the networks. `rank`: its place among them, -1 for none. */
export function preferring(reply: Message, rank: (address: string) => number): Message {
  const { answers, additionals } = reply
  if (answers.length <= 1 && additionals.length <= 1) return reply
  return reply.with({ answers: ranked(answers, rank), additionals: ranked(additionals, rank) })
}

function ranked(records: readonly RR[], rank: (address: string) => number): readonly RR[] {
  if (records.length <= 1) return records
  const { cname, address, mx, rest } = group(records)
  const place = (record: RR): number => {
    const at = 'address' in record.data ? rank(record.data.address) : -1
    return at < 0 ? Number.MAX_SAFE_INTEGER : at
  }
  const sorted = address.map((record) => ({ record, at: place(record) })).sort((a, b) => a.at - b.at)
  return [...cname, ...sorted.map(({ record }) => record), ...mx, ...rest]
}
