/**
 * The plugin contract, public as "cairndns/plugin". A plugin is a module whose default export is a PluginModule. Built-in plugins and
 * npm packages use the same one.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Argument, CorefileError, type Directive, nearest, type Position, type Transport, type ZoneKey } from '../corefile/tree.js'
import type { Message, Name, RR } from '../dns/index.js'
import type { ConnectDatagram } from './datagrams.js'
import type { Arrival, Query } from './query.js'
import type { Passing, Standing } from './standing.js'

export {
  isAddress,
  joinHostPort,
  parseBoolean,
  parseDuration,
  parseHostPort,
  parseInteger,
  parseUnsigned,
  splitHostPort,
  zonesOf,
  zonesOrDefault,
} from '../corefile/args.js'
export { type AddressTransport, normalizeZone, splitTransport } from '../corefile/keys.js'
export { quote } from '../corefile/quote.js'
export type { ConnectDatagram, DatagramOptions, DatagramSocket } from './datagrams.js'
export { endpointAddress } from './endpoint.js'
export { compileExpression, type ExprEnv, type Expression, type ExprType, type ExprValue, isReserved } from './expression.js'
export { Later, type ReplyWaiter, type Step } from './later.js'
export { compilePattern, MAX_PATTERN, type Pattern } from './pattern.js'
export * from './query.js'
export { AS_GIVEN, GONE, type Passing, type Standing, UNTOUCHED } from './standing.js'
export { isCrash, rcodeOf, type Watcher, watch } from './watch.js'
export { formatDuration, ONCE, wrongCount } from './words.js'
export { type Argument, CorefileError, type Directive, nearest, type Position, type Transport, type ZoneKey }

/** The version a module states in `apiVersion`; the loader refuses any other. */
export const API_VERSION = 1

/** Send nothing: the client is left to its time-out. */
export const DROP: unique symbol = Symbol('drop')

/** A reply of many messages (AXFR, IXFR over TCP), pulled one by one. */
export interface MessageStream {
  readonly stream: AsyncIterable<Message>
  by: string
}

export type Reply = Message | MessageStream | typeof DROP
export type Handler = (query: Query) => Reply | Promise<Reply>

/**
 * One use of a plugin in one server block. All members but the name are optional. `serveDNS` returns a reply, or a promise of one only
 * where it has to wait; throwing or rejecting answers SERVFAIL (or the ServeError's rcode) and lets `errors` log it.
 */
export interface Plugin {
  readonly name: string
  /** `next` may be called 0…n times, with this or a derived query. */
  serveDNS?(query: Query, next: Handler): Reply | Promise<Reply>
  /** Sockets, timers and watches begin here. May throw: the generation is given up. Runs before the new configuration serves. */
  onStartup?(): void | Promise<void>
  /** After the last query of this generation. `reload`: a successor is serving already. */
  onShutdown?(why: 'reload' | 'exit'): void | Promise<void>
  /** false keeps /ready at 503 and names this plugin there. */
  ready?(): boolean
  /** Adds to `query.metadata` (set by the caller); only called when the block has `metadata`. */
  metadata?(query: Query): void
  /**
   * Whether this reply, which the chain has just given at once, may be given again by the server alone, to the same question with the same
   * flags and EDNS (DO; options: none) over UDP. Asked from the front of the chain on, up to the first plugin that returns a `Standing`, which
   * says that the answer is its own. undefined, or no such member: no. `reply` is what the client gets.
   */
  stands?(query: Query, reply: Message): Standing | Passing | undefined
  /** View filter: false passes the query to the next block of the same zone. */
  filter?(query: Query): boolean
  /**
   * The records of a zone for `transfer`, pulled as fast as the client reads: its SOA, all others, the SOA again. The SOA alone if `serial`
   * (0: none given, an AXFR) is the current one. undefined: not authoritative for a zone of this very name.
   */
  transfer?(zone: Name, serial: number): Iterable<RR> | undefined
  /** Offered by `transfer`: tells the secondaries that `zone` changed. Rejects with an Error that names those who did not take it. */
  notify?(zone: Name): Promise<void>
  /** True where the plugin changes or watches replies of those behind it the way that makes CoreDNS name it in the `plugin` label. */
  readonly wraps?: boolean
}

/** What a module exports by default. */
export interface PluginModule {
  readonly name: string
  readonly apiVersion: 1
  /**
   * All uses of the directive in one block. Parses and returns: no socket, timer or watch before `onStartup`; files may be read. Throw
   * `ctx.error(...)` for what is wrong. Runs in every serving thread, and in `check`. null: nothing for the chain.
   */
  setup(uses: readonly Directive[], ctx: SetupContext): Plugin | Plugin[] | null
  /** The part that lives in the control thread: HTTP endpoints, sources, pollers. Runs once per block and generation. */
  control?(uses: readonly Directive[], ctx: ControlContext): ControlPart | undefined
  /** In place of `control`, where that takes code which serving threads should not have to load: imports it, in the control thread only. */
  loadControl?(): Promise<NonNullable<PluginModule['control']>>
}

export interface ControlPart {
  /** May throw: the generation is given up. */
  onStartup?(): void | Promise<void>
  /** SIGTERM or SIGINT came: called on all, in order, and waited for before the sockets close (lameduck). Not at a reload. */
  onFinalShutdown?(): void | Promise<void>
  onShutdown?(why: 'reload' | 'exit'): void | Promise<void>
}

/**
 * An answer that came from no chain: REFUSED outside all blocks or for the class, SERVFAIL without a question or after a crash. What is
 * turned away by its header or is no DNS message at all is not among them.
 */
export interface ServerReply {
  readonly arrival: Arrival
  /** Type of the question; 0 where there is none. */
  readonly type: number
  readonly dnssecOk: boolean
  /** Octets of the query and of the reply. */
  readonly querySize: number
  readonly replySize: number
  readonly rcode: number
}

interface CommonContext {
  /** The server block; config-only plugins edit its mutable members. */
  readonly block: BlockConfig
  /** Prefixes lines with `plugin/NAME: `. */
  readonly log: Logger
  readonly clock: Clock
  readonly metrics: MetricsScope
  /** True in `cairndns check`: nothing will be started. What this machine lacks (files, interfaces) is then a `note`, not an error. */
  readonly checking: boolean
  /** `plugin/NAME: file:line - Error during parsing: message` with column and, given candidates, "did you mean". */
  error(message: string, at?: Directive | Argument | Position, candidates?: Iterable<string>): CorefileError
  /** For what CoreDNS words without a place: `plugin/NAME: message`. `check` tells the place all the same. */
  fail(message: string, at?: Directive | Argument | Position): Error
  /** A remark of `check`; at a start it is dropped. */
  note(message: string, at?: Directive | Argument | Position): void
  /** Logged as a warning at start, shown by `check`. */
  warn(message: string, at?: Directive | Argument | Position): void
  /** A path of the Corefile made absolute against `root` (or the working directory). */
  path(file: string): string
}

export interface SetupContext extends CommonContext {
  /** Sibling in the same block, by plugin name; use from onStartup on. */
  find(name: string): Plugin | undefined
  findAll(name: string): readonly Plugin[]
  /** All plugins of the block in the order of the chain; complete from onStartup on. */
  readonly chain: readonly Plugin[]
  /** All blocks of this generation that hold a plugin of this name; use from onStartup on. */
  everywhere(name: string): readonly { readonly block: BlockConfig; readonly plugin: Plugin }[]
  /** Through the router, views and the whole chain of the right block. undefined: no block covers the name, or the depth limit of 8 is reached. */
  resolve(query: Query): Reply | Promise<Reply> | undefined
  /** One value per key over all generations, counted: made when first asked for, disposed after the last generation that asked has ended. */
  shared<T>(key: string, create: () => T, dispose: (value: T) => void): T
  /** UDP sockets to other servers, in the loop that serves; from onStartup on. */
  readonly connectDatagram: ConnectDatagram
  /**
   * Calls `what.flush()` once, when all queries that the serving thread took in together have been looked at; at once where it takes them in one
   * by one.
   */
  endOfRound(what: { flush(): void }): void
  /** Runs on final bytes, after OPT and truncation (TSIG). */
  finish(fn: (bytes: Buffer, query: Query) => Buffer): void
  /** Hears of answers that the server gives by itself, on every listener of this generation (CoreDNS counts them with zone "dropped"). */
  onServerReply(fn: (reply: ServerReply) => void): void
  /** Receives what the control part's source of the same key emits. One replica per key: a second call with a key already served is ignored. */
  replica<D>(key: string, replica: Replica<D>): void
  /** Logs `[FATAL] plugin/NAME: text` and ends the process with exit code 1, as a fatal error while serving does. */
  fatal(text: string): void
  /**
   * A number that all serving threads count on together. One for each call; made in set-up, in the same order in every thread. What a thread
   * had added is gone when it ends.
   */
  tally(): Tally
  /**
   * A line to the plugin's counterparts in the other serving threads: `receive` gets what any of them tells under this key, a copy. Not
   * bound to a generation: `close` ends it. Meant for what happens seldom.
   */
  counterparts<T>(key: string, receive: (value: T) => void): Counterparts<T>
  /** Index and number of serving threads. */
  readonly thread: { readonly index: number; readonly count: number }
}

export interface Tally {
  add(by: number): void
  /** Over all threads. */
  total(): number
}

export interface Counterparts<T> {
  tell(value: T): void
  close(): void
}

export interface ControlContext extends CommonContext {
  /** A process-wide HTTP endpoint. Blocks that name the same address and path share the first handler. Listens when the generation starts, before anything old is closed. */
  http(address: string, path: string, handler: HttpHandler): void
  /** Kept running over reloads as long as some generation names its key; started once. */
  source<D>(source: Source<D>): void
  readonly process: ControlProcess
  /** True for the first block of the Corefile that uses this directive: what is there once per process is done by it. */
  readonly first: boolean
}

/** What the control thread knows of the whole process. */
export interface ControlProcess {
  /** Names of the plugins that are not ready at this moment, over all threads and the blocks that use `ready`; empty: ready. */
  notReady(): readonly string[] | Promise<readonly string[]>
  /** What the running sources remark, a line each. */
  remarks(): readonly string[]
  /** False while a serving thread has given no sign of life for 2 s. */
  healthy(): boolean
  /** Prometheus text of all metrics. */
  metricsText(): Promise<{ contentType: string; body: string }>
  /** Reads the Corefile again and changes over to it; resolves when done, to the reason if it could not. Failures are logged and counted. */
  reload(): Promise<Error | undefined>
  /** Hash of the Corefile and its imports as they are on disk now; undefined if it cannot be read or parsed. */
  readConfig(): { readonly sha512: string; readonly error: Error | undefined }
  /** Ends the process as a fatal error does, with this exit code. */
  exit(code: number): void
}

export type HttpHandler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>

/** Watched data, made once in the control thread. D must survive structured cloning. */
export interface Source<D = unknown> {
  /** Identity: equal keys are the same source, kept over a reload. */
  readonly key: string
  start(emit: (part: readonly D[]) => void): void | Promise<void>
  /**
   * The whole state in parts of at most some 500 records, for a thread that comes new. Read over several turns, with what is emitted
   * meanwhile sent between them: so each part is what is true when it is read, and to apply a change twice must do no harm.
   */
  snapshot(): Iterable<readonly D[]>
  stop(): void | Promise<void>
  /** What an operator should know of it now, for the body of /ready: a missing permission, old data. undefined: nothing. */
  remark?(): string | undefined
}

/** The copy in a serving thread. begin…apply…swap is a snapshot; apply alone a delta. */
export interface Replica<D = unknown> {
  begin(): void
  apply(part: readonly D[]): void
  swap(): void
}

export interface Logger {
  debug(text: string): void
  info(text: string): void
  warning(text: string): void
  error(text: string): void
  /** A line `[LEVEL] text` without the plugin's prefix. */
  plain(level: 'DEBUG' | 'INFO' | 'WARNING' | 'ERROR', text: string): void
}

export interface Clock {
  /** Wall clock, ms since 1970. */
  now(): number
  /** Monotonic ms, with fraction. */
  monotonic(): number
  /** The same as it was when this turn of the loop began, where the loop knows: costs next to nothing there, for what need not be exact. */
  recent(): number
  /** Runs `fn` once after `ms`; does not keep the process alive. */
  timer(ms: number, fn: () => void): Timer
}
export interface Timer {
  cancel(): void
}

/** Families are made in set-up; children are cached by the caller. Names and labels outlive reloads: the same name gives the same family. */
export interface MetricsScope {
  counter(name: string, help: string, labels: readonly string[]): MetricFamily<Counter>
  gauge(name: string, help: string, labels: readonly string[]): MetricFamily<Gauge>
  histogram(name: string, help: string, labels: readonly string[], buckets: readonly number[]): MetricFamily<Histogram>
}
export interface MetricFamily<T> {
  /** The child with these label values, made on first use. One map look-up. */
  with(...values: readonly string[]): T
  /** Takes the child out of the text until `with` names it again. */
  remove(...values: readonly string[]): void
}
export interface Counter {
  inc(by?: number): void
}
export interface Gauge {
  set(value: number): void
  inc(by?: number): void
}
export interface Histogram {
  /** `times`: 1 if not given. */
  observe(value: number, times?: number): void
  /** For a value that is observed again and again. */
  at(value: number): Counter
}

/** One server block as it will serve. */
export interface BlockConfig {
  readonly keys: readonly ZoneKey[]
  /** Zones of the keys, lower-case presentation form. */
  readonly zones: readonly string[]
  readonly zoneNames: readonly Name[]
  readonly transport: Transport
  /** Index in the Corefile. */
  readonly index: number
  /** The `server` labels of this block, "dns://:53" (with bind: "dns://127.0.0.1:53"). Final only from onStartup on. */
  readonly servers: readonly string[]
  /** Directives of the block, as parsed. */
  readonly directives: readonly Directive[]
  /** Addresses to listen on; undefined: the wildcard. */
  bind: readonly string[] | undefined
  /** Where relative paths count from; "" is the working directory. */
  root: string
  debug: boolean
  stacktrace: boolean
  /** Class CHAOS is let in on the listener. */
  chaos: boolean
  viewName: string
  tls: TlsConfig | undefined
  /** Milliseconds. */
  timeouts: { read: number; write: number; idle: number }
  /** Queries on one TCP or TLS connection before it is closed; undefined: no limit. */
  maxTcpQueries: number | undefined
  /** Sockets per address, and so serving threads (`multisocket`); undefined: not said. */
  sockets: number | undefined
  /** HTTPS connections at once (`https` directive); undefined: the default. */
  httpsMaxConnections: number | undefined
}

export interface TlsConfig {
  /** PEM */
  readonly cert: string | undefined
  readonly key: string | undefined
  readonly ca: string | undefined
  /** File that session keys are appended to, in NSS key log format; for debugging. */
  readonly keylog?: string | undefined
  readonly clientAuth: 'nocert' | 'request' | 'require' | 'verify_if_given' | 'require_and_verify'
}

/** A plugin's failure with the rcode that the client gets; any other thrown error means SERVFAIL. `errors` logs it either way. */
export class ServeError extends Error {
  readonly rcode: number
  /** Those who could know were asked and none answered (RFC 9520 §3.2): `cache` keeps such a failure as it keeps a SERVFAIL. */
  readonly unresolved: boolean
  constructor(message: string, rcode = 2, options?: ErrorOptions & { readonly unresolved?: boolean }) {
    // An outcome, not a fault: while an upstream is dead there is one for each query, and walking the stack would be most of its cost.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(message, options)
    Error.stackTraceLimit = stackTraceLimit
    this.name = 'ServeError'
    this.rcode = rcode
    this.unresolved = options?.unresolved ?? false
  }
}

export const isPromise = <T>(value: T | Promise<T>): value is Promise<T> => typeof (value as Promise<T> | undefined)?.then === 'function'

/** Runs `fn` on the message of a reply, at once or when it comes; streams and DROP pass by. */
export function after(result: Reply | Promise<Reply>, fn: (message: Message) => Reply | Promise<Reply>): Reply | Promise<Reply> {
  if (isPromise(result)) return result.then((reply) => (isMessage(reply) ? fn(reply) : reply))
  return isMessage(result) ? fn(result) : result
}

export const isMessage = (reply: Reply): reply is Message => reply !== DROP && !('stream' in reply)
