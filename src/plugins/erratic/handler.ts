/** `erratic`: fixed answers that come late, cut, or not at all; for trying out clients. */
import { type Message, Name, RCODE, type RData, type RR, TYPE } from '../../dns/index.js'
import { type Clock, DROP, type Plugin, type Query, type Reply } from '../contract.js'

/** Amounts: one of so many queries; 0 is none. */
export interface Options {
  readonly drop: number
  readonly delay: number
  /** Milliseconds of a delay. */
  readonly duration: number
  readonly truncate: number
  /** Thirty A records in place of one. */
  readonly large: boolean
}

const A: RData = { kind: 'A', address: '192.0.2.53' }
const AAAA: RData = { kind: 'AAAA', address: '2001:db8::53' }

export class Erratic implements Plugin {
  readonly name = 'erratic'
  readonly #options: Options
  readonly #clock: Clock
  #count = 0

  constructor(options: Options, clock: Clock) {
    this.#options = options
    this.#clock = clock
  }

  serveDNS(query: Query): Reply | Promise<Reply> {
    const { drop, delay, duration, truncate } = this.#options
    const count = this.#count++
    if (drop > 0 && count % drop === 0) return DROP
    // CoreDNS masks bits here where it divides above; clients' tests rely on which ones are cut.
    const reply = this.#reply(query, truncate > 0 && (count & truncate) === 0)
    if (delay === 0 || count % delay !== 0) return reply
    return new Promise((resolve) => void this.#clock.timer(duration, () => resolve(reply)))
  }

  /** True between the third and the fifth query only, so that /ready flips. */
  ready(): boolean {
    return this.#count >= 3 && this.#count < 5
  }

  #reply(query: Query, tc: boolean): Reply {
    const { name } = query
    switch (query.type) {
      case TYPE.A:
        return query
          .reply('erratic', RCODE.NOERROR, { answers: Array(this.#options.large ? 30 : 1).fill(record(name, TYPE.A, A)) })
          .with({ tc })
      case TYPE.AAAA:
        return query.reply('erratic', RCODE.NOERROR, { answers: [record(name, TYPE.AAAA, AAAA)] }).with({ tc })
      case TYPE.AXFR:
        return { stream: transfer(query, tc), by: 'erratic' }
      default:
        // Written by the server: no plugin label, and nothing for `errors`.
        return query.reply('', RCODE.SERVFAIL, { aa: false })
    }
  }
}

const record = (name: Name, type: number, data: RData): RR => ({ name, type, class: 1, ttl: 0, data })

/** A small zone in one message; cut short, it lacks the closing SOA. */
async function* transfer(query: Query, short: boolean): AsyncGenerator<Message> {
  const zone = query.name
  const [a, b] = [Name.parse('a.').append(zone), Name.parse('b.').append(zone)]
  const soa = record(zone, TYPE.SOA, {
    kind: 'SOA',
    mname: Name.parse('sns.dns.icann.org.'),
    rname: Name.parse('noc.dns.icann.org.'),
    serial: 2_018_050_825,
    refresh: 7200,
    retry: 3600,
    expire: 1_209_600,
    minimum: 3600,
  })
  const answers = [
    soa,
    record(zone, TYPE.NS, { kind: 'NAME', target: b }),
    record(zone, TYPE.NS, { kind: 'NAME', target: a }),
    record(a, TYPE.AAAA, { kind: 'AAAA', address: '2001:bd8::53' }),
    record(b, TYPE.AAAA, { kind: 'AAAA', address: '2001:500::54' }),
  ]
  yield query.reply('erratic', RCODE.NOERROR, { answers: short ? answers : [...answers, soa] })
}
