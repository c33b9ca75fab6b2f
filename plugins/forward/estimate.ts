/** How fast an upstream answers, from the traffic itself: the 95th percentile of its last replies. */

const SAMPLES = 128
/** Replies between two looks at the percentile. */
const STEP = 16
/** So many samples are above the percentile, and it; at most. */
const TOP = SAMPLES - Math.ceil(SAMPLES * 0.95) + 1

/** The largest samples, largest first; used within one call only. */
const top = new Float64Array(TOP)

export class Estimate {
  readonly #samples = new Float64Array(SAMPLES)
  #count = 0
  /** Milliseconds; 0 until there are some replies. */
  p95 = 0

  add(ms: number): void {
    this.#samples[this.#count++ % SAMPLES] = ms
    if (this.#count % STEP === 0) this.p95 = this.#percentile()
  }

  #percentile(): number {
    const count = Math.min(this.#count, SAMPLES)
    const wanted = count - Math.ceil(count * 0.95)
    top.fill(-1)
    for (let i = 0; i < count; i++) {
      const sample = this.#samples[i]!
      if (sample <= top[wanted]!) continue
      let at = wanted
      for (; at > 0 && top[at - 1]! < sample; at--) top[at] = top[at - 1]!
      top[at] = sample
    }
    return top[wanted]!
  }
}
