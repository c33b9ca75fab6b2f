/** Questions for unguessable names to one nameserver, and watching whether they come back. */
import { randomBytes } from 'node:crypto'
import { Name } from '../../dns/index.js'
import type { Clock, Timer } from '../contract.js'
import type { Names, Sighting } from './names.js'

/** More than two, as in CoreDNS: a single echo is no loop. */
const LOOP = 3
/** How long after its answer a name is still watched for. */
const WINDOW = 2000
/** How long a nameserver that does not answer is asked again. */
const PATIENCE = 30_000
const FIRST_RETRY = 100
const LONGEST_RETRY = 1000

/** `sighting`: the last one of a loop; undefined: there is none, or (`answered` false) nothing could be found out. */
export type Outcome = (sighting: Sighting | undefined, answered: boolean) => void

export class Probe {
  readonly #clock: Clock
  readonly #watched: Names
  readonly #zone: Name
  readonly #put: (name: Name) => Promise<void>
  readonly #names = new Set<string>()
  #timer: Timer | undefined
  #outcome: Outcome | undefined
  #sightings = 0
  #retry = FIRST_RETRY
  #giveUpAt = 0

  constructor(clock: Clock, watched: Names, zone: Name, put: (name: Name) => Promise<void>) {
    this.#clock = clock
    this.#watched = watched
    this.#zone = zone
    this.#put = put
  }

  /** Begins in `delay` milliseconds; `outcome` is called once. */
  run(delay: number, outcome: Outcome): void {
    this.#outcome = outcome
    this.#sightings = 0
    this.#retry = FIRST_RETRY
    this.#giveUpAt = this.#clock.monotonic() + delay + PATIENCE
    this.#after(delay, () => this.#ask())
  }

  stop(): void {
    this.#timer?.cancel()
    this.#outcome = undefined
    for (const key of this.#names) this.#watched.delete(key)
    this.#names.clear()
  }

  #ask(): void {
    const name = probeName(this.#zone)
    this.#names.add(name.key)
    this.#watched.set(name.key, (sighting) => this.#seen(sighting))
    this.#put(name).then(
      () => this.#answered(name),
      () => this.#failed(name),
    )
  }

  #seen(sighting: Sighting): void {
    const { key } = sighting.name
    this.#watched.delete(key)
    this.#names.delete(key)
    if (this.#outcome === undefined) return
    if (++this.#sightings >= LOOP) this.#end(sighting, true)
    else this.#ask()
  }

  /** Not come back yet; it may still. */
  #answered(name: Name): void {
    if (this.#names.has(name.key)) this.#after(WINDOW, () => this.#end(undefined, true))
  }

  #failed(name: Name): void {
    // Seen, and its own answer lost: the next one is under way already.
    if (!this.#names.delete(name.key)) return
    this.#watched.delete(name.key)
    if (this.#clock.monotonic() >= this.#giveUpAt) {
      this.#end(undefined, false)
      return
    }
    this.#after(this.#retry, () => this.#ask())
    this.#retry = Math.min(LONGEST_RETRY, this.#retry * 2)
  }

  #end(sighting: Sighting | undefined, answered: boolean): void {
    const outcome = this.#outcome
    this.stop()
    outcome?.(sighting, answered)
  }

  #after(ms: number, fn: () => void): void {
    this.#timer?.cancel()
    this.#timer = this.#clock.timer(ms, fn)
  }
}

/** Two numbers of 64 random bits each in front of the zone. */
function probeName(zone: Name): Name {
  const number = (): string => randomBytes(8).readBigUInt64BE().toString()
  return Name.parse(`${number()}.${number()}.`).append(zone)
}
