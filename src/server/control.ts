/**
 * The control half: reads the Corefile, builds a generation over all serving threads, changes over to it in one step or not at all,
 * and ends the process in order. It answers no query itself.
 */
import { type Corefile, parseCorefile } from '../corefile/index.js'
import type { Clock, ControlProcess, Logger, MetricsScope, PluginModule } from '../plugins/contract.js'
import { type ConfigInput, configHash, envOf, type LoadOptions, loadConfig } from './config.js'
import { ControlGeneration, type ControlSurroundings } from './control-generation.js'
import { HttpEndpoints, type HttpStage } from './http.js'
import type { Loggers } from './log.js'
import { SlotMetrics } from './metrics.js'
import type { FromServing, PluginEntry } from './protocol.js'
import { MetricsHub } from './scrape.js'
import { Sources } from './sources.js'
import type { ServingThread, Spawn } from './thread.js'
import { ServingThreads } from './threads.js'

/** Milliseconds that queries in flight get at the end. */
const GRACE_MS = 5_000
/** Number of the control half's own counters. Threads count from 0. */
const OWN_METRICS = -1

export interface ControlOptions extends LoadOptions {
  readonly input: ConfigInput
  /** Number of serving threads, whatever the Corefile says of it; undefined: `multisocket` decides. */
  readonly threads: number | undefined
  readonly spawn: Spawn
  readonly loggers: Loggers
  readonly clock: Clock
  readonly loadModule: (entry: PluginEntry) => Promise<PluginModule>
  /** No start-up banner. */
  readonly quiet?: boolean
  /** A plugin wants the process to end at once, with this code. */
  readonly exit: (code: number) => void
}

export class Control {
  readonly #options: ControlOptions
  readonly #log: Logger
  readonly #hub = new MetricsHub()
  readonly #metrics: SlotMetrics
  readonly #http: HttpEndpoints
  readonly #sources: Sources
  readonly #threads: ServingThreads
  readonly #process: ControlProcess
  readonly #draining = new Map<number, ControlGeneration>()
  readonly #failed: ReturnType<ReturnType<MetricsScope['counter']>['with']>
  #input: ConfigInput
  #current: ControlGeneration | undefined
  #generations = 0
  #turn: Promise<unknown> = Promise.resolve()
  #ending = false
  #listening: readonly string[] = []

  constructor(options: ControlOptions) {
    this.#options = options
    this.#input = options.input
    this.#log = options.loggers.for('')
    this.#metrics = new SlotMetrics((notice) => this.#hub.take(OWN_METRICS, notice))
    const report = (error: Error): void => this.#log.error(error.message)
    this.#http = new HttpEndpoints(report)
    this.#sources = new Sources(report)
    const events = {
      message: (thread: ServingThread, message: FromServing) => this.#message(thread, message),
      ended: (thread: ServingThread) => {
        this.#hub.retire(thread.number, this.#metrics)
        this.#sources.drop(thread.number)
      },
      retired: (generation: number) => this.#retired(generation),
    }
    this.#threads = new ServingThreads(options.spawn, events, this.#log)
    this.#failed = this.#metrics.counter('coredns_reload_failed_total', 'Counter of the number of failed reload attempts.', []).with()
    this.#process = this.#makeProcess()
  }

  /** Lines of the banner: what is served. */
  get listening(): readonly string[] {
    return this.#listening
  }
  get http(): HttpEndpoints {
    return this.#http
  }
  metricsText(): Promise<{ contentType: string; body: string }> {
    return this.#process.metricsText()
  }
  notReady(): Promise<readonly string[]> {
    return this.#threads.notReady()
  }

  /** Resolves when the Corefile is served; rejects, with nothing left open, when it cannot be. */
  async start(): Promise<void> {
    try {
      const corefile = this.#read()
      await this.#threads.start()
      await this.#change(corefile, (lines) => {
        if (this.#options.quiet !== true) for (const line of lines) this.#options.loggers.raw(line)
      })
    } catch (error) {
      await this.#threads.stop(0)
      await this.#http.close()
      throw error
    }
  }

  /** Reads the Corefile again (or the one of `input`, from now on) and changes over to it. Resolves to the reason if it could not. */
  reload(input?: ConfigInput): Promise<Error | undefined> {
    return this.#inTurn(async () => {
      if (this.#ending) return undefined
      if (input !== undefined) this.#input = input
      this.#log.info('Reloading')
      try {
        // A file that an editor is about to fill is empty for a moment; CoreDNS's default in its place would be an outage.
        await this.#change(this.#read({ needsBlock: true }), () => undefined)
        this.#log.info('Reloading complete')
        return undefined
      } catch (error) {
        this.#failed.inc()
        this.#log.error(`Restart failed: ${(error as Error).message}`)
        return error as Error
      }
    })
  }

  /** Lameduck first, then no new queries, then what is in flight, then the plugins. Never rejects. */
  async stop(): Promise<void> {
    if (this.#ending) return
    this.#ending = true
    await this.#current?.finalShutdown()
    await this.#inTurn(async () => {
      await this.#threads.stop(GRACE_MS)
      for (const generation of [...this.#draining.values(), this.#current]) await generation?.shutDown('exit')
      for (const id of [...this.#draining.keys(), this.#current?.id ?? 0]) await this.#sources.release(id)
      await this.#http.close()
    })
    this.#options.loggers.flush()
  }

  #inTurn<T>(step: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(step)
    this.#turn = result.catch(() => undefined)
    return result
  }

  #read(more?: Pick<LoadOptions, 'needsBlock'>): Corefile {
    return loadConfig(this.#input.read(), this.#input.name, { ...this.#options, ...more })
  }

  /** Builds the next generation beside the one that serves; changes over in one step, or takes everything back and rejects. */
  async #change(corefile: Corefile, ready: (listening: readonly string[]) => void): Promise<void> {
    const next = new ControlGeneration(++this.#generations, corefile, this.#surroundings())
    let stage: HttpStage | undefined
    let asked = false
    try {
      await next.setUp()
      for (const source of next.sources) this.#sources.use(next.id, source)
      stage = await this.#http.stage(next.http)
      await this.#sources.start(next.id)
      asked = true
      const { listening, warnings } = await this.#threads.prepare(next.id, corefile, this.#options.threads ?? next.threads)
      for (const warning of warnings) this.#log.warning(warning)
      ready(listening)
      await next.start()
      this.#listening = listening
    } catch (error) {
      if (asked) this.#threads.abort(next.id)
      await next.shutDown('reload')
      await this.#sources.release(next.id)
      await stage?.abort()
      throw error
    }
    await this.#commit(next, corefile, stage)
  }

  /** No plugin code runs here, so nothing can fail. */
  async #commit(next: ControlGeneration, corefile: Corefile, stage: HttpStage): Promise<void> {
    const before = this.#current
    this.#current = next
    if (before !== undefined) this.#draining.set(before.id, before)
    this.#options.loggers.setDebug(next.debug)
    await Promise.all([stage.commit(), this.#threads.commit(next.id, corefile)])
  }

  /** All threads have drained it. */
  #retired(id: number): void {
    const generation = this.#draining.get(id)
    if (generation === undefined) return
    this.#draining.delete(id)
    void generation.shutDown('reload').then(() => this.#sources.release(id))
  }

  #message(thread: ServingThread, message: FromServing): void {
    switch (message.kind) {
      case 'log':
        this.#options.loggers.lines(message.text)
        break
      case 'metrics':
        this.#hub.take(thread.number, message)
        break
      case 'subscribe':
        this.#sources.subscribe(message.key, thread.number, (part) => thread.handle.channel.post(part))
        break
      case 'unsubscribe':
        this.#sources.unsubscribe(message.key, thread.number)
        break
      case 'tell':
        this.#threads.tell(thread, message)
        break
      case 'exit':
        this.#options.exit(message.code)
        break
    }
  }

  #surroundings(): ControlSurroundings {
    const { clock, loggers, loadModule, plugins, port } = this.#options
    return { clock, loggers, loadModule, plugins, port, metrics: this.#metrics, process: this.#process }
  }

  #makeProcess(): ControlProcess {
    return {
      notReady: () => this.#threads.notReady(),
      remarks: () => this.#sources.remarks(),
      healthy: () => this.#threads.healthy(),
      metricsText: async () => {
        this.#metrics.flush()
        return this.#hub.text()
      },
      reload: () => this.reload(),
      readConfig: () => {
        try {
          return { sha512: configHash(parseCorefile(this.#input.read(), this.#input.name, envOf(this.#options))), error: undefined }
        } catch (error) {
          return { sha512: '', error: error as Error }
        }
      },
      exit: (code) => this.#options.exit(code),
    }
  }
}
