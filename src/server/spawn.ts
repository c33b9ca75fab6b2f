/** The two ways to run a serving half: in a Worker, or in this thread over a direct channel (tests). */
import { Worker } from 'node:worker_threads'
import { loadModule } from '../plugins/load.js'
import { directPair, portChannel } from './channel.js'
import { realClock } from './clock.js'
import { BufferedSink, Loggers } from './log.js'
import { SlotMetrics } from './metrics.js'
import type { Channel, FromServing, PluginEntry, ServingOptions, ToServing } from './protocol.js'
import { type ServingDeps, startServing } from './serving.js'
import type { ServingHandle, Spawn } from './threads.js'

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
    setDebug: (on) => loggers.setDebug(on),
    ...over,
  })
}

/** Each serving half in a thread of its own. */
export function workerSpawn(port: string, plugins: readonly PluginEntry[]): Spawn {
  return (index, count) => {
    const options: ServingOptions = { port, plugins, thread: { index, count } }
    const worker = new Worker(new URL('./worker.js', import.meta.url), { workerData: options, name: `serving-${index}` })
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
