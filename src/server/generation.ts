/** All that one Corefile produced in this thread: blocks with their plugins, chains, routers. Built beside the one that serves. */
import type { Corefile, Directive } from '../corefile/tree.js'
import { CorefileError, nearest } from '../corefile/tree.js'
import type { Plugin, Query, Reply, ServerReply, Tally, Transport } from '../plugins/contract.js'
import { type Block, checkOverlaps, completeBlock, DEFAULT_TIMEOUTS, hostsOf, label, makeBlock } from './block.js'
import { tallyOn } from './board.js'
import { makeContext } from './context.js'
import { link } from './link.js'
import type { Service } from './listeners/listener.js'
import type { PluginEntry, ServingOptions } from './protocol.js'
import { Router, type Site } from './router.js'
import type { ServingDeps } from './serving.js'
import type { Replicas, SharedValues } from './shared.js'
import type { Talk } from './talk.js'

/** What lives longer than a generation. */
export interface Outliving {
  readonly shared: SharedValues
  readonly replicas: Replicas
  readonly talk: Talk
  readonly fatal: (line: string) => void
}

/** One address that the generation serves, and with what. */
export interface Place {
  readonly transport: Transport
  readonly host: string
  readonly port: number
  readonly server: string
  readonly service: Service
}

const MAX_DEPTH = 8
/** As in CoreDNS. */
const HTTPS_CONNECTIONS = 200
const NOT_YET: ReadonlySet<Transport> = new Set(['grpc', 'quic', 'https3'])

export class Generation {
  readonly id: number
  readonly options: ServingOptions
  readonly deps: ServingDeps
  readonly outliving: Outliving
  readonly blocks: readonly Block[]
  readonly warnings: string[] = []
  readonly notes: string[] = []
  readonly reported: ((reply: ServerReply) => void)[] = []
  places: readonly Place[] = []
  readonly #corefile: Corefile
  readonly #started: Plugin[] = []
  readonly #inSetupOrder: Plugin[] = []
  #inFlight = 0
  #tallies = 0
  #drained: (() => void) | undefined

  constructor(id: number, corefile: Corefile, options: ServingOptions, deps: ServingDeps, outliving: Outliving) {
    this.id = id
    this.#corefile = corefile
    this.options = options
    this.deps = deps
    this.outliving = outliving
    this.blocks = corefile.blocks.map((block, index) => makeBlock(block, index, options.port))
    for (const warning of corefile.warnings) this.warnings.push(`${warning.pos.file}:${warning.pos.line}: ${warning.message}`)
  }

  /** Parses and builds everything and starts nothing. Throws what is wrong with the Corefile. */
  async setUp(): Promise<void> {
    this.#checkTransports()
    this.#checkDirectives()
    for (const entry of this.options.plugins) await this.#setUpDirective(entry)
    for (const block of this.blocks) completeBlock(block)
    checkOverlaps(this.blocks)
    for (const block of this.blocks) block.handler = link(block.plugins)
    this.places = placesOf(this.id, this.blocks)
  }

  /** Runs the plugins' onStartup in the order of set-up. After a failure, `shutDown` ends those that were started. */
  async start(): Promise<void> {
    for (const plugin of this.#inSetupOrder) {
      this.#started.push(plugin)
      const result = plugin.onStartup?.()
      if (result !== undefined) await result
    }
  }

  /** Ends all that was started. A plugin that fails at it is logged and the others go on. */
  async shutDown(why: 'reload' | 'exit'): Promise<void> {
    for (const plugin of this.#started.splice(0)) {
      try {
        const result = plugin.onShutdown?.(why)
        if (result !== undefined) await result
      } catch (error) {
        this.deps.logger(plugin.name).error(`shutting down: ${error instanceof Error ? error.message : error}`)
      }
    }
    this.outliving.shared.release(this.id)
    this.outliving.replicas.release(this.id)
  }

  began(): void {
    this.#inFlight++
  }

  ended(): void {
    this.#inFlight--
    if (this.#inFlight === 0) this.#drained?.()
  }

  /** Resolves when no query is in flight, at the latest after `ms`. */
  drain(ms: number): Promise<void> {
    if (this.#inFlight === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = this.deps.clock.timer(ms, resolve)
      this.#drained = () => {
        timer.cancel()
        resolve()
      }
    })
  }

  /** Names of plugins that are not ready, each once, in blocks with `ready`. */
  notReady(): string[] {
    const names = new Set<string>()
    const watched = this.blocks.filter(({ config }) => config.directives.some(({ name }) => name === 'ready'))
    for (const { plugins } of watched) for (const plugin of plugins) if (plugin.ready?.() === false) names.add(plugin.name)
    return [...names]
  }

  /** The next number that the threads of this generation count on together. */
  tally(): Tally {
    const { board, thread } = this.options
    return tallyOn(board, this.id, this.#tallies++, thread.index, thread.count)
  }

  get debug(): boolean {
    return this.blocks.some(({ config }) => config.debug)
  }

  /** A plugin's question on behalf of a client, by the listener that the client used. */
  resolve(query: Query): Reply | Promise<Reply> | undefined {
    if (query.depth > MAX_DEPTH) return undefined
    const place = this.places.find(({ server }) => server === query.server) ?? this.places[0]
    const block = place?.service.router.route(query)
    return block?.handler?.(query)
  }

  #checkTransports(): void {
    for (const { keys } of this.#corefile.blocks)
      for (const key of keys)
        if (NOT_YET.has(key.transport)) throw new CorefileError(`transport '${key.transport}' is known, not built yet`, key.pos, key.text)
  }

  #checkDirectives(): void {
    const known = new Set(this.options.plugins.map(({ directive }) => directive))
    for (const { directives } of this.#corefile.blocks)
      for (const { name, pos } of directives)
        if (!known.has(name)) throw new CorefileError(`Unknown directive '${name}'`, pos, name, nearest(name, known))
  }

  /** One directive in all blocks, as CoreDNS goes about it: so errors come in its order. */
  async #setUpDirective(entry: PluginEntry): Promise<void> {
    const uses = new Map<Block, Directive[]>()
    for (const block of this.blocks) {
      const found = block.config.directives.filter(({ name }) => name === entry.directive)
      if (found.length > 0) uses.set(block, found)
    }
    if (uses.size === 0) return
    const module = await this.deps.loadModule(entry)
    for (const [block, directives] of uses) {
      const made = module.setup(directives, makeContext(this, block, module.name, directives))
      const plugins = made === null ? [] : Array.isArray(made) ? made : [made]
      block.plugins.push(...plugins)
      this.#inSetupOrder.push(...plugins)
    }
  }
}

/** Groups the zones of all blocks by the address that they are served on. */
function placesOf(generation: number, blocks: readonly Block[]): Place[] {
  const groups = new Map<string, { transport: Transport; host: string; port: number; sites: Site[]; blocks: Set<Block> }>()
  for (const block of blocks) {
    for (const [i, key] of block.config.keys.entries()) {
      for (const host of hostsOf(block.config)) {
        const server = label(key, host)
        let group = groups.get(server)
        if (group === undefined) {
          group = { transport: key.transport, host, port: Number(key.port), sites: [], blocks: new Set() }
          groups.set(server, group)
        }
        group.sites.push({ zone: key.zone, name: block.config.zoneNames[i]!, block })
        group.blocks.add(block)
      }
    }
  }
  return [...groups].map(([server, { transport, host, port, sites, blocks: members }]) => ({
    transport,
    host,
    port,
    server,
    service: serviceOf(generation, sites, [...members]),
  }))
}

/** Settings of the blocks that share an address; of several, the last one that sets a value decides, as in CoreDNS. */
function serviceOf(generation: number, sites: readonly Site[], blocks: readonly Block[]): Service {
  const configs = blocks.map(({ config }) => config)
  const timeout = (name: 'read' | 'write' | 'idle'): number =>
    configs.findLast(({ timeouts }) => timeouts[name] > 0)?.timeouts[name] ?? DEFAULT_TIMEOUTS[name]
  return {
    generation,
    router: new Router(sites),
    limits: {
      read: timeout('read'),
      write: timeout('write'),
      idle: timeout('idle'),
      maxQueries: configs.findLast(({ maxTcpQueries }) => maxTcpQueries !== undefined)?.maxTcpQueries,
    },
    tls: configs.findLast(({ tls }) => tls !== undefined)?.tls,
    httpsMaxConnections: configs[0]?.httpsMaxConnections ?? HTTPS_CONNECTIONS,
  }
}
