/** The serving half: sockets, chains, replicas. Runs in a thread of its own, or beside control over a direct channel in tests. */
import type { Clock, ConnectDatagram, Logger, MetricsScope, PluginModule, Timer } from '../plugins/contract.js'
import { bannerLines } from './block.js'
import { Dispatcher } from './dispatch.js'
import { Generation, type Place } from './generation.js'
import { Listener, type ListenerDeps } from './listeners/listener.js'
import type { Binding, Claim } from './listeners/ports.js'
import { Sharing } from './listeners/sharing.js'
import { Sockets } from './listeners/sockets.js'
import type { Channel, FromServing, PluginEntry, Ports, ServingOptions, ToServing } from './protocol.js'
import { Replicas, SharedValues } from './shared.js'
import { ownTask } from './starved.js'
import { Talk } from './talk.js'
import { dgramTransport, type Transport } from './transport.js'

/** What the serving half gets from its surroundings. */
export interface ServingDeps {
  /** The module of a directive; rejects with a message for people ("known, not built yet" included). Asked once per directive and generation. */
  readonly loadModule: (entry: PluginEntry) => Promise<PluginModule>
  readonly metrics: MetricsScope
  /** Prefixes lines with `plugin/NAME: `; with '' the server's own lines, without a prefix. */
  readonly logger: (plugin: string) => Logger
  readonly clock: Clock
  readonly connectDatagram: ConnectDatagram
  /** Some block of the generation that was just committed has `debug` (or none has). */
  readonly setDebug: (on: boolean) => void
  /** By node:dgram if not given. Its clock is the one above. */
  readonly transport?: Transport
  /** True in `cairndns check`. */
  readonly checking?: boolean
}

const HEARTBEAT_MS = 400
/** Milliseconds that queries of a replaced generation may still take. */
const DRAIN_MS = 5000
/** Ports that the system picks may be taken for UDP: then another is tried. */
const PORT_TRIES = 10

/** Takes messages from `channel` until `stop`; says `online` first. */
export function startServing(channel: Channel<FromServing, ToServing>, options: ServingOptions, deps: ServingDeps): void {
  new ServingThread(channel, options, deps).begin()
}

interface Prepared {
  readonly generation: Generation
  readonly listeners: Map<string, Listener>
  readonly bindings: readonly Binding[]
  readonly rollback: () => void
}

/** Set up and started, without sockets: those of another thread come first. */
interface Waiting {
  readonly generation: Generation
  readonly claim: Claim
}

class ServingThread {
  readonly #channel: Channel<FromServing, ToServing>
  readonly #options: ServingOptions
  readonly #deps: ServingDeps
  readonly #log: Logger
  readonly #transport: Transport
  readonly #sockets: Sockets
  readonly #dispatcher: Dispatcher
  readonly #shared: SharedValues
  readonly #replicas: Replicas
  readonly #talk: Talk
  readonly #listenerDeps: ListenerDeps
  /** By number: the one that serves, those that drain, the one in preparation. */
  readonly #generations = new Map<number, Generation>()
  #listeners = new Map<string, Listener>()
  #current: Generation | undefined
  #waiting: Waiting | undefined
  #prepared: Prepared | undefined
  #heart: Timer | undefined
  /** Changes of configuration, one after the other. */
  #queue: Promise<void> = Promise.resolve()

  constructor(channel: Channel<FromServing, ToServing>, options: ServingOptions, deps: ServingDeps) {
    this.#channel = channel
    this.#options = options
    this.#deps = deps
    this.#log = deps.logger('')
    const sharing = new Sharing(async () => (await import('./native/libc.js')).loadLibc())
    this.#transport = deps.transport ?? dgramTransport
    this.#transport.observe(deps.metrics, this.#log)
    this.#sockets = new Sockets(this.#log, deps.clock, sharing, this.#transport.openDatagram(sharing))
    this.#dispatcher = new Dispatcher(deps.clock, this.#log, deps.metrics, (id) => this.#generations.get(id))
    this.#shared = new SharedValues(this.#log)
    this.#replicas = new Replicas(channel, this.#log)
    this.#talk = new Talk(channel, this.#log)
    this.#listenerDeps = {
      clock: deps.clock,
      log: this.#log,
      metrics: deps.metrics,
      receive: this.#dispatcher.receive,
      secret: options.secret,
      touch: this.#transport.touch,
    }
  }

  begin(): void {
    this.#channel.onMessage((message) => this.#take(message))
    this.#channel.post({ kind: 'online', task: ownTask() })
    this.#beat()
  }

  #take(message: ToServing): void {
    switch (message.kind) {
      case 'prepare':
        this.#inTurn(() => this.#prepare(message))
        break
      case 'open':
        this.#inTurn(() => this.#openWaiting(message))
        break
      case 'share':
        this.#inTurn(() => this.#share())
        break
      case 'unshare':
        this.#inTurn(() => this.#sockets.share(false))
        break
      case 'commit':
        this.#inTurn(() => this.#commit(message.generation))
        break
      case 'abort':
        this.#inTurn(() => this.#abort(message.generation))
        break
      case 'stop':
        // At once, whatever is being prepared.
        void this.#stop(message.graceMs)
        break
      case 'source':
        this.#replicas.take(message)
        break
      case 'told':
        this.#talk.hear(message.key, message.value)
        break
      case 'log-level':
        this.#deps.setDebug(message.debug)
        break
      case 'beat':
        this.#sign()
        break
    }
  }

  #inTurn(step: () => void | Promise<void>): void {
    const attended = this.#transport.attend()
    this.#queue = this.#queue
      .then(step)
      .catch((error: unknown) => {
        this.#log.error(`changing the configuration: ${error instanceof Error ? error.stack : error}`)
      })
      .finally(attended)
  }

  async #prepare({ generation: id, corefile, count, claim, ports }: Extract<ToServing, { kind: 'prepare' }>): Promise<void> {
    const outliving = { shared: this.#shared, replicas: this.#replicas, talk: this.#talk, fatal: (line: string) => this.#fatal(line) }
    const options = { ...this.#options, thread: { index: this.#options.thread.index, count } }
    let generation: Generation | undefined
    try {
      generation = new Generation(id, corefile, options, this.#deps, outliving)
      this.#generations.set(id, generation)
      await generation.setUp()
      await generation.start()
      if (ports === undefined) this.#waiting = { generation, claim }
      else await this.#finish(generation, claim, ports)
    } catch (error) {
      await this.#giveUp(id, error)
    }
  }

  async #openWaiting({ generation: id, ports }: Extract<ToServing, { kind: 'open' }>): Promise<void> {
    const waiting = this.#waiting
    if (waiting?.generation.id !== id) return
    this.#waiting = undefined
    try {
      await this.#finish(waiting.generation, waiting.claim, ports)
    } catch (error) {
      await this.#giveUp(id, error)
    }
  }

  /** The last step of a preparation. */
  async #finish(generation: Generation, claim: Claim, ports: Ports): Promise<void> {
    const prepared = await this.#open(generation, claim, new Map(ports))
    this.#prepared = prepared
    this.#channel.post({
      kind: 'prepared',
      generation: generation.id,
      listening: generation.places.flatMap((place) => banner(place, prepared.listeners.get(place.server)!)),
      warnings: generation.warnings,
      ports: [...prepared.listeners].map(([server, { port }]) => [server, port] as const),
    })
  }

  async #giveUp(id: number, reason: unknown): Promise<void> {
    await this.#generations.get(id)?.shutDown('reload')
    this.#generations.delete(id)
    const { message, stack } = reason instanceof Error ? reason : new Error(String(reason))
    this.#channel.post({ kind: 'failed', generation: id, error: { message, stack } })
  }

  async #share(): Promise<void> {
    const error = await this.#sockets.share(true).then(
      () => undefined,
      (reason: Error) => reason.message,
    )
    this.#channel.post({ kind: 'shared', error })
  }

  /** Binds what is missing. Where the system picks the port it must be free for UDP as well, so that is tried again. */
  async #open(generation: Generation, claim: Claim, ports: ReadonlyMap<string, number>): Promise<Prepared> {
    for (let i = 1; ; i++) {
      const listeners = new Map<string, Listener>()
      for (const place of generation.places) {
        listeners.set(place.server, this.#listeners.get(place.server) ?? (await this.#listener(place, ports)))
      }
      const bindings = [...listeners.values()].flatMap(bindingsOf)
      checkClashes(bindings, listeners)
      try {
        return { generation, listeners, bindings, rollback: await this.#sockets.open(bindings, claim) }
      } catch (error) {
        if (i >= PORT_TRIES || generation.places.every(({ port }) => port !== 0)) throw error
      }
    }
  }

  async #listener({ transport, host, port, server, service }: Place, ports: ReadonlyMap<string, number>): Promise<Listener> {
    const actual = port === 0 ? (ports.get(server) ?? (await Sockets.freePort(host))) : port
    return new Listener(transport, host, actual, server, service, this.#listenerDeps)
  }

  #commit(id: number): void {
    const prepared = this.#prepared
    if (prepared?.generation.id !== id) return
    this.#prepared = undefined
    const before = this.#current
    const gone = [...this.#listeners].filter(([server]) => !prepared.listeners.has(server)).map(([, listener]) => listener)
    for (const { server, service } of prepared.generation.places) prepared.listeners.get(server)!.apply(service)
    const closeSockets = this.#sockets.commit(prepared.bindings)
    this.#listeners = prepared.listeners
    this.#current = prepared.generation
    for (const listener of gone) listener.stop()
    this.#deps.setDebug(prepared.generation.debug)
    this.#channel.post({ kind: 'committed', generation: id })
    if (before !== undefined) void this.#retire(before, gone, closeSockets)
  }

  async #retire(generation: Generation, gone: readonly Listener[], closeSockets: () => void): Promise<void> {
    await generation.drain(DRAIN_MS)
    closeSockets()
    for (const listener of gone) listener.close()
    await generation.shutDown('reload')
    this.#generations.delete(generation.id)
    this.#channel.post({ kind: 'retired', generation: generation.id })
  }

  async #abort(id: number): Promise<void> {
    const generation = this.#callOff(id)
    if (generation === undefined) return
    await generation.drain(DRAIN_MS)
    await generation.shutDown('reload')
    this.#generations.delete(id)
    this.#channel.post({ kind: 'retired', generation: id })
  }

  /** Closes what the preparation of this generation has opened. undefined: it was not prepared, or failed. */
  #callOff(id: number): Generation | undefined {
    if (this.#waiting?.generation.id === id) {
      const { generation } = this.#waiting
      this.#waiting = undefined
      return generation
    }
    if (this.#prepared?.generation.id !== id) return undefined
    const { generation, listeners, rollback } = this.#prepared
    this.#prepared = undefined
    rollback()
    for (const [server, listener] of listeners) if (!this.#listeners.has(server)) listener.close()
    return generation
  }

  async #stop(graceMs: number): Promise<void> {
    this.#transport.attend()
    this.#sockets.stop()
    for (const listener of this.#listeners.values()) listener.stop()
    const generations = [...this.#generations.values()]
    await Promise.all(generations.map((generation) => generation.drain(graceMs)))
    for (const generation of generations) await generation.shutDown('exit')
    for (const listener of this.#listeners.values()) listener.close()
    this.#sockets.close()
    this.#dispatcher.close()
    this.#heart?.cancel()
    this.#channel.post({ kind: 'stopped' })
  }

  #beat(): void {
    this.#sign()
    this.#heart = this.#deps.clock.timer(HEARTBEAT_MS, () => this.#beat())
  }

  #sign(): void {
    this.#channel.post({ kind: 'heartbeat', notReady: this.#notReady(), inFlight: this.#dispatcher.waiting })
  }

  /** Before anything serves this is the server itself, beside what is known of the plugins: a start that waits must not pass for ready. */
  #notReady(): readonly string[] {
    if (this.#current !== undefined) return this.#current.notReady()
    const coming = [...this.#generations.values()].at(-1)
    return ['server', ...(coming?.notReady() ?? [])]
  }

  #fatal(line: string): void {
    this.#channel.post({ kind: 'log', text: `${line}\n` })
    this.#channel.post({ kind: 'exit', code: 1 })
  }
}

const bindingsOf = (listener: Listener): Binding[] => {
  const { host, port } = listener
  const tcp: Binding = { network: 'tcp', host, port, sink: listener }
  return listener.transport === 'dns' ? [tcp, { network: 'udp', host, port, sink: listener }] : [tcp]
}

/** Two transports cannot share an address. */
function checkClashes(bindings: readonly Binding[], listeners: ReadonlyMap<string, Listener>): void {
  const taken = new Map<string, unknown>()
  for (const { network, host, port, sink } of bindings) {
    const key = `${network} ${host === '0.0.0.0' || host === '::' ? '' : host} ${port}`
    const other = taken.get(key)
    if (other !== undefined && other !== sink) {
      const names = [...listeners].filter(([, listener]) => listener === other || listener === sink).map(([server]) => server)
      throw new Error(`listen ${network} ${host}:${port}: bind: address already in use (${names.join(' and ')} share it)`)
    }
    taken.set(key, sink)
  }
}

const banner = (place: Place, listener: Listener): string[] => {
  const zones = [...new Set(place.service.router.sites.map(({ zone }) => zone))]
  return bannerLines(place.transport, place.host, listener.port, zones)
}
