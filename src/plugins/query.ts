/** A query on its way through a chain. Made once per datagram; what a plugin wants otherwise it derives. */
import { type EdnsOption, Message, type Name, type RR } from '../dns/index.js'

export type Proto = 'udp' | 'tcp' | 'tls' | 'https'

/**
 * The other end and the address of ours that it wrote to. Text addresses without IPv6 zone. Once a query is answered the object may stand for
 * another client: copy what is to be kept.
 */
export interface Peer {
  readonly address: string
  readonly port: number
  readonly family: 4 | 6
  readonly localAddress: string
  readonly localPort: number
}

/** What the door knows of a query beside its message. */
export interface Arrival {
  readonly peer: Peer
  readonly proto: Proto
  /** The `server` label of the metrics: "dns://:53". */
  readonly server: string
  /** Monotonic milliseconds (Clock.monotonic) when the query came and when its answer is no longer wanted. */
  readonly received: number
  readonly deadline: number
  /** EDNS options as the client sent them. What a plugin sets later is not among them, which tells them apart. */
  readonly options?: readonly EdnsOption[]
}

export class Query {
  readonly message: Message
  readonly name: Name
  readonly type: number
  readonly class: number
  readonly arrival: Arrival
  /** The client set DO in its OPT record. */
  readonly dnssecOk: boolean
  /** The largest reply the client takes, in octets: by UDP its EDNS size, at least 512; else 65,535. */
  readonly size: number
  /** Asked by a plugin, not by a client: not counted or logged again. */
  readonly internal: boolean
  /** The query that the client sent: this one, or the one that this was derived from. Logs name it. */
  readonly asked: Query
  /** How many derivations and `ctx.resolve` calls lie between this and the client's query. */
  readonly depth: number
  /** Zone of the server block's key that matched, presentation form, lower-case: "." or "example.org.". */
  zone = '.'
  /** Name of the view that took the query, or "". */
  view = ''
  metadata: Map<string, () => string> | undefined = undefined
  /**
   * Octets that stand for the client's own EDNS size, where a plugin (`bufsize`) lowered it: the reply's OPT states them, and by UDP the
   * reply fits in them. Set it on the query that came in, before `next`; derived queries share it.
   */
  lowered: number | undefined = undefined
  /**
   * Whoever is asked for this is asked with AD set, so that one answer serves clients with and without it (RFC 6840 §5.7). Set by plugins that
   * keep answers, before `next`.
   */
  authentic = false
  /** Monotonic milliseconds after which nobody wants the answer any more; `cancel` brings it forward. */
  deadline: number
  /** Only while explaining: takes remarks of plugins. */
  note: ((text: string) => void) | undefined = undefined

  constructor(message: Message, arrival: Arrival, internal = false, depth = 0, asked?: Query) {
    const question = message.question
    if (question === undefined) throw new Error('a query needs a question')
    this.message = message
    this.name = question.name
    this.type = question.type
    this.class = question.class
    this.arrival = arrival
    this.deadline = arrival.deadline
    const edns = message.edns
    this.dnssecOk = edns?.dnssecOk ?? false
    this.size = arrival.proto === 'udp' ? Math.max(512, edns?.size ?? 512) : 65_535
    this.internal = internal
    this.asked = asked ?? this
    this.depth = depth
  }

  get peer(): Peer {
    return this.arrival.peer
  }
  get proto(): Proto {
    return this.arrival.proto
  }
  get server(): string {
    return this.arrival.server
  }
  /** The same client with another question (or another message); internal. Zone, view and metadata carry over. */
  derive(name: Name, type: number = this.type, message: Message = this.message): Query {
    const question = { name, type, class: this.class, end: 0 }
    return this.#handDown(new Query(message.with({ question }), this.arrival, true, this.depth + 1, this.asked))
  }

  /** The same query, asked by the same client and as internal as this one, with other flags or EDNS in its message. */
  carrying(message: Message): Query {
    return this.#handDown(new Query(message, this.arrival, this.internal, this.depth, this.internal ? this.asked : undefined))
  }

  #handDown(query: Query): Query {
    query.zone = this.zone
    query.view = this.view
    query.metadata = this.metadata
    query.lowered = this.lowered
    query.authentic = this.authentic
    query.deadline = this.deadline
    query.note = this.note
    return query
  }

  /** A reply to this query made by plugin `by`. AA is set unless `aa` is false. */
  reply(
    by: string,
    rcode: number,
    sections: { answers?: readonly RR[]; authorities?: readonly RR[]; additionals?: readonly RR[]; aa?: boolean; live?: boolean } = {},
  ): Message {
    const { live = false, aa = true, ...records } = sections
    const reply = Message.reply(this.message, rcode, aa, records)
    reply.by = by
    reply.live = live
    return reply
  }
}
