/** How fast an upstream answers, from the traffic itself: the 95th percentile of its last replies. */

const SAMPLES = 128
/** Replies between two looks at the percentile. */
const STEP = 16

export class Estimate {
  readonly #samples = new Float64Array(SAMPLES)
  #count = 0
  /** Milliseconds; 0 until there are some replies. */
  p95 = 0

  add(ms: number): void {
    this.#samples[this.#count++ % SAMPLES] = ms
    if (this.#count % STEP !== 0) return
    const kept = this.#samples.slice(0, Math.min(this.#count, SAMPLES)).sort()
    this.p95 = kept[Math.ceil(kept.length * 0.95) - 1] ?? 0
  }
}
