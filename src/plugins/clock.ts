/** The real clock, behind the contract's interface. */
import type { Clock } from './contract.js'

export const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  timer(ms, fn) {
    const handle = setTimeout(fn, ms)
    handle.unref()
    return { cancel: () => clearTimeout(handle) }
  },
}
