/** Our own limits on requests to the API: so many a second, and so many at once. */
import type { Clock } from '../../../src/plugins/contract.js'
import { pause } from './backoff.js'

export interface RequestLimits {
  /** Requests a second on average; 0: no limit. */
  readonly qps: number
  /** Requests in a row before that counts; 0: client-go's 10. */
  readonly burst: number
  /** Requests whose answer has not begun; 0: no limit. */
  readonly maxInflight: number
}

const DEFAULT_BURST = 10

export class Limiter {
  readonly #limits: RequestLimits
  readonly #clock: Clock
  /** When the bucket would be full again, by the monotonic clock. */
  #fullAt = 0
  #inFlight = 0
  #queue: (() => void)[] = []

  constructor(limits: RequestLimits, clock: Clock) {
    this.#limits = limits
    this.#clock = clock
  }

  /** Resolves when a request may go, with what is to be called once its answer begins or it failed. Rejects when `signal` aborts. */
  async enter(signal: AbortSignal): Promise<() => void> {
    await this.#token(signal)
    signal.throwIfAborted()
    if (this.#limits.maxInflight > 0 && this.#inFlight >= this.#limits.maxInflight) await this.#turn(signal)
    else this.#inFlight++
    let left = false
    return () => {
      if (!left) this.#leave()
      left = true
    }
  }

  async #token(signal: AbortSignal): Promise<void> {
    const { qps, burst } = this.#limits
    if (qps <= 0) return
    const each = 1000 / qps
    const now = this.#clock.monotonic()
    this.#fullAt = Math.max(this.#fullAt, now) + each
    const wait = this.#fullAt - now - each * (burst || DEFAULT_BURST)
    if (wait > 0) await pause(this.#clock, wait, signal)
  }

  /** The place of one that leaves is handed on, so the count stays. */
  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = (): void => {
        signal.removeEventListener('abort', stop)
        resolve()
      }
      const stop = (): void => {
        this.#queue = this.#queue.filter((other) => other !== go)
        reject(signal.reason)
      }
      signal.addEventListener('abort', stop, { once: true })
      this.#queue.push(go)
    })
  }

  #leave(): void {
    const next = this.#queue.shift()
    if (next === undefined) this.#inFlight--
    else next()
  }
}
