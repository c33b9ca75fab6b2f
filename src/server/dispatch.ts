/** One query, from octets to octets: the door, the chain, the reply. Answers in the same turn of the loop wherever the chain does. */
import { CLASS, type Edns, type EdnsOption, Message, type Question, RCODE, WireError } from '../dns/index.js'
import {
  type Arrival,
  type Clock,
  type Counter,
  DROP,
  isPromise,
  Later,
  type Logger,
  type MessageStream,
  type MetricsScope,
  type Proto,
  Query,
  type Reply,
  type ReplyWaiter,
  ServeError,
  type ServerReply,
} from '../plugins/contract.js'
import type { Block } from './block.js'
import { Deadlines, Waiting } from './deadline.js'
import { ACCEPT, admit, decodeQuery, IGNORE, legibleQuestion } from './door.js'
import type { Listener } from './listeners/listener.js'
import { type Origin, HEADROOM as START } from './listeners/ports.js'
import type { Router } from './router.js'
import { replyLimit, writeReply } from './send.js'
import type { StandingAnswers } from './standing.js'

/** Milliseconds that a query may take in all. Plugins that wait give up earlier by themselves. */
const QUERY_TIME = 10_000
/** Queries of a thread that may wait at once; further ones are not answered. */
const MAX_WAITING = 16_384
const NO_OPTIONS: readonly EdnsOption[] = []
const BADVERS_EDNS: Edns = { size: 0, extendedRcode: RCODE.BADVERS >> 4, version: 0, dnssecOk: false, z: 0, options: [] }

/** What of a generation the dispatcher needs. */
export interface Serving {
  readonly id: number
  readonly reported: readonly ((reply: ServerReply) => void)[]
  began(): void
  ended(): void
}

export class Dispatcher {
  readonly #clock: Clock
  readonly #log: Logger
  readonly #deadlines: Deadlines
  readonly #serving: (generation: number) => Serving | undefined
  readonly #out = Buffer.allocUnsafeSlow(START + 65_535)
  readonly #panics: Counter
  readonly #shed: Counter
  /** Octets of the message sent last. */
  #length = 0

  constructor(clock: Clock, log: Logger, metrics: MetricsScope, serving: (generation: number) => Serving | undefined) {
    this.#clock = clock
    this.#log = log
    this.#serving = serving
    this.#deadlines = new Deadlines(clock)
    this.#panics = metrics.counter('coredns_panics_total', 'A metrics that counts the number of panics.', []).with()
    this.#shed = metrics.counter('cairndns_shed_queries_total', 'Queries dropped because too many were waiting for an answer.', []).with()
  }

  get waiting(): number {
    return this.#deadlines.size
  }

  close(): void {
    this.#deadlines.close()
  }

  readonly receive = (listener: Listener, bytes: Buffer, length: number, origin: Origin): void => {
    try {
      if (answersFor(listener.service.router, origin.proto)?.answer(bytes, length, origin, this.#clock.recent()) === true) return
    } catch (error) {
      this.#crashed(listener.server, error)
      origin.end()
      return
    }
    const verdict = admit(bytes, length)
    if (verdict !== ACCEPT) {
      if (verdict !== IGNORE) this.#turnAway(bytes, verdict, undefined, origin)
      origin.end()
      return
    }
    try {
      this.#admitted(listener, bytes, length, origin)
    } catch (error) {
      this.#crashed(listener.server, error)
    }
  }

  /** A fault behind the chain (a finishing hook, a counting one): one answer is lost, the server stays. */
  #crashed(server: string, error: unknown): void {
    this.#panics.inc()
    this.#log.error(`Recovered from panic in server: "${server}" ${error instanceof Error ? error.stack : error}`)
  }

  #admitted(listener: Listener, bytes: Buffer, length: number, origin: Origin): void {
    let message: Message
    try {
      message = decodeQuery(bytes, length)
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      this.#turnAway(bytes, RCODE.FORMERR, legibleQuestion(bytes, length), origin)
      origin.end()
      return
    }
    const { service } = listener
    const serving = this.#serving(service.generation)
    if (serving === undefined) {
      // Its address was given up, and its last query is answered.
      origin.end()
      return
    }
    const received = origin.proto === 'udp' ? this.#clock.recent() : this.#clock.monotonic()
    const arrival = {
      peer: origin.peer,
      proto: origin.proto,
      server: listener.server,
      received,
      deadline: received + QUERY_TIME,
      options: message.edns?.options ?? NO_OPTIONS,
    }
    if (message.question === undefined) new Exchange(this, serving, origin, arrival).answerBare(message)
    else this.#route(service.router, new Query(message, arrival), serving, origin)
  }

  #route(router: Router, query: Query, serving: Serving, origin: Origin): void {
    const edns = query.message.edns
    if (query.class !== CLASS.IN && !router.chaos) this.#refuse(query, serving, origin)
    else if (edns !== undefined && edns.version !== 0) new Exchange(this, serving, origin, query.arrival).badVersion(query)
    else {
      let block: Block | undefined
      try {
        block = router.route(query)
      } catch (error) {
        // A view's filter or a metadata plugin broke.
        this.failed(undefined, query, new Exchange(this, serving, origin, query.arrival), error)
        return
      }
      if (block === undefined) this.#refuse(query, serving, origin)
      else this.#run(block, query, serving, origin, answersFor(router, query.proto))
    }
  }

  #refuse(query: Query, serving: Serving, origin: Origin): void {
    new Exchange(this, serving, origin, query.arrival).answerAs(query, RCODE.REFUSED, true)
  }

  /** Where the chain answers at once, as it does nearly always, nothing is made to keep track of the query. */
  #run(block: Block, query: Query, serving: Serving, origin: Origin, answers: StandingAnswers | undefined): void {
    let result: Reply | Promise<Reply>
    try {
      result = block.handler!(query)
    } catch (error) {
      this.failed(block, query, new Exchange(this, serving, origin, query.arrival), error)
      return
    }
    if (result instanceof Message) {
      this.#deliver(block, query, origin, result)
      origin.end()
      if (answers !== undefined && block.standing && result.isPlain && query.message.question!.kept !== undefined)
        answers.learn(block, query, result)
      return
    }
    const exchange = new Exchange(this, serving, origin, query.arrival)
    // Or nothing at all, which breaks the contract; plugins are not all type-checked.
    if (!isPromise(result)) {
      this.#settle(block, query, exchange, result)
      return
    }
    // Shed or not, the chain goes on with the octets.
    exchange.origin.retain()
    if (this.#deadlines.size >= MAX_WAITING) {
      this.#shed.inc()
      result.catch((error) => this.#log.debug(`shed query failed: ${error}`))
      exchange.end()
      return
    }
    this.#wait(block, query, exchange, result)
  }

  #wait(block: Block, query: Query, exchange: Exchange, result: Promise<Reply>): void {
    exchange.wait(query, block)
    this.#deadlines.add(exchange)
    if (result instanceof Later) result.awaitedBy(exchange)
    else
      result.then(
        (reply) => exchange.ready(reply, undefined),
        (error: unknown) => exchange.ready(undefined, error),
      )
  }

  /** What was waited for has come, `reply` or `error`. */
  ready(block: Block, query: Query, exchange: Exchange, reply: Reply | undefined, error: unknown): void {
    if (!this.#deadlines.remove(exchange)) return
    try {
      if (reply === undefined) this.failed(block, query, exchange, error ?? new TypeError('a plugin returned no reply'))
      else this.#settle(block, query, exchange, reply)
    } catch (fault) {
      this.#crashed(query.server, fault)
    }
  }

  #settle(block: Block, query: Query, exchange: Exchange, reply: Reply): void {
    if (reply === DROP) exchange.end()
    else if (reply instanceof Message) {
      this.send(block, query, exchange, reply)
      exchange.end()
    } else if (reply !== undefined && 'stream' in reply) void this.#stream(block, query, exchange, reply)
    else this.failed(block, query, exchange, new TypeError('a plugin returned no reply'))
  }

  /** As `#deliver`, for an exchange. */
  send(block: Block | undefined, query: Query, exchange: Exchange, reply: Message): boolean {
    const sent = this.#deliver(block, query, exchange.origin, reply)
    exchange.sent = this.#length
    return sent
  }

  /** Writes and sends one message, of `#length` octets; a reply that cannot be written is SERVFAIL. Returns false if the client is gone. */
  #deliver(block: Block | undefined, query: Query, origin: Origin, reply: Message): boolean {
    const out = origin.room(replyLimit(query)) ?? this.#out
    let length: number
    try {
      length = writeReply(query, reply, out, START)
    } catch (error) {
      this.#log.error(`reply to ${query.name} cannot be written: ${error instanceof WireError ? error.message : (error as Error).stack}`)
      length = writeReply(query, Message.reply(query.message, RCODE.SERVFAIL), out, START)
    }
    this.#length = length
    if (block === undefined || block.finishers.length === 0) return origin.send(out, START, length)
    let bytes: Buffer = out.subarray(START, START + length)
    for (const finish of block.finishers) bytes = finish(bytes, query)
    return this.#sendOctets(origin, bytes)
  }

  #sendOctets(origin: Origin, bytes: Buffer): boolean {
    if (bytes.buffer !== this.#out.buffer || bytes.byteOffset !== START) this.#out.set(bytes, START)
    this.#length = bytes.length
    return origin.send(this.#out, START, bytes.length)
  }

  sendBytes(exchange: Exchange, bytes: Buffer): boolean {
    const sent = this.#sendOctets(exchange.origin, bytes)
    exchange.sent = bytes.length
    return sent
  }

  async #stream(block: Block, query: Query, exchange: Exchange, reply: MessageStream): Promise<void> {
    if (exchange.wait(query, block)) exchange.origin.retain()
    try {
      for await (const message of reply.stream) {
        if (!this.send(block, query, exchange, message)) break
        await exchange.origin.drained()
      }
      exchange.end()
    } catch (error) {
      this.failed(block, query, exchange, error)
    }
  }

  /** The chain threw. What is a fault of ours, not an outcome, is logged here whether or not the block has `errors`. */
  failed(block: Block | undefined, query: Query, exchange: Exchange, error: unknown): void {
    const crash = !(error instanceof ServeError) && isProgrammingError(error)
    if (crash) {
      this.#panics.inc()
      const stack = block?.config.stacktrace ? `\n${(error as Error).stack}` : ''
      this.#log.error(`Recovered from panic in server: "${query.server}" ${(error as Error).message}${stack}`)
    }
    exchange.answerAs(query, error instanceof ServeError ? error.rcode : RCODE.SERVFAIL, crash)
  }

  /** A refusal from the header alone, with the header's own flags, as the library under CoreDNS sends it. */
  #turnAway(bytes: Buffer, rcode: number, question: Question | undefined, origin: Origin): void {
    const out = this.#out
    const flags = bytes.readUInt16BE(2)
    const opcode = rcode === RCODE.NOTIMP ? flags & 0x7800 : 0
    out.writeUInt16BE(bytes.readUInt16BE(0), START)
    // QR on; AA and Z off; TC, RD, RA, AD and CD as they came.
    out.writeUInt16BE(0x8000 | opcode | (flags & 0x03b0) | rcode, START + 2)
    out.fill(0, START + 4, START + 12)
    let at = START + 12
    if (question !== undefined) {
      out.writeUInt16BE(1, START + 4)
      out.set(question.name.wire, at)
      at += question.name.wire.length
      out.writeUInt16BE(question.type, at)
      out.writeUInt16BE(question.class, at + 2)
      at += 4
    }
    origin.send(out, START, at - START)
  }
}

/** Answers stand for datagrams only: a connection costs so much more that it would not be felt. */
const answersFor = (router: Router, proto: Proto): StandingAnswers | undefined => (proto === 'udp' ? router.answers : undefined)

/** One query and the way back to its client. */
class Exchange extends Waiting implements ReplyWaiter {
  readonly origin: Origin
  readonly arrival: Arrival
  readonly deadline: number
  /** Octets of the last message sent. */
  sent = 0
  readonly #dispatcher: Dispatcher
  readonly #serving: Serving
  /** What waits, once it does, and the block whose chain it went through. */
  #query: Query | undefined = undefined
  #block: Block | undefined = undefined

  constructor(dispatcher: Dispatcher, serving: Serving, origin: Origin, arrival: Arrival) {
    super()
    this.#dispatcher = dispatcher
    this.#serving = serving
    this.origin = origin
    this.arrival = arrival
    this.deadline = arrival.deadline
  }

  /** The chain needs time: the generation is kept until the end. false: it was so already. */
  wait(query: Query, block: Block): boolean {
    if (this.#query !== undefined) return false
    this.#query = query
    this.#block = block
    this.#serving.began()
    return true
  }

  /** A reply is written at once. (One of many messages has octets of its own.) */
  get keeps(): boolean {
    return false
  }
  ready(reply: Reply | undefined, error: unknown): void {
    this.#dispatcher.ready(this.#block!, this.#query!, this, reply, error)
  }

  end(): void {
    this.origin.end()
    if (this.#query !== undefined) this.#serving.ended()
  }

  expire(): void {
    if (this.#query !== undefined) this.answerAs(this.#query, RCODE.SERVFAIL, false)
  }

  /** An empty reply of the server's own. `report`: plugins that count hear of it. */
  answerAs(query: Query, rcode: number, report: boolean): void {
    this.#dispatcher.send(undefined, query, this, Message.reply(query.message, rcode))
    if (report) this.#report(query.message, query.type, query.dnssecOk, rcode)
    this.end()
  }

  badVersion(query: Query): void {
    const reply = Message.reply(query.message, RCODE.BADVERS).with({ edns: BADVERS_EDNS })
    this.#dispatcher.sendBytes(this, reply.toBuffer(512))
    this.end()
  }

  /** SERVFAIL for a message that has no question. */
  answerBare(message: Message): void {
    this.#dispatcher.sendBytes(this, Message.reply(message, RCODE.SERVFAIL).toBuffer(512))
    this.#report(message, 0, false, RCODE.SERVFAIL)
    this.end()
  }

  #report(message: Message, type: number, dnssecOk: boolean, rcode: number): void {
    const reply = { arrival: this.arrival, type, dnssecOk, querySize: message.length, replySize: this.sent, rcode }
    for (const fn of this.#serving.reported) fn(reply)
  }
}

const isProgrammingError = (error: unknown): boolean =>
  error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError
