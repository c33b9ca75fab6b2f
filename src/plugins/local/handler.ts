/** `local`: names that must not leave this machine (RFC 6303, RFC 6761 §6.3). */
import { Name, RCODE, type RData, type RR, TYPE } from '../../dns/index.js'
import { type BlockConfig, type Counter, type Handler, type Logger, type Plugin, type Query, quote, type Reply } from '../contract.js'
import { questionType } from '../words.js'

const TTL = 604_800
const LOCALHOST = Name.parse('localhost.')
const LOOPBACK_POINTER = Name.parse('1.0.0.127.in-addr.arpa.')
const ZONES = [LOCALHOST, ...['0', '127', '255'].map((first) => Name.parse(`${first}.in-addr.arpa.`))]

const LOOPBACK4: RData = { kind: 'A', address: '127.0.0.1' }
const LOOPBACK6: RData = { kind: 'AAAA', address: '::1' }
const SOA: RData = {
  kind: 'SOA',
  mname: LOCALHOST,
  rname: Name.parse('root.localhost.'),
  serial: 1,
  refresh: 0,
  retry: 0,
  expire: 0,
  minimum: TTL,
}
const TARGET: RData = { kind: 'NAME', target: LOCALHOST }

export class Local implements Plugin {
  readonly name = 'local'
  /** Names that begin with `localhost.` count as well. */
  readonly #prefix: boolean
  readonly #count: Counter
  readonly #log: Logger
  readonly #block: BlockConfig

  constructor(prefix: boolean, count: Counter, log: Logger, block: BlockConfig) {
    this.#prefix = prefix
    this.#count = count
    this.#log = log
    this.#block = block
  }

  serveDNS(query: Query, next: Handler): Reply | Promise<Reply> {
    const { name } = query
    if (name.labelCount > 1 && (name.isUnder(LOCALHOST) || (this.#prefix && name.foldedLabel(0) === 'localhost'))) {
      this.#count.inc()
      if (this.#block.debug)
        this.#log.debug(
          `Intercepting localhost query for ${quote(name.toLowerCase())} ${questionType(query.type)}, from ${query.peer.address}`,
        )
      return loopback(query)
    }
    const zone = ZONES.find((each) => name.isUnder(each))
    return zone === undefined ? next(query) : inZone(query, zone)
  }
}

/** Replies are not authoritative, as CoreDNS has them. */
const reply = (query: Query, answers: readonly RR[]): Reply => query.reply('local', RCODE.NOERROR, { answers, aa: false })
const noData = (query: Query, owner: Name): Reply =>
  query.reply('local', RCODE.NOERROR, { authorities: [record(owner, TYPE.SOA, SOA)], aa: false })

const record = (name: Name, type: number, data: RData): RR => ({ name, type, class: 1, ttl: TTL, data })

function loopback(query: Query): Reply {
  if (query.type === TYPE.A) return reply(query, [record(query.name, TYPE.A, LOOPBACK4)])
  if (query.type === TYPE.AAAA) return reply(query, [record(query.name, TYPE.AAAA, LOOPBACK6)])
  return noData(query, query.name)
}

function inZone(query: Query, zone: Name): Reply {
  const { name, type } = query
  if (name.equals(zone)) {
    if (type === TYPE.SOA) return reply(query, [record(name, TYPE.SOA, SOA)])
    if (type === TYPE.NS) return reply(query, [record(name, TYPE.NS, TARGET)])
    return zone === LOCALHOST ? loopback(query) : noData(query, name)
  }
  // The zone in the client's spelling.
  const apex = name.strip(name.labelCount - zone.labelCount)
  if (name.equals(LOOPBACK_POINTER)) return type === TYPE.PTR ? reply(query, [record(name, TYPE.PTR, TARGET)]) : noData(query, apex)
  return query.reply('local', RCODE.NXDOMAIN, { authorities: [record(apex, TYPE.SOA, SOA)], aa: false })
}
