/** The serving half alone, in the test's own thread, with small plugins made in the test. */
import { parseCorefile } from '../../src/corefile/index.js'
import type { Handler, Logger, Plugin, PluginModule, Query, Reply } from '../../src/plugins/contract.js'
import { FakeMetrics } from '../../src/plugins/testing.js'
import { newBoard } from '../../src/server/board.js'
import type { Channel, FromServing, ToServing } from '../../src/server/protocol.js'
import { startServing } from '../../src/server/serving.js'
import { transport } from './transport.js'

type Kind = FromServing['kind']
type Of<K extends Kind> = Extract<FromServing, { kind: K }>

export class ServingHarness {
  readonly metrics = new FakeMetrics()
  readonly log: string[] = []
  readonly received: FromServing[] = []
  #generation = 0
  #listener: ((message: ToServing) => void) | undefined
  #waiting: { kind: Kind; resolve: (message: FromServing) => void }[] = []

  constructor(modules: Readonly<Record<string, PluginModule>>) {
    const channel: Channel<FromServing, ToServing> = {
      post: (message) => this.#take(message),
      onMessage: (listener) => {
        this.#listener = listener
      },
      close: () => undefined,
    }
    const directives = Object.keys(modules)
    startServing(
      channel,
      {
        port: '0',
        plugins: directives.map((directive) => ({ directive, specifier: directive, builtin: true })),
        thread: { index: 0, count: 1 },
        board: newBoard(),
        secret: new Uint8Array(32),
      },
      {
        loadModule: async ({ directive }) => modules[directive]!,
        metrics: this.metrics,
        logger: (plugin) => logger(this.log, plugin),
        clock: transport.clock,
        connectDatagram: transport.connectDatagram,
        transport,
        setDebug: () => undefined,
      },
    )
  }

  post(message: ToServing): void {
    this.#listener?.(message)
  }

  /** The next message of this kind; a `failed` rejects. */
  next<K extends Kind>(kind: K): Promise<Of<K>> {
    return new Promise((resolve) => this.#waiting.push({ kind, resolve: resolve as (message: FromServing) => void }))
  }

  /** Prepares and returns the banner; rejects with the error's text. */
  async prepare(corefile: string): Promise<readonly string[]> {
    const generation = ++this.#generation
    const outcome = Promise.race([this.next('prepared'), this.next('failed')])
    this.post({ kind: 'prepare', generation, corefile: parseCorefile(corefile, 'Corefile'), count: 1, claim: 'alone', ports: [] })
    const message = await outcome
    this.#waiting = this.#waiting.filter(({ kind }) => kind !== 'prepared' && kind !== 'failed')
    if (message.kind === 'failed') throw new Error(message.error.message)
    return message.listening
  }

  /** Prepares and commits. Returns the port of the first listener. */
  async load(corefile: string): Promise<number> {
    const listening = await this.prepare(corefile)
    const done = this.next('committed')
    this.post({ kind: 'commit', generation: this.#generation })
    await done
    return portOf(listening[0]!)
  }

  async abort(): Promise<void> {
    const done = this.next('retired')
    this.post({ kind: 'abort', generation: this.#generation })
    await done
  }

  async stop(): Promise<void> {
    const done = this.next('stopped')
    this.post({ kind: 'stop', graceMs: 500 })
    await done
  }

  #take(message: FromServing): void {
    this.received.push(message)
    const index = this.#waiting.findIndex(({ kind }) => kind === message.kind)
    if (index >= 0) this.#waiting.splice(index, 1)[0]!.resolve(message)
  }
}

export const portOf = (line: string): number => Number(/:(\d+)(?: on .*)?$/.exec(line)?.[1])

function logger(lines: string[], plugin: string): Logger {
  const prefix = plugin === '' ? '' : `plugin/${plugin}: `
  const write = (level: string) => (text: string) => void lines.push(`[${level}] ${prefix}${text}`)
  return {
    debug: write('DEBUG'),
    info: write('INFO'),
    warning: write('WARNING'),
    error: write('ERROR'),
    plain: (level, text) => void lines.push(`[${level}] ${text}`),
  }
}

/** A module whose uses all give the same plugin. */
export const module = (
  name: string,
  plugin: Omit<Plugin, 'name'> | ((...args: Parameters<PluginModule['setup']>) => Plugin | null),
): PluginModule => ({
  name,
  apiVersion: 1,
  setup: (uses, ctx) => (typeof plugin === 'function' ? plugin(uses, ctx) : { name, ...plugin }),
})

/** A plugin that answers everything. */
export const answering = (name: string, answer: (query: Query, next: Handler) => Reply | Promise<Reply>): PluginModule =>
  module(name, { serveDNS: answer })
