/**
 * One upstream server: its sockets and connections, how fast it is, and whether it can be relied on. Shared by all `forward` lines that
 * name it with the same options, and kept over reloads.
 */

import type { Clock, ConnectDatagram, Timer } from '../../src/plugins/contract.js'
import type { Ask, Ids } from './ask.js'
import { Cookies } from './cookies.js'
import { DohPool } from './doh.js'
import { Estimate } from './estimate.js'
import { makeFrame } from './frame.js'
import { Health, type HealthSettings, type Surroundings } from './health.js'
import type { UpstreamMetrics } from './metrics.js'
import type { Received } from './reply.js'
import { StreamPool } from './stream.js'
import type { Target } from './targets.js'
import type { TlsClient } from './tls.js'
import { type PoolOptions, UdpPool } from './udp.js'

/** Everything of a `forward` line that its upstreams depend on. */
export interface UpstreamSettings extends HealthSettings {
  readonly expire: number
  readonly maxAge: number
  readonly maxIdle: number
  readonly readTimeout: number
  readonly sourceAddress: string | undefined
  readonly cookies: boolean
  readonly dohMethod: 'GET' | 'POST'
  /** undefined: plain DNS. */
  readonly tls: TlsClient | undefined
  readonly serverName: string
}

const MAX_SWEEP = 10_000

/** What an upstream gets from the thread that it lives in. */
export interface UpstreamSurroundings extends Pick<Surroundings, 'clock' | 'thread' | 'line'> {
  readonly connect: ConnectDatagram
  readonly ids: Ids
  readonly metrics: UpstreamMetrics
}

export class Upstream {
  readonly target: Target
  readonly settings: UpstreamSettings
  readonly estimate = new Estimate()
  readonly health: Health
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #metrics: UpstreamMetrics
  readonly #connect: ConnectDatagram
  readonly #cookies: Cookies | undefined
  #udp: UdpPool | undefined
  #stream: StreamPool | undefined
  #doh: DohPool | undefined
  #sweeping: Timer | undefined
  #closed = false

  constructor(target: Target, settings: UpstreamSettings, { clock, connect, ids, metrics, thread, line }: UpstreamSurroundings) {
    this.target = target
    this.settings = settings
    this.#clock = clock
    this.#connect = connect
    this.#ids = ids
    this.#metrics = metrics
    this.health = new Health(settings, { clock, thread, line, send: (ask) => this.#send(ask), probeFailed: () => metrics.probeFailed() })
    this.#cookies = settings.cookies ? new Cookies() : undefined
  }

  /** "10.0.0.10:53" */
  get label(): string {
    return this.target.label
  }

  /** Milliseconds after which a healthy upstream would have answered. */
  get patience(): number {
    return Math.max(200, 2 * this.estimate.p95)
  }

  /** Puts a question, under a new id. Who asked hands on to `learn` what comes of it, also when nobody waits any longer. */
  ask(ask: Ask, now: number): void {
    ask.began = now
    const plain = this.target.transport === 'dns'
    // Only a UDP socket reads a query at once.
    if (ask.frame === undefined && (!plain || ask.proto === 'tcp' || this.#cookies !== undefined))
      ask.frame = makeFrame(ask.query!, ask.ecsPass)
    if (this.#cookies !== undefined && plain && ask.proto === 'udp') this.#mark(ask, this.#cookies)
    this.#metrics.asked()
    try {
      this.#send(ask)
    } catch (error) {
      // A connection that cannot even be made (no descriptors left, say) is a failed attempt like others.
      ask.settle(undefined, error as Error)
    }
  }

  #mark(ask: Ask, cookies: Cookies): void {
    const marked = cookies.put(ask.frame!)
    if (marked === undefined) return
    ask.frame = marked
    ask.cookies = cookies
  }

  /** What a question came to says how fast the upstream is, and whether it is there. */
  learn(ask: Ask, reply: Received | undefined, error: Error | undefined): void {
    if (reply !== undefined) {
      const now = this.#clock.recent()
      // Clocks of two kinds may have been read.
      this.#replied(reply.rcode, Math.max(0, now - ask.began))
    } else if (isRefusal(error)) this.health.suspected(ask.began)
  }

  close(): void {
    this.#closed = true
    this.#sweeping?.cancel()
    this.health.close()
    const error = new Error('proxy: transport stopped')
    this.#udp?.close(error)
    this.#stream?.close(error)
    this.#doh?.close(error)
  }

  #replied(rcode: number, ms: number): void {
    this.health.answered()
    this.estimate.add(ms)
    this.#metrics.replied(rcode, ms / 1000)
  }

  #send(ask: Ask): void {
    if (this.#closed) {
      ask.settle(undefined, new Error('proxy: transport stopped'))
      return
    }
    this.#sweepLater()
    if (this.target.transport === 'https') {
      this.#doh ??= new DohPool({ ...this.#streamOptions('https'), method: this.settings.dohMethod })
      this.#doh.ask(ask)
    } else if (this.target.transport === 'tls' || ask.proto === 'tcp') {
      this.#stream ??= new StreamPool(this.#streamOptions(this.target.transport === 'tls' ? 'tcp-tls' : 'tcp'))
      this.#stream.ask(ask)
    } else {
      this.#udp ??= new UdpPool(this.#poolOptions('udp'))
      this.#udp.ask(ask)
    }
  }

  #poolOptions(proto: string): PoolOptions {
    const { expire, maxAge, maxIdle, sourceAddress } = this.settings
    return {
      target: this.target,
      expire,
      maxAge,
      maxIdle,
      sourceAddress,
      clock: this.#clock,
      connect: this.#connect,
      ids: this.#ids,
      used: this.#metrics.connections(proto),
      ignored: () => this.#metrics.ignored(),
    }
  }

  #streamOptions(proto: string): ConstructorParameters<typeof StreamPool>[0] {
    const { readTimeout, tls, serverName } = this.settings
    return {
      ...this.#poolOptions(proto),
      dialTimeout: Math.max(1000, readTimeout),
      tls: tls === undefined ? undefined : { context: tls.context, serverName },
    }
  }

  #sweepLater(): void {
    if (this.#sweeping !== undefined) return
    const interval = Math.min(MAX_SWEEP, Math.max(1000, this.settings.expire))
    this.#sweeping = this.#clock.timer(interval, () => {
      this.#sweeping = undefined
      for (const pool of [this.#udp, this.#stream, this.#doh]) pool?.sweep()
      const empty = [this.#udp, this.#stream, this.#doh].every((pool) => pool === undefined || pool.empty)
      if (!empty) this.#sweepLater()
    })
  }
}

/** The upstream's host said itself that nobody listens; no need to wait for more of that. */
function isRefusal(error: Error | undefined): boolean {
  const code = (error?.cause as NodeJS.ErrnoException | undefined)?.code
  return code === 'ECONNREFUSED' || code === 'EHOSTUNREACH' || code === 'ENETUNREACH'
}
