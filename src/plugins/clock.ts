/** The real clock, behind the contract's interface. */
// The global of this name is a getter, which costs as much again as reading the clock.
import { performance } from 'node:perf_hooks'
import type { Clock } from './contract.js'

export const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  recent: () => performance.now(),
  timer(ms, fn) {
    const handle = setTimeout(fn, ms)
    handle.unref()
    return { cancel: () => clearTimeout(handle) }
  },
}
