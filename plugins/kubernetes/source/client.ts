/** One GET to an API server: connection, credentials, limits in time, errors and the client's metrics. */
import http, { type IncomingMessage } from 'node:http'
import https, { type RequestOptions } from 'node:https'
import type { Clock, Counter, Histogram, MetricFamily, MetricsScope } from '../../../src/plugins/contract.js'
import type { ApiAccess } from './access.js'
import type { Limiter } from './limiter.js'
import { ApiError, statusError } from './status.js'

/** Milliseconds. An overloaded server may queue a request for long before it answers. */
export interface ClientLimits {
  /** Until a new connection is made. Where packets get lost, a fresh attempt finds a server that is back sooner than an old one. */
  readonly connect: number
  /** Until the head of the answer is in. */
  readonly head: number
  /** Between two pieces of a body that is not a watch. */
  readonly idle: number
}

/** An answer that stays on this side of memory: bodies of refusals are cut. */
const MAX_REFUSAL = 64 * 1024
/** TCP probes find a dead peer in about two minutes, where nothing in between answers for it. */
const KEEP_ALIVE_MS = 15_000

export class ApiClient {
  /** Host and port, as the metrics label it. */
  readonly host: string
  readonly clock: Clock
  readonly #access: ApiAccess
  readonly #limits: ClientLimits
  readonly #metrics: ClientMetrics
  readonly #base: string
  readonly #transport: typeof https | typeof http
  readonly #agent: http.Agent
  readonly #limiter: Limiter
  /** What was refused with 403 and not granted since, by verb and path: words for the operator. */
  readonly denied = new Map<string, string>()

  constructor(access: ApiAccess, limits: ClientLimits, metrics: ClientMetrics, clock: Clock, limiter: Limiter) {
    this.#access = access
    this.#limiter = limiter
    this.#limits = limits
    this.#metrics = metrics
    this.clock = clock
    this.host = access.base.host
    this.#base = access.base.pathname.replace(/\/+$/, '')
    const secure = access.base.protocol === 'https:'
    this.#transport = secure ? https : http
    this.#agent = new this.#transport.Agent({ keepAlive: true, timeout: 10_000 })
  }

  /**
   * Opens `path`, resolves with an answer of status 200 whose body was not read yet. A `watch` gets a connection of its own: a reused one
   * might be dead already. Rejects with ApiError.
   */
  async open(path: string, how: 'list' | 'watch', signal: AbortSignal): Promise<IncomingMessage> {
    const leave = await this.#enter(signal)
    let response: IncomingMessage
    try {
      response = await this.#send(await this.#options(path, how), path, signal)
    } finally {
      leave()
    }
    const status = response.statusCode ?? 0
    const denied = `${how} ${path.replace(/\?.*/s, '')}`
    if (status !== 403) this.denied.delete(denied)
    if (status === 200) return response
    if (status === 401) this.#access.refused()
    if (status === 403) this.denied.set(denied, missingPermission(denied))
    throw statusError(status, await readRefusal(response, this.clock), response.headers['retry-after'])
  }

  /** Waits for our own limits; resolves with what is to be called when the answer begins. */
  async #enter(signal: AbortSignal): Promise<() => void> {
    const asked = this.clock.monotonic()
    const leave = await this.#limiter.enter(signal)
    this.#metrics.limiter.with('GET', this.host).observe((this.clock.monotonic() - asked) / 1000)
    return leave
  }

  /** Opens `path` and feeds its body to `onChunk` as it comes. Rejects with ApiError, or with what `onChunk` throws. */
  async list(path: string, onChunk: (chunk: Buffer) => void, signal: AbortSignal): Promise<void> {
    const started = this.clock.monotonic()
    try {
      await pumpWithin(this.#limits.idle, this.clock, await this.open(path, 'list', signal), onChunk)
    } finally {
      this.#metrics.duration.with('GET', this.host).observe((this.clock.monotonic() - started) / 1000)
    }
  }

  close(): void {
    this.#agent.destroy()
  }

  async #options(path: string, how: 'list' | 'watch'): Promise<RequestOptions> {
    const { headers, ...rest } = await this.#credentials()
    const { hostname, port, protocol } = this.#access.base
    return {
      ...rest,
      protocol,
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port,
      path: this.#base + path,
      agent: rest.agent ?? (how === 'watch' ? false : this.#agent),
      headers: { accept: 'application/json', 'user-agent': 'CairnDNS', ...headers },
    }
  }

  async #credentials(): Promise<RequestOptions> {
    try {
      return await this.#access.options()
    } catch (cause) {
      throw new ApiError(`no credentials: ${(cause as Error).message}`, 0, 0, { cause })
    }
  }

  #send(options: RequestOptions, path: string, signal: AbortSignal): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const request = this.#transport.get({ ...options, signal })
      const timer = this.clock.timer(this.#limits.head, () => request.destroy(new Error('no answer in time')))
      request.on('socket', (socket) => {
        socket.setKeepAlive(true, KEEP_ALIVE_MS)
        if (!socket.connecting) return
        const patience = this.clock.timer(this.#limits.connect, () => request.destroy(new Error('no connection in time')))
        socket.once('connect', () => patience.cancel()).once('close', () => patience.cancel())
      })
      request.on('response', (response) => {
        timer.cancel()
        this.#metrics.requests.with(String(response.statusCode), 'GET', this.host).inc()
        resolve(response)
      })
      request.on('error', (cause) => {
        timer.cancel()
        if (!signal.aborted) this.#metrics.requests.with('<error>', 'GET', this.host).inc()
        const { protocol, host } = this.#access.base
        // Without the query, which differs each time: equal complaints are logged once.
        reject(new ApiError(`Get "${protocol}//${host}${this.#base}${path.replace(/\?.*/, '')}": ${cause.message}`, 0, 0, { cause }))
      })
    })
  }
}

/** `request`: verb and path. */
function missingPermission(request: string): string {
  const [verb, path = ''] = request.split(' ')
  const [, group = ''] = /^\/apis\/([^/]+)\//.exec(path) ?? []
  return `permission is missing: verb "${verb}" on resource "${path.slice(path.lastIndexOf('/') + 1)}" of API group "${group}"`
}

/** Feeds a body to `onChunk`; resolves at its end. Rejects with ApiError where it breaks off, or with what `onChunk` throws. */
export function pump(response: IncomingMessage, onChunk: (chunk: Buffer) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: unknown) => {
      response.destroy()
      reject(error)
    }
    response.on('data', (chunk: Buffer) => {
      try {
        onChunk(chunk)
      } catch (error) {
        fail(error)
      }
    })
    response.on('end', resolve)
    response.on('error', (cause) => fail(new ApiError(`the connection broke: ${cause.message}`, 0, 0, { cause })))
    response.on('close', () => fail(new ApiError('the connection broke', 0)))
  })
}

/** Like pump, but breaks off when nothing came for `idle` ms. */
async function pumpWithin(idle: number, clock: Clock, response: IncomingMessage, onChunk: (chunk: Buffer) => void): Promise<void> {
  let heard = clock.monotonic()
  const check = () => {
    const left = heard + idle - clock.monotonic()
    if (left <= 0) response.destroy(new Error(`nothing came for ${idle / 1000} s`))
    else timer = clock.timer(left, check)
  }
  let timer = clock.timer(idle, check)
  try {
    await pump(response, (chunk) => {
      heard = clock.monotonic()
      onChunk(chunk)
    })
  } finally {
    timer.cancel()
  }
}

/** The body of a refusal, parsed if it is a Status object. */
async function readRefusal(response: IncomingMessage, clock: Clock): Promise<unknown> {
  let text = ''
  const take = (chunk: Buffer) => {
    text += chunk.toString('utf8')
    if (text.length > MAX_REFUSAL) throw new ApiError('too long', 0)
  }
  try {
    await pumpWithin(5000, clock, response, take)
    return JSON.parse(text)
  } catch {
    // No Status object: the HTTP status alone says what happened.
    return undefined
  }
}

export interface ClientMetrics {
  readonly duration: MetricFamily<Histogram>
  readonly limiter: MetricFamily<Histogram>
  readonly requests: MetricFamily<Counter>
}

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

export function clientMetrics(metrics: MetricsScope): ClientMetrics {
  return {
    duration: metrics.histogram(
      'coredns_kubernetes_rest_client_request_duration_seconds',
      'Time that requests to the Kubernetes API took, in seconds, by verb and host.',
      ['verb', 'host'],
      SECONDS,
    ),
    limiter: metrics.histogram(
      'coredns_kubernetes_rest_client_rate_limiter_duration_seconds',
      'Time that requests to the Kubernetes API were held back by our own rate limit, in seconds, by verb and host.',
      ['verb', 'host'],
      SECONDS,
    ),
    requests: metrics.counter(
      'coredns_kubernetes_rest_client_requests_total',
      'Requests to the Kubernetes API, by status code, method and host.',
      ['code', 'method', 'host'],
    ),
  }
}
