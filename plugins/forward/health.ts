/**
 * Whether an upstream can be relied on. Two judgements stand side by side. `down` is CoreDNS's: more failed probes in a row than `max_fails`.
 * `suspect` is ours and quicker: it refuses, or has left the last questions unanswered; it is then asked after the others until a reply
 * shows that it is back.
 *
 * Of several serving threads one probes and tells the others what comes of it; should it fall silent, the next one takes over.
 */

import { type Name, TYPE } from '../../src/dns/index.js'
import type { Clock, Counterparts, Timer } from '../../src/plugins/contract.js'
import { Ask } from './ask.js'
import { questionFrame } from './frame.js'

export interface HealthSettings {
  readonly maxFails: number
  readonly probeInterval: number
  readonly probeDomain: Name
  readonly probeRecursion: boolean
  readonly forceTcp: boolean
}

/** What threads tell each other of an upstream. */
export interface Word {
  /** Index of the thread that speaks. */
  readonly by: number
  /** It is at it. false: the upstream answers. */
  readonly probing: boolean
  readonly fails: number
}

export interface Surroundings {
  readonly clock: Clock
  /** Index of this thread. */
  readonly thread: number
  /** Opens the line to the other threads. */
  readonly line: (receive: (word: Word) => void) => Counterparts<Word>
  /** May throw. */
  readonly send: (ask: Ask) => void
  readonly probeFailed: () => void
}

const PROBE_TIMEOUT = 1000
/** A `health_check 0s` must not become a busy loop. */
const MIN_INTERVAL = 20
/** Questions in a row without an answer in good time that make an upstream suspect. */
const SUSPICIOUS = 3
/** Without probes (`max_fails 0`) a suspect upstream is tried again this often. */
const TRIAL_INTERVAL = 1000
/** How late the word of the thread that probes may be. */
const SLACK = 500

export class Health {
  readonly #settings: HealthSettings
  readonly #around: Surroundings
  readonly #line: Counterparts<Word>
  #probing: Timer | undefined
  #probeAsk: Ask | undefined
  /** Runs while another thread probes: when it is over, that one has fallen silent. */
  #elsewhere: Timer | undefined
  #closed = false
  #fails = 0
  #unanswered = 0
  #suspectSince = -1
  #probedAt = Number.NEGATIVE_INFINITY

  constructor(settings: HealthSettings, around: Surroundings) {
    this.#settings = settings
    this.#around = around
    this.#line = around.line((word) => this.#hear(word))
  }

  get down(): boolean {
    return this.#settings.maxFails > 0 && this.#fails > this.#settings.maxFails
  }

  get suspect(): boolean {
    if (this.#suspectSince < 0) return false
    if (this.#settings.maxFails > 0) return true
    const now = this.#around.clock.monotonic()
    if (now - this.#suspectSince < TRIAL_INTERVAL) return true
    this.#suspectSince = now
    return false
  }

  /** A reply came. */
  answered(): void {
    if (this.#fails > 0) this.#tell(false, 0)
    this.#clear()
  }

  /** It refuses what was put at `began`. */
  suspected(began: number): void {
    if (this.#suspectSince < 0) this.#suspectSince = this.#around.clock.monotonic()
    this.check(began)
  }

  /** A question put at `began` was not answered in good time: perhaps it is a hard one, a probe will tell. */
  overdue(began: number): void {
    this.#unanswered++
    if (this.#unanswered >= SUSPICIOUS) this.suspected(began)
    else this.check(began)
  }

  /** A question put at `began` failed: probes, unless that is switched off, under way, or was done since. */
  check(began: number): void {
    if (this.#settings.maxFails === 0 || this.#closed || this.#probedAt >= began) return
    if (!this.#isProbing && this.#elsewhere === undefined) this.#probe()
  }

  close(): void {
    this.#closed = true
    this.#stopProbing()
    this.#elsewhere?.cancel()
    this.#line.close()
  }

  get #isProbing(): boolean {
    return this.#probing !== undefined || this.#probeAsk !== undefined
  }

  #clear(): void {
    this.#fails = 0
    this.#unanswered = 0
    this.#suspectSince = -1
  }

  #stopProbing(): void {
    this.#probing?.cancel()
    this.#probing = undefined
    const ask = this.#probeAsk
    this.#probeAsk = undefined
    ask?.cancel()
  }

  #probe(): void {
    this.#probing = undefined
    this.#probedAt = this.#around.clock.monotonic()
    this.#tell(true, this.#fails)
    const { probeDomain, probeRecursion, forceTcp } = this.#settings
    const frame = questionFrame(probeDomain, TYPE.NS, probeRecursion)
    let late: Timer | undefined
    const ended = (error: Error | undefined): void => {
      late?.cancel()
      // Called off.
      if (this.#probeAsk !== ask) return
      this.#probeAsk = undefined
      if (error === undefined) this.#probeAnswered()
      else this.#probeFailed()
    }
    const ask = new Ask(forceTcp ? 'tcp' : 'udp', { settled: (_, __, error) => ended(error) })
    ask.frame = frame
    ask.began = this.#probedAt
    this.#probeAsk = ask
    late = this.#around.clock.timer(PROBE_TIMEOUT, () => {
      ask.cancel()
      ended(new Error('i/o timeout'))
    })
    try {
      this.#around.send(ask)
    } catch (error) {
      ask.settle(undefined, error as Error)
    }
  }

  #probeAnswered(): void {
    this.#tell(false, 0)
    this.#clear()
  }

  #probeFailed(): void {
    if (this.#closed) return
    this.#fails++
    if (this.#suspectSince < 0) this.#suspectSince = this.#around.clock.monotonic()
    this.#around.probeFailed()
    this.#tell(true, this.#fails)
    this.#probing = this.#around.clock.timer(this.#interval, () => this.#probe())
  }

  get #interval(): number {
    return Math.max(MIN_INTERVAL, this.#settings.probeInterval)
  }

  #tell(probing: boolean, fails: number): void {
    this.#line.tell({ by: this.#around.thread, probing, fails })
  }

  #hear({ by, probing, fails }: Word): void {
    if (this.#closed) return
    const { clock, thread } = this.#around
    // Two began at the same time: the first one goes on.
    if (probing && this.#isProbing && by > thread) return
    this.#stopProbing()
    this.#elsewhere?.cancel()
    this.#elsewhere = undefined
    if (!probing) {
      this.#clear()
      return
    }
    this.#fails = fails
    this.#probedAt = clock.monotonic()
    if (fails > 0 && this.#suspectSince < 0) this.#suspectSince = this.#probedAt
    this.#elsewhere = clock.timer(this.#interval + PROBE_TIMEOUT + SLACK, () => {
      this.#elsewhere = undefined
      if (this.#fails > 0) this.#probe()
    })
  }
}
