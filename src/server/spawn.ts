/** The two ways to run a serving half: in a Worker, or in this thread over a direct channel (tests). */
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { realClock } from '../plugins/clock.js'
import { loadModule } from '../plugins/load.js'
import { directPair, portChannel } from './channel.js'
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

/**
 * Memory of a serving thread. What lives there is the cache, the index and what waits, which is a small part of what passes through; V8 left
 * alone takes room for garbage as if it were not: a flood of 200,000 broken packets then left 34 MiB more behind than before, with these
 * bounds 6, at the same CPU time. 24 MiB are two semi-spaces of 8 and their large objects.
 */
const YOUNG_MIB = 24
/** Percent of live data that may come on top before old space is collected. V8's own floor of some MiB stays. */
const GROWTH = 30

/** Each serving half in a thread of its own. */
export function workerSpawn(port: string, plugins: readonly PluginEntry[]): Spawn {
  setFlagsFromString(`--heap-growing-percent=${GROWTH}`)
  return (index, count) => {
    const options: ServingOptions = { port, plugins, thread: { index, count } }
    const worker = new Worker(new URL('./worker.js', import.meta.url), {
      workerData: options,
      name: `serving-${index}`,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MIB },
    })
    let failure: Error | undefined
    worker.on('error', (error) => (failure = error))
    return {
      channel: portChannel<ToServing, FromServing>(worker),
      onExit: (listener) => void worker.on('exit', () => listener(failure)),
      terminate: async () => void (await worker.terminate()),
    }
  }
}

/** The serving half in this thread. */
export function directSpawn(port: string, plugins: readonly PluginEntry[], over: Partial<ServingDeps> = {}): Spawn {
  return (index, count): ServingHandle => {
    const [control, serving] = directPair<ToServing, FromServing>()
    serveOn(serving, { port, plugins, thread: { index, count } }, over)
    return { channel: control, onExit: () => undefined, terminate: async () => control.close() }
  }
}
