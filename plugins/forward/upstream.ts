/**
 * One upstream server: its sockets and connections, how fast it is, and whether it can be relied on. Shared by all `forward` lines that
 * name it with the same options, and kept over reloads.
 *
 * Two judgements stand side by side. `down` is CoreDNS's: more failed probes in a row than `max_fails`. `suspect` is ours and quicker: it
 * refuses, or has left the last questions unanswered; it is then asked after the others until a reply shows that it is back.
 */

import { type Name, TYPE } from '../../src/dns/index.js'
import type { Clock, ConnectDatagram, Timer } from '../../src/plugins/contract.js'
import { Ask, type Done, type Ids, type Proto } from './ask.js'
import { Cookies } from './cookies.js'
import { DohPool } from './doh.js'
import { Estimate } from './estimate.js'
import { questionFrame } from './frame.js'
import type { UpstreamMetrics } from './metrics.js'
import { StreamPool } from './stream.js'
import type { Target } from './targets.js'
import type { TlsClient } from './tls.js'
import { type PoolOptions, UdpPool } from './udp.js'

/** Everything of a `forward` line that its upstreams depend on. */
export interface UpstreamSettings {
  readonly expire: number
  readonly maxAge: number
  readonly maxIdle: number
  readonly readTimeout: number
  readonly maxFails: number
  readonly probeInterval: number
  readonly probeDomain: Name
  readonly probeRecursion: boolean
  readonly forceTcp: boolean
  readonly sourceAddress: string | undefined
  readonly cookies: boolean
  readonly dohMethod: 'GET' | 'POST'
  /** undefined: plain DNS. */
  readonly tls: TlsClient | undefined
  readonly serverName: string
}

const PROBE_TIMEOUT = 1000
/** A `health_check 0s` must not become a busy loop. */
const MIN_INTERVAL = 20
const MAX_SWEEP = 10_000
/** Questions in a row without an answer in good time that make an upstream suspect. */
const SUSPICIOUS = 3
/** Without probes (`max_fails 0`) a suspect upstream is tried again this often. */
const TRIAL_INTERVAL = 1000

export class Upstream {
  readonly target: Target
  readonly settings: UpstreamSettings
  readonly estimate = new Estimate()
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #metrics: UpstreamMetrics
  readonly #connect: ConnectDatagram
  readonly #cookies: Cookies | undefined
  #udp: UdpPool | undefined
  #stream: StreamPool | undefined
  #doh: DohPool | undefined
  #sweeping: Timer | undefined
  #probing: Timer | undefined
  #probeAsk: Ask | undefined
  #closed = false
  #fails = 0
  #unanswered = 0
  #suspectSince = -1
  #probedAt = Number.NEGATIVE_INFINITY

  constructor(target: Target, settings: UpstreamSettings, clock: Clock, connect: ConnectDatagram, ids: Ids, metrics: UpstreamMetrics) {
    this.target = target
    this.settings = settings
    this.#clock = clock
    this.#connect = connect
    this.#ids = ids
    this.#metrics = metrics
    this.#cookies = settings.cookies ? new Cookies() : undefined
  }

  /** "10.0.0.10:53" */
  get label(): string {
    return this.target.label
  }

  get down(): boolean {
    return this.settings.maxFails > 0 && this.#fails > this.settings.maxFails
  }

  get suspect(): boolean {
    if (this.#suspectSince < 0) return false
    if (this.settings.maxFails > 0) return true
    const now = this.#clock.monotonic()
    if (now - this.#suspectSince < TRIAL_INTERVAL) return true
    this.#suspectSince = now
    return false
  }

  /** Milliseconds after which a healthy upstream would have answered. */
  get patience(): number {
    return Math.max(200, 2 * this.estimate.p95)
  }

  /** Puts the frame's question, under a new id. The upstream learns from what comes of it, also when nobody waits any longer. */
  ask(frame: Buffer, proto: Proto, exact: boolean, done: Done): Ask {
    const began = this.#clock.monotonic()
    const marked = proto === 'udp' && this.target.transport === 'dns' ? this.#cookies?.put(frame) : undefined
    const ask = new Ask(marked ?? frame, proto, exact, (settled, reply, error) => {
      if (reply !== undefined) this.#replied(reply.rcode, this.#clock.monotonic() - began)
      else if (isRefusal(error)) this.#suspected(began)
      done(settled, reply, error)
    })
    if (marked !== undefined) ask.cookies = this.#cookies
    this.#metrics.asked()
    try {
      this.#send(ask)
    } catch (error) {
      // A socket that cannot even be made (no descriptors left, say) is a failed attempt like others.
      ask.settle(undefined, error as Error)
    }
    return ask
  }

  /** A question put at `began` was not answered in good time: perhaps it is a hard one, a probe will tell. */
  overdue(began: number): void {
    this.#unanswered++
    if (this.#unanswered >= SUSPICIOUS) this.#suspected(began)
    else this.check(began)
  }

  /** A question put at `began` failed: probes, unless that is switched off, under way, or was done since. */
  check(began: number): void {
    if (this.settings.maxFails === 0 || this.#closed || this.#probedAt >= began) return
    if (this.#probing === undefined && this.#probeAsk === undefined) this.#probe()
  }

  close(): void {
    this.#closed = true
    this.#sweeping?.cancel()
    this.#probing?.cancel()
    this.#probeAsk?.cancel()
    const error = new Error('proxy: transport stopped')
    this.#udp?.close(error)
    this.#stream?.close(error)
    this.#doh?.close(error)
  }

  #replied(rcode: number, ms: number): void {
    this.#answered()
    this.estimate.add(ms)
    this.#metrics.replied(rcode, ms / 1000)
  }

  #answered(): void {
    this.#fails = 0
    this.#unanswered = 0
    this.#suspectSince = -1
  }

  #suspected(began: number): void {
    if (this.#suspectSince < 0) this.#suspectSince = this.#clock.monotonic()
    this.check(began)
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
      used: (kept) => this.#metrics.connection(proto, kept),
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

  #probe(): void {
    this.#probing = undefined
    this.#probedAt = this.#clock.monotonic()
    const { probeDomain, probeRecursion, forceTcp } = this.settings
    const frame = questionFrame(probeDomain, TYPE.NS, probeRecursion)
    let late: Timer | undefined
    const ended = (error: Error | undefined): void => {
      late?.cancel()
      this.#probeAsk = undefined
      if (error === undefined) this.#answered()
      else this.#probeFailed()
    }
    const ask = new Ask(frame, forceTcp ? 'tcp' : 'udp', false, (_, __, error) => ended(error))
    this.#probeAsk = ask
    late = this.#clock.timer(PROBE_TIMEOUT, () => {
      ask.cancel()
      ended(new Error('i/o timeout'))
    })
    try {
      this.#send(ask)
    } catch (error) {
      ask.settle(undefined, error as Error)
    }
  }

  #probeFailed(): void {
    if (this.#closed) return
    this.#fails++
    if (this.#suspectSince < 0) this.#suspectSince = this.#clock.monotonic()
    this.#metrics.probeFailed()
    this.#probing = this.#clock.timer(Math.max(MIN_INTERVAL, this.settings.probeInterval), () => this.#probe())
  }
}

/** The upstream's host said itself that nobody listens; no need to wait for more of that. */
function isRefusal(error: Error | undefined): boolean {
  const code = (error?.cause as NodeJS.ErrnoException | undefined)?.code
  return code === 'ECONNREFUSED' || code === 'EHOSTUNREACH' || code === 'ENETUNREACH'
}
