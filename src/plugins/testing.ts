/** Test helpers for plugins, without a server: a set-up context, queries, a fake clock. Part of the public "cairndns/testing". */

import { parseCorefile } from '../corefile/index.js'
import type { Directive, Position, ZoneKey } from '../corefile/tree.js'
import { CLASS, type Edns, Message, Name, typeNumber } from '../dns/index.js'
import { blockSettings } from './block-settings.js'
import { realClock } from './clock.js'
import {
  type Arrival,
  type BlockConfig,
  type Clock,
  type ControlContext,
  CorefileError,
  type Counter,
  type Gauge,
  type Histogram,
  type HttpHandler,
  type Logger,
  type MetricFamily,
  type MetricsScope,
  nearest,
  type Plugin,
  type PluginModule,
  type Proto,
  Query,
  type Replica,
  type Reply,
  type SetupContext,
  type Source,
  type Timer,
} from './contract.js'

export { realClock }

/** A clock that only moves when told to. */
export class FakeClock implements Clock {
  #now: number
  #timers: { at: number; fn: () => void }[] = []
  constructor(now = 1_700_000_000_000) {
    this.#now = now
  }
  now(): number {
    return this.#now
  }
  monotonic(): number {
    return this.#now
  }
  recent(): number {
    return this.#now
  }
  timer(ms: number, fn: () => void): Timer {
    const entry = { at: this.#now + ms, fn }
    this.#timers.push(entry)
    return { cancel: () => (this.#timers = this.#timers.filter((t) => t !== entry)) }
  }
  /** Moves on by `ms` and runs what has come due, in order. */
  advance(ms: number): void {
    const end = this.#now + ms
    for (;;) {
      const due = this.#timers.filter((t) => t.at <= end).sort((a, b) => a.at - b.at)[0]
      if (due === undefined) break
      this.#timers = this.#timers.filter((t) => t !== due)
      this.#now = due.at
      due.fn()
    }
    this.#now = end
  }
}

/** Metrics kept in a map from `name{label="value",…}` to a number (histograms: `_sum` and `_count`). */
export class FakeMetrics implements MetricsScope {
  readonly values = new Map<string, number>()
  counter(name: string, _help: string, labels: readonly string[]): MetricFamily<Counter> {
    return this.#family(name, labels, (key) => ({ inc: (by = 1) => this.#add(key, by) }))
  }
  gauge(name: string, _help: string, labels: readonly string[]): MetricFamily<Gauge> {
    return this.#family(name, labels, (key) => ({ set: (value) => void this.values.set(key, value), inc: (by = 1) => this.#add(key, by) }))
  }
  histogram(name: string, _help: string, labels: readonly string[]): MetricFamily<Histogram> {
    return this.#family(name, labels, (key) => {
      const observe = (value: number, times = 1): void => {
        this.#add(key.replace(name, `${name}_sum`), value * times)
        this.#add(key.replace(name, `${name}_count`), times)
      }
      return { observe, at: (value) => ({ inc: (by) => observe(value, by) }) }
    })
  }
  #add(key: string, by: number): void {
    this.values.set(key, (this.values.get(key) ?? 0) + by)
  }
  #family<T>(name: string, labels: readonly string[], make: (key: string) => T): MetricFamily<T> {
    const key = (values: readonly string[]): string => `${name}{${labels.map((label, i) => `${label}="${values[i] ?? ''}"`).join(',')}}`
    return { with: (...values) => make(key(values)), remove: (...values) => void this.values.delete(key(values)) }
  }
}

/** Collects lines as the server would print them. */
export class FakeLog implements Logger {
  readonly lines: string[] = []
  readonly #prefix: string
  constructor(plugin: string) {
    this.#prefix = `plugin/${plugin}: `
  }
  debug(text: string): void {
    this.lines.push(`[DEBUG] ${this.#prefix}${text}`)
  }
  info(text: string): void {
    this.lines.push(`[INFO] ${this.#prefix}${text}`)
  }
  warning(text: string): void {
    this.lines.push(`[WARNING] ${this.#prefix}${text}`)
  }
  error(text: string): void {
    this.lines.push(`[ERROR] ${this.#prefix}${text}`)
  }
  plain(level: 'DEBUG' | 'INFO' | 'WARNING' | 'ERROR' | 'FATAL', text: string): void {
    this.lines.push(`[${level}] ${text}`)
  }
}

const at = (line: number): Position => ({ file: 'Corefile', line, column: 1 })

/** A block as it would serve `zones` on port 53. */
export function fakeBlock(zones: readonly string[] = ['.']): BlockConfig {
  const keys: ZoneKey[] = zones.map((zone) => ({ zone, transport: 'dns', port: '53', text: zone, pos: at(1) }))
  return {
    keys,
    zones,
    zoneNames: zones.map((zone) => Name.parse(zone)),
    transport: 'dns',
    index: 0,
    servers: ['dns://:53'],
    directives: [],
    ...blockSettings(),
  }
}

export interface FakeContext extends Omit<SetupContext, 'metrics' | 'log'>, Omit<ControlContext, 'metrics' | 'log'> {
  readonly metrics: FakeMetrics
  readonly log: FakeLog
  readonly notes: string[]
  readonly warnings: string[]
  readonly replicas: Map<string, Replica<unknown>>
  readonly sources: Source<unknown>[]
  readonly endpoints: Map<string, HttpHandler>
}

/** A context for both halves of a module's set-up. `over` replaces members. */
export function fakeContext(plugin: string, over: Partial<FakeContext> & { siblings?: readonly Plugin[] } = {}): FakeContext {
  const block = over.block ?? fakeBlock()
  const kept = new Map<string, unknown>()
  const context: FakeContext = {
    block,
    log: new FakeLog(plugin),
    clock: realClock,
    metrics: new FakeMetrics(),
    checking: false,
    notes: [],
    warnings: [],
    replicas: new Map(),
    sources: [],
    endpoints: new Map(),
    connectDatagram: () => {
      throw new Error('there are no sockets in this context: pass connectDatagram')
    },
    thread: { index: 0, count: 1 },
    endOfRound: (what) => what.flush(),
    error(message, where, candidates) {
      const pos = where === undefined ? at(1) : 'pos' in where ? where.pos : where
      const word = where === undefined ? undefined : 'text' in where ? where.text : 'name' in where ? where.name : undefined
      const error = new CorefileError(message, pos, word, word !== undefined && candidates ? nearest(word, candidates) : undefined)
      error.message = `plugin/${plugin}: ${error.message}`
      return error
    },
    fail: (message) => new Error(`plugin/${plugin}: ${message}`),
    note: (message) => void context.notes.push(message),
    warn: (message) => void context.warnings.push(message),
    path: (file) => file,
    find: (name) => over.siblings?.find((p) => p.name === name),
    chain: over.siblings ?? [],
    findAll: (name) => over.siblings?.filter((p) => p.name === name) ?? [],
    everywhere: (name) => (over.siblings ?? []).filter((p) => p.name === name).map((p) => ({ block, plugin: p })),
    resolve: () => undefined,
    shared<T>(key: string, create: () => T): T {
      if (!kept.has(key)) kept.set(key, create())
      return kept.get(key) as T
    },
    first: true,
    finish: () => undefined,
    tally: () => {
      let own = 0
      return {
        add: (by) => {
          own += by
        },
        total: () => own,
      }
    },
    counterparts: () => ({ tell: () => undefined, close: () => undefined }),
    onServerReply: () => undefined,
    fatal: (text) => context.log.plain('FATAL', `plugin/${plugin}: ${text}`),
    replica: (key, replica) => void context.replicas.set(key, replica as Replica<unknown>),
    http: (address, path, handler) => void context.endpoints.set(`${address}${path}`, handler),
    source: (source) => void context.sources.push(source as Source<unknown>),
    process: {
      notReady: () => [],
      remarks: () => [],
      healthy: () => true,
      metricsText: async () => ({ contentType: 'text/plain', body: '' }),
      reload: async () => undefined,
      readConfig: () => ({ sha512: '', error: undefined }),
      exit: () => undefined,
    },
  }
  const { siblings: _, ...rest } = over
  return Object.assign(context, rest)
}

/** Directives from Corefile text, one or several lines: `directives('cache 30 {\n success 10\n}')`; the first stands on line 2. */
export function directives(text: string): readonly Directive[] {
  return parseCorefile(`. {\n${text}\n}\n`, 'Corefile').blocks[0]?.directives ?? []
}

/** Runs the set-up of a module on the uses of its directive in `text`; `over` replaces members of the context. */
export function setUp<P extends Plugin = Plugin>(
  module: PluginModule,
  text: string,
  over: Parameters<typeof fakeContext>[1] = {},
): { plugin: P; context: FakeContext } {
  const context = fakeContext(module.name, over)
  const uses = directives(text).filter(({ name }) => name === module.name)
  return { plugin: module.setup(uses, context) as P, context }
}

export interface QueryOptions {
  readonly id?: number
  readonly rd?: boolean
  readonly cd?: boolean
  readonly ad?: boolean
  readonly class?: number
  /** EDNS size; undefined with `dnssecOk` unset: no OPT. */
  readonly size?: number
  readonly dnssecOk?: boolean
  readonly options?: Edns['options']
  readonly proto?: Proto
  readonly address?: string
  readonly server?: string
  readonly received?: number
}

/** A client's query that came through the wire: `query('www.example.org.', 'A')`. */
export function query(name: string, type: string, options: QueryOptions = {}): Query {
  const edns =
    options.size === undefined && options.dnssecOk === undefined && options.options === undefined
      ? undefined
      : {
          size: options.size ?? 4096,
          extendedRcode: 0,
          version: 0,
          dnssecOk: options.dnssecOk ?? false,
          z: 0,
          options: options.options ?? [],
        }
  const message = Message.query(
    Name.parse(name),
    typeNumber(type) ?? 1,
    { id: options.id ?? 1, rd: options.rd ?? true, cd: options.cd ?? false, ad: options.ad ?? false, edns },
    options.class ?? CLASS.IN,
  )
  const viewed = Message.view(message.toBuffer())
  const received = options.received ?? performance.now()
  const arrival: Arrival = {
    peer: { address: options.address ?? '10.240.0.1', port: 40_212, family: 4, localAddress: '127.0.0.1', localPort: 53 },
    proto: options.proto ?? 'udp',
    server: options.server ?? 'dns://:53',
    received,
    deadline: received + 5000,
    options: viewed.edns?.options ?? [],
  }
  return new Query(viewed, arrival)
}

/** The end of a chain that answers everything with `reply`, and counts. */
export function lastHandler(reply: (query: Query) => Reply | Promise<Reply>): {
  next: (query: Query) => Reply | Promise<Reply>
  calls: Query[]
} {
  const calls: Query[] = []
  return {
    calls,
    next(q) {
      calls.push(q)
      return reply(q)
    },
  }
}
