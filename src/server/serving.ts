/** The serving half: sockets, chains, replicas. Runs in a thread of its own, or beside control over a direct channel in tests. */
import type { Clock, Logger, MetricsScope, PluginModule } from '../plugins/contract.js'
import type { Channel, FromServing, PluginEntry, ServingOptions, ToServing } from './protocol.js'

/** What the serving half gets from its surroundings. */
export interface ServingDeps {
  /** The module of a directive; rejects with a message for people ("known, not built yet" included). Asked once per directive and generation. */
  readonly loadModule: (entry: PluginEntry) => Promise<PluginModule>
  readonly metrics: MetricsScope
  /** Prefixes lines with `plugin/NAME: `; with '' the server's own lines, without a prefix. */
  readonly logger: (plugin: string) => Logger
  readonly clock: Clock
  /** Some block of the generation that was just committed has `debug` (or none has). */
  readonly setDebug: (on: boolean) => void
}

/** Takes messages from `channel` until `stop`; says `online` first. */
export function startServing(channel: Channel<FromServing, ToServing>, _options: ServingOptions, _deps: ServingDeps): void {
  channel.post({ kind: 'online' })
}
