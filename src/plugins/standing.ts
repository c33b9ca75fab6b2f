/**
 * Answers that stand: what plugins say so that the server may give an answer again by itself, from octets, without asking the chain. A
 * question that is asked often then costs the look-up and the copy, whatever the number of plugins.
 */

/** The chain must be asked. */
export const GONE = -2
/** The TTLs are to stay as they are in the answer. */
export const AS_GIVEN = -1

/** Says of its own answer how long it stands. */
export interface Standing {
  /**
   * The answer is wanted again at `now` (monotonic milliseconds). Returns the TTL of all its records in seconds, AS_GIVEN or GONE. If it is not
   * GONE, the plugin has counted the answer as it counts one that it gives itself.
   */
  again(now: number): number
  /**
   * A number that many answers have in common. As long as it is what it was when `again` last returned AS_GIVEN, the answer stands as given,
   * and `again` need not be called. The same function for all of them.
   */
  readonly epoch?: () => number
}

/** Says of an answer from behind what the plugin does each time that it comes by. The fewer different ones there are, the better. */
export interface Passing {
  /** false: the plugin would do something else by now, so the chain must be asked. Counts nothing. */
  holds?(): boolean
  /** The answer has been given again, to a client of this address family whose query came at `received` (monotonic milliseconds). */
  passed?(family: 4 | 6, received: number): void
  /** The answer's addresses are to be put in another order each time. */
  readonly shuffles?: boolean
  /** The OPT record of the answer states at most so many octets. */
  readonly lowers?: number
}

/** The plugin has done nothing to this answer, and never will as long as the query is the same. */
export const UNTOUCHED: Passing = {}

export const isStanding = (verdict: Standing | Passing): verdict is Standing => 'again' in verdict
