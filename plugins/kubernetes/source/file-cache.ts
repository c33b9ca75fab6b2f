/** Small files that others renew: tokens and certificates. */
import { readFileSync } from 'node:fs'
import type { Clock } from '../../../src/plugins/contract.js'

/** How long a text is believed, in milliseconds. A kubelet renews tokens long before they end. */
const MAX_AGE = 30_000

export class FileCache {
  readonly #clock: Clock
  readonly #texts = new Map<string, { text: string; at: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The text of the file, read again when what is known of it is old. Throws what reading throws, unless an older text is known. */
  read(path: string): string {
    const known = this.#texts.get(path)
    const now = this.#clock.monotonic()
    if (known !== undefined && now - known.at < MAX_AGE) return known.text
    try {
      const text = readFileSync(path, 'utf8')
      this.#texts.set(path, { text, at: now })
      return text
    } catch (error) {
      // In the middle of a renewal the old one may still do; if not, the server says so.
      if (known !== undefined) return known.text
      throw error
    }
  }

  /** Everything is read again when it is next asked for. */
  forget(): void {
    for (const known of this.#texts.values()) known.at = Number.NEGATIVE_INFINITY
  }
}
