/** A serving half with all it needs, on its end of a channel; and, for tests, in the thread of its control half. */
import { realClock } from '../plugins/clock.js'
import { loadModule } from '../plugins/load.js'
import { directPair } from './channel.js'
import { connectDgram } from './listeners/dgram-client.js'
import { BufferedSink, Loggers } from './log.js'
import { SlotMetrics } from './metrics.js'
import type { Channel, FromServing, PluginEntry, ServingOptions, ToServing } from './protocol.js'
import { type ServingDeps, startServing } from './serving.js'
import type { ServingHandle, Spawn } from './thread.js'

/** Runs the serving half on this end of a channel, with everything it needs. */
export function serveOn(channel: Channel<FromServing, ToServing>, options: ServingOptions, over: Partial<ServingDeps> = {}): void {
  const loggers = new Loggers(new BufferedSink((text) => channel.post({ kind: 'log', text })))
  const metrics = new SlotMetrics((notice) => channel.post({ kind: 'metrics', ...notice }))
  // Lines and counts that were kept back go out ahead of the last words.
  const outgoing: Channel<FromServing, ToServing> = {
    post: (message) => {
      if (message.kind === 'stopped' || message.kind === 'exit' || message.kind === 'failed' || message.kind === 'prepared') {
        metrics.flush()
        loggers.flush()
      }
      channel.post(message)
    },
    onMessage: (listener) => channel.onMessage(listener),
    close: () => channel.close(),
  }
  startServing(outgoing, options, {
    loadModule,
    metrics,
    logger: (plugin) => loggers.for(plugin),
    clock: realClock,
    connectDatagram: connectDgram,
    setDebug: (on) => loggers.setDebug(on),
    ...over,
  })
}

/** The serving half in this thread. */
export function directSpawn(port: string, plugins: readonly PluginEntry[], over: Partial<ServingDeps> = {}): Spawn {
  return (index, count, common): ServingHandle => {
    const [control, serving] = directPair<ToServing, FromServing>()
    serveOn(serving, { port, plugins, thread: { index, count }, ...common }, over)
    return { channel: control, onExit: () => undefined, terminate: async () => control.close() }
  }
}
