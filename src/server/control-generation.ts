/** The control half of one generation: HTTP endpoints, sources and pollers of its plugins. */
import type { Corefile, Directive } from '../corefile/tree.js'
import type {
  Clock,
  ControlContext,
  ControlPart,
  ControlProcess,
  MetricsScope,
  PluginModule,
  SetupContext,
  Source,
} from '../plugins/contract.js'
import { mayControl } from '../plugins/load.js'
import { type Block, completeBlock, makeBlock } from './block.js'
import { commonContext } from './context.js'
import { HttpPlan } from './http.js'
import type { Loggers } from './log.js'
import type { PluginEntry } from './protocol.js'

/** These only edit the block, which control parts look at (paths, names of servers): so they are set up here as well. */
const BLOCK_EDITORS: ReadonlySet<string> = new Set(['root', 'multisocket', 'bind', 'debug', 'view'])

export interface ControlSurroundings {
  readonly clock: Clock
  readonly loggers: Loggers
  readonly metrics: MetricsScope
  readonly process: ControlProcess
  readonly plugins: readonly PluginEntry[]
  readonly port: string
  /** In `check`: nothing will be started. */
  readonly checking?: boolean
  /** Takes what only the control parts note; a line may come from the serving half as well. */
  readonly note?: (line: string) => void
  readonly loadModule: (entry: PluginEntry) => Promise<PluginModule>
}

interface Part {
  readonly plugin: string
  readonly part: ControlPart
}

export class ControlGeneration {
  readonly id: number
  readonly http = new HttpPlan()
  readonly sources: Source[] = []
  readonly #surroundings: ControlSurroundings
  readonly #blocks: readonly Block[]
  readonly #parts: Part[] = []
  /** Those whose onStartup was called. */
  #started: Part[] = []

  constructor(id: number, corefile: Corefile, surroundings: ControlSurroundings) {
    this.id = id
    this.#surroundings = surroundings
    this.#blocks = corefile.blocks.map((block, index) => makeBlock(block, index, surroundings.port))
  }

  get debug(): boolean {
    return this.#blocks.some(({ config }) => config.debug)
  }

  /** Serving threads that `multisocket` asks for; the largest number counts, as all threads serve all blocks. */
  get threads(): number {
    return Math.max(1, ...this.#blocks.map(({ config }) => config.sockets ?? 1))
  }

  /** By directive over all blocks, as set-up in the serving threads goes. What is wrong with a plugin's options, those say. */
  async setUp(): Promise<void> {
    const { plugins, loadModule } = this.#surroundings
    const used = new Set(this.#blocks.flatMap(({ config }) => config.directives.map(({ name }) => name)))
    const modules: { entry: PluginEntry; module: PluginModule }[] = []
    for (const entry of plugins) {
      if (!used.has(entry.directive) || !(mayControl(entry) || BLOCK_EDITORS.has(entry.directive))) continue
      modules.push({ entry, module: await loadModule(entry) })
    }
    for (const { entry, module } of modules) if (BLOCK_EDITORS.has(entry.directive)) this.#edit(entry, module)
    for (const block of this.#blocks) completeBlock(block)
    for (const { entry, module } of modules) this.#control(entry, module, (await module.loadControl?.()) ?? module.control?.bind(module))
  }

  async start(): Promise<void> {
    for (const each of this.#parts) {
      this.#started.push(each)
      await each.part.onStartup?.()
    }
  }

  async finalShutdown(): Promise<void> {
    await this.#onEach(this.#parts, (part) => part.onFinalShutdown?.())
  }

  async shutDown(why: 'reload' | 'exit'): Promise<void> {
    const started = this.#started
    this.#started = []
    await this.#onEach(started, (part) => part.onShutdown?.(why))
  }

  /** A part that fails at its end is logged, and the others go on. */
  async #onEach(parts: readonly Part[], call: (part: ControlPart) => void | Promise<void>): Promise<void> {
    for (const { plugin, part } of parts) {
      try {
        await call(part)
      } catch (error) {
        this.#surroundings.loggers.for(plugin).error(`shutting down: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
  }

  *#uses({ directive }: PluginEntry): Iterable<{ block: Block; uses: Directive[] }> {
    for (const block of this.#blocks) {
      const uses = block.config.directives.filter(({ name }) => name === directive)
      if (uses.length > 0) yield { block, uses }
    }
  }

  #edit(entry: PluginEntry, module: PluginModule): void {
    for (const { block, uses } of this.#uses(entry)) {
      const made = module.setup(uses, setupOnly(this.#common(block, module, uses), block))
      if (made !== null) block.plugins.push(...(Array.isArray(made) ? made : [made]))
    }
  }

  #control(entry: PluginEntry, module: PluginModule, control: PluginModule['control']): void {
    if (control === undefined) return
    let first = true
    for (const { block, uses } of this.#uses(entry)) {
      const context: ControlContext = {
        ...this.#common(block, module, uses),
        http: (address, path, handler) => this.http.add(address, path, handler),
        source: (source) => void this.sources.push(source as Source),
        process: this.#surroundings.process,
        first,
      }
      first = false
      const part = control(uses, context)
      if (part !== undefined) this.#parts.push({ plugin: module.name, part })
    }
  }

  #common(block: Block, module: PluginModule, uses: readonly Directive[]) {
    const { clock, loggers, metrics, checking, note } = this.#surroundings
    // Warnings are the serving half's to tell: it sees the same directives.
    const silent = (): void => undefined
    return commonContext({
      block: block.config,
      plugin: module.name,
      uses,
      clock,
      metrics,
      checking: checking ?? false,
      log: loggers.for(module.name),
      note: note ?? silent,
      warn: silent,
    })
  }
}

type Common = ReturnType<typeof commonContext>

/** A context for plugins that do nothing but edit their block. */
function setupOnly(common: Common, block: Block): SetupContext {
  return {
    ...common,
    thread: { index: 0, count: 1 },
    chain: block.plugins,
    find: () => undefined,
    findAll: () => [],
    everywhere: () => [],
    resolve: () => undefined,
    shared: (_key, create) => create(),
    endOfRound: (what) => what.flush(),
    connectDatagram: () => {
      throw new Error('plugins that only edit their block open no sockets')
    },
    finish: () => undefined,
    tally: () => ({ add: () => undefined, total: () => 0 }),
    counterparts: () => ({ tell: () => undefined, close: () => undefined }),
    onServerReply: () => undefined,
    replica: () => undefined,
    fatal: () => undefined,
  }
}
