/** Latencies in 64 steps an octave (each within 1.6 %), from 0.1 µs to 7 minutes, in a fixed array: recording allocates nothing. */

const SUB_BITS = 6
const SUB = 1 << SUB_BITS
const SIZE = (32 - SUB_BITS) * SUB + SUB
/** Units of 0.1 µs. */
const PER_MS = 10_000
const MAX = 2 ** 32 - 1

export class Histogram {
  readonly #counts = new Uint32Array(SIZE)
  #total = 0

  get count(): number {
    return this.#total
  }

  record(ms: number): void {
    const units = Math.min(MAX, Math.max(0, Math.round(ms * PER_MS))) >>> 0
    const shift = units < 2 * SUB ? 0 : 31 - Math.clz32(units) - SUB_BITS
    const at = shift * SUB + (units >>> shift)
    this.#counts[at] = this.#counts[at]! + 1
    this.#total++
  }

  /** Milliseconds below or at which `share` (0–1) of all lie: the middle of their step; NaN if nothing was recorded. */
  percentile(share: number): number {
    if (this.#total === 0) return Number.NaN
    const wanted = Math.max(1, Math.ceil(this.#total * share))
    let seen = 0
    for (let at = 0; at < SIZE; at++) {
      seen += this.#counts[at]!
      if (seen >= wanted) return middleOf(at) / PER_MS
    }
    return MAX / PER_MS
  }

  clear(): void {
    this.#counts.fill(0)
    this.#total = 0
  }
}

function middleOf(at: number): number {
  if (at < 2 * SUB) return at
  const shift = Math.floor(at / SUB) - 1
  const low = (at - shift * SUB) * 2 ** shift
  return low + 2 ** shift / 2
}
