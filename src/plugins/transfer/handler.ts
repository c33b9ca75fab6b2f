/** `transfer`: who may have a zone whole, and the messages it leaves in (RFC 5936, RFC 1995). */
import { FLAG, Message, Name, parseAddress, RCODE, type RR, recordLength, TYPE } from '../../dns/index.js'
import {
  type Handler,
  type MessageStream,
  type Passing,
  type Plugin,
  type Query,
  type Reply,
  type SetupContext,
  UNTOUCHED,
} from '../contract.js'
import { notifyAll } from './notify.js'

/** A host that gets zones and word of their changes. */
export interface Secondary {
  /** Address and port, as they are named in messages. */
  readonly text: string
  readonly host: string
  readonly port: number
  /** The address as octets: one spelling for all. */
  readonly octets: string
}

export interface TransferRule {
  /** Lower-case presentation form. */
  readonly zones: readonly string[]
  readonly to: readonly Secondary[]
  /** `to *` */
  readonly anyone: boolean
  /** Local address that NOTIFY leaves from. */
  readonly source: string | undefined
}

/**
 * Octets of records, uncompressed, that one message takes: header, question, OPT and a signature fit in what is left of 65,535. A record
 * that is larger goes alone.
 */
const BATCH = 63_000

const NAME = 'transfer'

interface Zoned {
  readonly zone: Name
  readonly rule: TransferRule
}

export class TransferPlugin implements Plugin {
  readonly name = NAME
  readonly rules: readonly TransferRule[]
  readonly #ctx: SetupContext
  /** Longest first, so that the first that matches decides. */
  readonly #zones: readonly Zoned[]

  constructor(rules: readonly TransferRule[], ctx: SetupContext) {
    this.rules = rules
    this.#ctx = ctx
    this.#zones = rules
      .flatMap((rule) => rule.zones.map((zone) => ({ zone: Name.parse(zone), rule })))
      .sort((a, b) => b.zone.key.length - a.zone.key.length)
  }

  stands({ type }: Query): Passing | undefined {
    return type === TYPE.AXFR || type === TYPE.IXFR ? undefined : UNTOUCHED
  }

  serveDNS(query: Query, next: Handler): Reply | Promise<Reply> {
    if (query.type !== TYPE.AXFR && query.type !== TYPE.IXFR) return next(query)
    // Left to the server to write, as far as logs and metrics go.
    if (query.proto === 'udp') return query.reply('', RCODE.REFUSED, { aa: false })
    const rule = this.#ruleFor(query.name)
    if (rule === undefined) return next(query)
    if (!allows(rule, query.peer.address)) return query.reply(NAME, RCODE.REFUSED, { aa: false })
    const serial = query.type === TYPE.IXFR ? clientSerial(query.message) : 0
    if (serial === undefined) return query.reply('', RCODE.SERVFAIL, { aa: false })
    for (const plugin of this.#ctx.chain) {
      const records = plugin.transfer?.(query.name, serial)
      if (records !== undefined) return this.#send(query, records)
    }
    return next(query)
  }

  async notify(zone: Name): Promise<void> {
    const rule = this.#ruleFor(zone)
    if (rule === undefined) return
    await notifyAll(zone, rule.to, rule.source)
    this.#ctx.log.debug(`Sent notifies for zone "${zone}" to [${rule.to.map((host) => host.text).join(' ')}]`)
  }

  #ruleFor(name: Name): TransferRule | undefined {
    return this.#zones.find(({ zone }) => name.isUnder(zone))?.rule
  }

  #send(query: Query, records: Iterable<RR>): Reply {
    const all = records[Symbol.iterator]()
    const head = all.next()
    if (head.done) return query.reply('', RCODE.SERVFAIL, { aa: false })
    const second = all.next()
    if (second.done && head.value.data.kind === 'SOA') return this.#upToDate(query, head.value, head.value.data.serial)
    const rest = function* (): Generator<RR> {
      try {
        yield head.value
        if (!second.done) yield second.value
        for (let result = all.next(); !result.done; result = all.next()) yield result.value
      } finally {
        all.return?.()
      }
    }
    return { stream: this.#messages(query, rest()), by: NAME } satisfies MessageStream
  }

  #upToDate(query: Query, soa: RR, serial: number): Message {
    const { name, peer } = query
    this.#ctx.log.info(
      `Outgoing noop, incremental transfer for up to date zone "${name.toLowerCase()}" to ${peer.address} for ${serial} SOA serial`,
    )
    return query.reply(NAME, RCODE.NOERROR, { answers: [soa], aa: false })
  }

  async *#messages(query: Query, records: Iterable<RR>): AsyncGenerator<Message> {
    let batch: RR[] = []
    let size = 0
    let total = 0
    let serial: number | undefined
    for (const record of records) {
      if (record.data.kind === 'SOA') serial ??= record.data.serial
      const length = recordLength(record)
      if (batch.length > 0 && size + length > BATCH) {
        yield part(query, batch)
        batch = []
        size = 0
      }
      batch.push(record)
      size += length
      total++
    }
    yield part(query, batch)
    const zone = query.name.toLowerCase()
    this.#ctx.log.info(`Outgoing transfer of ${total} records of zone "${zone}" to ${query.peer.address} for ${serial ?? 0} SOA serial`)
  }
}

function part(query: Query, answers: readonly RR[]): Message {
  const base = Message.reply(query.message, RCODE.NOERROR)
  const message = base.with({ answers, flags: base.flags | FLAG.AA })
  message.by = NAME
  return message
}

function allows(rule: TransferRule, address: string): boolean {
  if (rule.anyone) return true
  const octets = parseAddress(address)?.toString('latin1')
  return rule.to.some((host) => host.octets === octets)
}

/** What the client has: the SOA that stands alone in the authority section of an IXFR query. */
function clientSerial(message: Message): number | undefined {
  const [soa, ...more] = message.authorities
  return more.length === 0 && soa?.data.kind === 'SOA' ? soa.data.serial : undefined
}
