/** Keeps the snapshot of one source: reads it at the start, writes it when something changed, says how old it is while it serves. */
import { type Clock, formatDuration, type Gauge, type Logger, type MetricsScope, type Timer } from '../../../src/plugins/contract.js'
import { readSnapshot, SnapshotError, writeSnapshot } from './snapshot.js'
import type { ClusterStore } from './store.js'

/** Milliseconds between two writes at least. */
const INTERVAL = 30_000

export interface SnapshotOption {
  readonly path: string
  /** Milliseconds; an older one is not served. */
  readonly maxAge: number
}

export class SnapshotKeeper {
  readonly #option: SnapshotOption
  readonly #identity: string
  readonly #store: ClusterStore
  readonly #log: Logger
  readonly #clock: Clock
  readonly #served: Gauge
  #timer: Timer | undefined
  #saved = -1
  #saving: Promise<void> = Promise.resolve()
  #failed = ''

  constructor(option: SnapshotOption, identity: string, store: ClusterStore, log: Logger, clock: Clock, metrics: MetricsScope) {
    this.#option = option
    this.#identity = identity
    this.#store = store
    this.#log = log
    this.#clock = clock
    this.#served = metrics
      .gauge(
        'cairndns_kubernetes_snapshot_served_timestamp_seconds',
        'When the snapshot that is being served was saved; 0: live data is.',
        [],
      )
      .with()
  }

  /** Fills the store from the file, if there is one that will do. Never rejects: without it the start is one without snapshot. */
  async restore(): Promise<void> {
    const { path, maxAge } = this.#option
    this.#served.set(0)
    try {
      const snapshot = await readSnapshot(path, this.#identity, this.#clock.now(), maxAge)
      if (snapshot === undefined) return
      const seconds = Math.floor(snapshot.savedAt / 1000)
      this.#store.restore(snapshot.records, { ...snapshot.state, synced: true, staleSince: seconds })
      this.#served.set(seconds)
      this.#log.warning(
        `Serving ${snapshot.records.length} objects of snapshot ${path}, ${this.#age()} old, until the API server has listed all`,
      )
    } catch (error) {
      if (!(error instanceof SnapshotError)) throw error
      this.#log.error(`Snapshot ${path} is not used: ${error.message}`)
    }
  }

  /** The first list is in. */
  live(): void {
    this.#served.set(0)
    this.#tick()
  }

  /** For /ready. */
  remark(): string | undefined {
    return this.#store.staleSince === undefined ? undefined : `kubernetes: serving a snapshot, ${this.#age()} old`
  }

  /** Writes what is not in the file yet. */
  async stop(): Promise<void> {
    this.#timer?.cancel()
    await this.#saving
    await this.#save()
  }

  #age(): string {
    const since = this.#store.staleSince
    return formatDuration(since === undefined ? 0 : Math.max(0, Math.round(this.#clock.now() / 1000 - since)) * 1000)
  }

  #tick(): void {
    this.#timer?.cancel()
    this.#saving = this.#save()
    this.#timer = this.#clock.timer(INTERVAL, () => this.#tick())
  }

  async #save(): Promise<void> {
    const store = this.#store
    // Half a list, or what was read from the file, is not worth more than the file.
    if (!store.synced || store.staleSince !== undefined || store.changes === this.#saved) return
    const changes = store.changes
    try {
      await writeSnapshot(this.#option.path, this.#identity, this.#clock.now(), store.state, store.lines())
      this.#saved = changes
      this.#failed = ''
    } catch (error) {
      const why = `Snapshot ${this.#option.path} cannot be written: ${(error as Error).message.replace(/, \w+ '.*$/, '')}`
      if (why !== this.#failed) this.#log.error(why)
      this.#failed = why
    }
  }
}
