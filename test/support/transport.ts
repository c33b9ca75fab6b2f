/** The transport that tests of the serving half run over: CAIRNDNS_TEST_TRANSPORT, which the projects of vitest.config.ts set. */
import { dgramTransport, type Transport } from '../../src/server/transport.js'

async function chosen(): Promise<Transport> {
  if (process.env.CAIRNDNS_TEST_TRANSPORT !== 'batch') return dgramTransport
  const { makeBatchTransport } = await import('../../src/server/native/transport.js')
  const transport = await makeBatchTransport()
  // Its loop shares the thread with the tests, which are made of Node's own timers and sockets.
  transport.attend()
  transport.run()
  return transport
}

export const transport: Transport = await chosen()
