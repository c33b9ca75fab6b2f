/** Entry of a serving thread. */
import { parentPort, workerData } from 'node:worker_threads'
import { portChannel } from './channel.js'
import type { FromServing, ServingOptions, ToServing } from './protocol.js'
import { serveOn } from './spawn.js'

const port = parentPort
if (port === null) throw new Error('worker.js runs as a worker thread only')
// A promise that nobody waited for is a plugin's fault; it must not cost the others their thread.
process.on('unhandledRejection', (reason) => {
  const text = reason instanceof Error ? reason.stack : String(reason)
  port.postMessage({ kind: 'log', text: `[ERROR] unhandled: ${text}\n` } satisfies FromServing)
})
serveOn(
  portChannel<FromServing, ToServing>(port, () => port.close()),
  workerData as ServingOptions,
)
