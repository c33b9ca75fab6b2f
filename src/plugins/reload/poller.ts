/** Looks at the Corefile and its imports now and then, and changes over to them when they have changed. */
import type { ControlContext, ControlPart, Gauge, MetricFamily, Timer } from '../contract.js'

export class Poller implements ControlPart {
  readonly #ctx: ControlContext
  readonly #interval: number
  readonly #version: MetricFamily<Gauge>
  #hash: string | undefined
  #timer: Timer | undefined
  #stopped = false

  constructor(interval: number, ctx: ControlContext) {
    this.#ctx = ctx
    this.#interval = interval
    this.#version = ctx.metrics.gauge(
      'coredns_reload_version_info',
      'Always 1; the labels name the hash of the Corefile that was read last.',
      ['hash', 'value'],
    )
  }

  onStartup(): void {
    this.#hash = this.#ctx.process.readConfig().sha512
    this.#ctx.log.info(`Running configuration SHA512 = ${this.#hash ?? ''}`)
    this.#arm()
  }

  onShutdown(): void {
    this.#stopped = true
    this.#timer?.cancel()
  }

  #arm(): void {
    if (!this.#stopped) this.#timer = this.#ctx.clock.timer(this.#interval, () => void this.#look())
  }

  async #look(): Promise<void> {
    const { sha512, error } = this.#ctx.process.readConfig()
    if (error !== undefined) this.#ctx.log.warning(`Corefile parse failed: ${error.message}`)
    // A file that turns out bad later on is remembered as well: it is not tried again until it changes.
    else if (sha512 !== this.#hash) await this.#change(sha512)
    this.#arm()
  }

  async #change(sha512: string): Promise<void> {
    if (this.#hash !== undefined) this.#version.remove('sha512', this.#hash)
    this.#hash = sha512
    const failure = await this.#ctx.process.reload()
    if (failure !== undefined) this.#ctx.log.error(`Corefile changed but reload failed: ${failure.message}`)
    this.#version.with('sha512', sha512).set(1)
  }
}
