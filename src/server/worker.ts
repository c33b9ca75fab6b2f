/** Entry of a serving thread. */
import { parentPort, workerData } from 'node:worker_threads'
import { portChannel } from './channel.js'
import type { FromServing, ServingOptions, ToServing } from './protocol.js'
import { serveOn } from './spawn.js'

const port = parentPort
if (port === null) throw new Error('worker.js runs as a worker thread only')
serveOn(portChannel<FromServing, ToServing>(port, () => port.close()), workerData as ServingOptions)
