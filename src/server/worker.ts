/** Entry of a serving thread. */
import { parentPort, workerData } from 'node:worker_threads'
import { portChannel } from './channel.js'
import type { FromServing, ServingOptions, ToServing } from './protocol.js'
import { serveOn } from './spawn.js'
import { chooseTransport } from './transport.js'

const port = parentPort
if (port === null) throw new Error('worker.js runs as a worker thread only')
// A promise that nobody waited for is a plugin's fault; it must not cost the others their thread.
process.on('unhandledRejection', (reason) => {
  const text = reason instanceof Error ? reason.stack : String(reason)
  port.postMessage({ kind: 'log', text: `[ERROR] unhandled: ${text}\n` } satisfies FromServing)
})
const options = workerData as ServingOptions
const { transport, missing } = await chooseTransport(options.transport ?? 'auto')
if (missing !== undefined && options.thread.index === 0) {
  const text = `[INFO] UDP by node:dgram, which costs several times the CPU per query: ${missing}\n`
  port.postMessage({ kind: 'log', text } satisfies FromServing)
}
serveOn(
  portChannel<FromServing, ToServing>(port, () => port.close()),
  options,
  { clock: transport.clock, connectDatagram: transport.connectDatagram, transport },
)
transport.run()
