/** Serving halves in threads of their own. The control thread loads nothing of what they run. */
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { portChannel } from './channel.js'
import type { FromServing, PluginEntry, ServingOptions, ToServing } from './protocol.js'
import type { Spawn } from './thread.js'
import type { TransportChoice } from './transport-choice.js'

/**
 * Memory of a serving thread. What lives there is the cache, the index and what waits, which is a small part of what passes through; V8 left
 * alone takes room for garbage as if it were not: a flood of 200,000 broken packets then left 34 MiB more behind than before, with these
 * bounds 6, at the same CPU time. 24 MiB are two semi-spaces of 8 and their large objects.
 */
const YOUNG_MIB = 24
/** Percent of live data that may come on top before old space is collected. V8's own floor of some MiB stays. */
const GROWTH = 30

/** Each serving half in a thread of its own. */
export function workerSpawn(port: string, plugins: readonly PluginEntry[], transport: TransportChoice = 'auto'): Spawn {
  setFlagsFromString(`--heap-growing-percent=${GROWTH}`)
  return (index, count, common) => {
    const options: ServingOptions = { port, plugins, thread: { index, count }, transport, ...common }
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
