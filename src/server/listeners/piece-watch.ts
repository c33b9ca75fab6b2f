/**
 * Whether datagrams that leave in one piece arrive. All kernels and network devices should take them apart rightly; one between here and the
 * upstream that does not would lose questions without a word, and only under load. So when many more get no answer than that can be chance,
 * they leave one by one for a while.
 */
import type { Clock } from '../../plugins/contract.js'
import type { Segments } from '../native/segments.js'

const LOOK_MS = 1000
const REST_MS = 60_000
/** Datagrams in pieces that say something. */
const ENOUGH = 64

export class PieceWatch {
  /** Datagrams sent to upstreams, and come from them, so far. */
  sent = 0
  heard = 0
  readonly #clock: Clock
  readonly #segments: Segments
  #looking = false
  /** What it was a look ago. */
  #before = { pieces: 0, sent: 0, heard: 0 }

  constructor(clock: Clock, segments: Segments) {
    this.#clock = clock
    this.#segments = segments
  }

  /** Something has left, perhaps in pieces. */
  left(): void {
    if (this.#looking || this.#segments.pieces === this.#before.pieces) return
    this.#looking = true
    this.#before = { pieces: this.#segments.pieces, sent: this.sent, heard: this.heard }
    this.#clock.timer(LOOK_MS, () => this.#look())
  }

  #look(): void {
    const pieces = this.#segments.pieces - this.#before.pieces
    const unanswered = this.sent - this.#before.sent - (this.heard - this.#before.heard)
    this.#before.pieces = this.#segments.pieces
    this.#looking = false
    if (pieces < ENOUGH || unanswered <= pieces / 2) return
    this.#segments.usable = false
    this.#clock.timer(REST_MS, () => {
      this.#segments.usable = !this.#segments.refused
    })
  }
}
