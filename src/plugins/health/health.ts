/** The /health endpoint, the check of it that runs once a second, and lameduck. */
import type { Agent } from 'node:http'
import { type ControlContext, type ControlPart, type Counter, formatDuration, type Histogram, quote, type Timer } from '../contract.js'

/** Not loaded by serving threads, which only parse the directive. */
const http = (): typeof import('node:http') => process.getBuiltinModule('node:http')

const PERIOD = 1000
/** A check that takes longer failed. */
const TIMEOUT = 3000
/** 0.25 ms to 2.5 s. */
const BUCKETS = [0, 1, 2, 3, 4].map((n) => 0.00025 * 10 ** n)

export class Health implements ControlPart {
  readonly #ctx: ControlContext
  readonly #lameduck: number
  readonly #url: string
  readonly #duration: Histogram
  readonly #failures: Counter
  readonly #agent: Agent = new (http().Agent)({ keepAlive: true, maxSockets: 1 })
  #timer: Timer | undefined
  #stopped = false

  constructor(address: string, lameduck: number, ctx: ControlContext) {
    this.#ctx = ctx
    this.#lameduck = lameduck
    this.#url = `http://${address.startsWith(':') ? 'localhost' : ''}${address}/health`
    this.#duration = ctx.metrics
      .histogram('coredns_health_request_duration_seconds', 'Time in seconds that the check of our own health endpoint took.', [], BUCKETS)
      .with()
    this.#failures = ctx.metrics
      .counter('coredns_health_request_failures_total', 'Checks of our own health endpoint that failed.', [])
      .with()
    this.#failures.inc(0)
    ctx.http(address, '/health', (_request, response) => {
      const healthy = ctx.process.healthy()
      const body = healthy ? 'OK' : 'a serving thread does not respond'
      response.writeHead(healthy ? 200 : 503, { 'content-type': 'text/plain; charset=utf-8', 'content-length': body.length })
      response.end(body)
    })
  }

  onStartup(): void {
    this.#timer = this.#ctx.clock.timer(PERIOD, () => void this.#check())
  }

  async onFinalShutdown(): Promise<void> {
    if (this.#lameduck <= 0) return
    this.#ctx.log.info(`Going into lameduck mode for ${formatDuration(this.#lameduck)}`)
    await new Promise<void>((done) => void this.#ctx.clock.timer(this.#lameduck, done))
  }

  onShutdown(): void {
    this.#stopped = true
    this.#timer?.cancel()
    this.#agent.destroy()
  }

  async #check(): Promise<void> {
    const start = this.#ctx.clock.monotonic()
    const failure = await this.#request()
    if (this.#stopped) return
    const took = this.#ctx.clock.monotonic() - start
    this.#duration.observe(took / 1000)
    if (failure !== undefined) {
      this.#failures.inc()
      this.#ctx.log.warning(`Local health request to ${quote(this.#url)} failed: ${failure}`)
    } else if (took > 1000) this.#ctx.log.warning(`Local health request to ${quote(this.#url)} took more than 1s: ${formatDuration(took)}`)
    this.#timer = this.#ctx.clock.timer(Math.max(0, PERIOD - took), () => void this.#check())
  }

  /** Why it failed, or undefined. As in CoreDNS any answer counts as success: the point is how long it took. */
  #request(): Promise<string | undefined> {
    return new Promise((done) => {
      const request = http().get(this.#url, { agent: this.#agent, timeout: TIMEOUT }, (response) => {
        response.resume()
        response.on('end', () => done(undefined))
        response.on('error', (error) => done(error.message))
      })
      request.on('timeout', () => request.destroy(new Error(`no answer within ${formatDuration(TIMEOUT)}`)))
      request.on('error', (error) => done(error.message))
    })
  }
}
