/**
 * Counting one query costs no text: its label values are small numbers that index arrays of children, made when first met.
 * One `Counts` belongs to one server, zone and view.
 */
import { rcodeName, TYPE, typeName } from '../../dns/index.js'
import type { Clock, Counter, Histogram, Passing, SetupContext } from '../contract.js'
import type { Families } from './families.js'

/** Types with a label of their own; all others share `other`, so that no client can make series at will. */
const NAMED: readonly number[] = [
  TYPE.AAAA,
  TYPE.A,
  TYPE.CNAME,
  TYPE.DNSKEY,
  TYPE.DS,
  TYPE.MX,
  TYPE.NSEC3,
  TYPE.NSEC,
  TYPE.NS,
  TYPE.PTR,
  TYPE.RRSIG,
  TYPE.SOA,
  TYPE.SRV,
  TYPE.TXT,
  TYPE.HTTPS,
  TYPE.SVCB,
  TYPE.IXFR,
  TYPE.AXFR,
  TYPE.ANY,
]
const OTHER = NAMED.length
/** Type → place of its child; every named type is below 256. */
const PLACES = Uint8Array.from({ length: 256 }, (_, type) => (NAMED.includes(type) ? NAMED.indexOf(type) : OTHER))
const placeOf = (type: number): number => (type < 256 ? PLACES[type]! : OTHER)
const TYPES = NAMED.length + 1
/** Of what is counted again and again, so much is shared. */
const MOST_KEPT = 2048

export interface Labels {
  readonly server: string
  readonly zone: string
  readonly view: string
}

interface Timing {
  readonly clock: Clock
  readonly endOfRound: SetupContext['endOfRound']
}

export class Counts {
  readonly labels: Labels
  readonly #families: Families
  readonly #zone: readonly [string, string, string]
  readonly #requests: (Counter | undefined)[] = new Array(4 * TYPES).fill(undefined)
  readonly #sizes: { query: Histogram; reply: Histogram }[] = []
  readonly #responses = new Map<string, (Counter | undefined)[]>()
  readonly #duration: Histogram
  readonly #timing: Timing
  readonly #again = new Map<string, Passing>()
  #dnssecOk: Counter | undefined
  /** Answers given again in this round, and when their queries came. */
  #owed = 0
  #since = 0

  constructor(families: Families, labels: Labels, timing: Timing) {
    this.#timing = timing
    this.labels = labels
    this.#families = families
    this.#zone = [labels.server, labels.zone, labels.view]
    this.#duration = families.duration.with(...this.#zone)
  }

  /** Positional, so that counting allocates nothing. Sizes in octets. */
  add(
    type: number,
    udp: boolean,
    family: 4 | 6,
    dnssecOk: boolean,
    querySize: number,
    replySize: number,
    rcode: number,
    plugin: string,
    seconds: number,
  ): void {
    if (dnssecOk) this.#dnssec().inc()
    this.#request(type, udp, family).inc()
    this.#duration.observe(seconds)
    const sizes = this.#sizes[udp ? 0 : 1] ?? this.#sizesOf(udp)
    sizes.query.observe(querySize)
    sizes.reply.observe(replySize)
    this.#response(rcode, plugin).inc()
  }

  /** Counts over UDP, of one question and its reply, for as often as they are the same. */
  again(type: number, dnssecOk: boolean, querySize: number, replySize: number, rcode: number, plugin: string): Passing {
    const key = `${placeOf(type)} ${dnssecOk} ${querySize} ${replySize} ${rcode} ${plugin}`
    let passing = this.#again.get(key)
    if (passing !== undefined) return passing
    const sizes = this.#sizes[0] ?? this.#sizesOf(true)
    const query = sizes.query.at(querySize)
    const reply = sizes.reply.at(replySize)
    const response = this.#response(rcode, plugin)
    passing = {
      passed: (family, received) => {
        if (dnssecOk) this.#dnssec().inc()
        this.#request(type, true, family).inc()
        query.inc()
        reply.inc()
        response.inc()
        this.#owe(received)
      },
    }
    if (this.#again.size >= MOST_KEPT) this.#again.clear()
    this.#again.set(key, passing)
    return passing
  }

  #owe(since: number): void {
    this.#since = since
    if (this.#owed++ === 0) this.#timing.endOfRound(this)
  }

  /** The round is over. */
  flush(): void {
    const { clock } = this.#timing
    this.#duration.observe((clock.monotonic() - this.#since) / 1000, this.#owed)
    this.#owed = 0
  }

  #dnssec(): Counter {
    this.#dnssecOk ??= this.#families.dnssecOk.with(...this.#zone)
    return this.#dnssecOk
  }

  #request(type: number, udp: boolean, family: 4 | 6): Counter {
    const place = placeOf(type)
    const index = ((udp ? 0 : 2) + (family === 4 ? 0 : 1)) * TYPES + place
    let requests = this.#requests[index]
    if (requests === undefined) {
      const label = place === OTHER ? 'other' : typeName(type)
      requests = this.#families.requests.with(...this.#zone, udp ? 'udp' : 'tcp', family === 4 ? '1' : '2', label)
      this.#requests[index] = requests
    }
    return requests
  }

  #sizesOf(udp: boolean): { query: Histogram; reply: Histogram } {
    const labels = [...this.#zone, udp ? 'udp' : 'tcp']
    const sizes = { query: this.#families.requestSize.with(...labels), reply: this.#families.responseSize.with(...labels) }
    this.#sizes[udp ? 0 : 1] = sizes
    return sizes
  }

  #response(rcode: number, plugin: string): Counter {
    let byRcode = this.#responses.get(plugin)
    if (byRcode === undefined) {
      byRcode = []
      this.#responses.set(plugin, byRcode)
    }
    let counter = byRcode[rcode]
    if (counter === undefined) {
      counter = this.#families.responses.with(...this.#zone, rcodeLabel(rcode), plugin)
      byRcode[rcode] = counter
    }
    return counter
  }
}

/** CoreDNS calls 16 BADSIG. */
const rcodeLabel = (rcode: number): string => (rcode === 16 ? 'BADSIG' : rcodeName(rcode))
