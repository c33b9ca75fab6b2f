/** `notify`: tells secondaries that a cluster zone changed, through `transfer`. A cluster changes all the time, so at most once in so long. */
import type { Name } from '../../src/dns/index.js'
import type { SetupContext, Timer } from '../../src/plugins/contract.js'
import type { ClusterReplica } from './cluster-index.js'
import type { Zone } from './zones.js'

export class Notifier {
  readonly #zones: readonly Zone[]
  readonly #replica: ClusterReplica
  /** Milliseconds between two looks, and so between two messages about one zone. */
  readonly #interval: number
  readonly #ctx: SetupContext
  /** Serials that the secondaries were told of, by key of the zone. */
  readonly #told = new Map<string, number>()
  #timer: Timer | undefined

  constructor(zones: readonly Zone[], replica: ClusterReplica, interval: number, ctx: SetupContext) {
    this.#zones = zones.filter(({ reverse }) => !reverse)
    this.#replica = replica
    this.#interval = interval
    this.#ctx = ctx
  }

  start(): void {
    this.#timer = this.#ctx.clock.timer(this.#interval, () => {
      this.#look()
      this.start()
    })
  }

  stop(): void {
    this.#timer?.cancel()
  }

  #look(): void {
    const { synced, staleSince, serial, multiclusterSerial } = this.#replica.index.state
    if (!synced || staleSince !== undefined) return
    for (const { name, multicluster } of this.#zones) {
      const now = multicluster ? multiclusterSerial : serial
      if (now === this.#told.get(name.key)) continue
      this.#told.set(name.key, now)
      this.#tell(name)
    }
  }

  #tell(zone: Name): void {
    const sent = this.#ctx.find('transfer')?.notify?.(zone)
    sent?.catch((error: Error) => this.#ctx.log.warning(error.message))
  }
}
