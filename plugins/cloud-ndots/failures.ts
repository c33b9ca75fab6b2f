/** Remembers failed look-ups for a few seconds (RFC 9520 §3.2), so that the remaining steps of a client's search walk cost nothing upstream. */
import type { Clock } from '../../src/plugins/contract.js'

const LIFETIME_MS = 5000
/** More names than this failing at once means that everything fails: then the oldest go first. */
const MAX_ENTRIES = 4096

/** What of a failed reply is given again. */
export interface Failure {
  readonly rcode: number
  readonly ra: boolean
}

export class Failures {
  readonly #entries = new Map<string, Failure & { readonly until: number }>()
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get(key: string): Failure | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    if (entry.until > this.#clock.monotonic()) return entry
    this.#entries.delete(key)
    return undefined
  }

  add(key: string, { rcode, ra }: Failure): void {
    this.#entries.delete(key)
    if (this.#entries.size >= MAX_ENTRIES) {
      const oldest = this.#entries.keys().next()
      if (!oldest.done) this.#entries.delete(oldest.value)
    }
    this.#entries.set(key, { rcode, ra, until: this.#clock.monotonic() + LIFETIME_MS })
  }
}
