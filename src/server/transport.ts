/** How a serving thread moves its datagrams: in batches through the C library where that can be had, else by node:dgram. */
import { realClock } from '../plugins/clock.js'
import type { Clock, ConnectDatagram, Logger, MetricsScope, SetupContext } from '../plugins/contract.js'
import { dgramPorts } from './listeners/dgram.js'
import { connectDgram } from './listeners/dgram-client.js'
import type { OpenDatagramPort } from './listeners/ports.js'
import type { Sharing } from './listeners/sharing.js'
import type { TransportChoice } from './transport-choice.js'

export interface Transport {
  readonly name: 'batch' | 'dgram'
  readonly clock: Clock
  readonly openDatagram: (sharing: Sharing) => OpenDatagramPort
  readonly connectDatagram: ConnectDatagram
  readonly endOfRound: SetupContext['endOfRound']
  /** Files, modules and connections are worked on until the function returned is called: Node's loop matters more than usual. */
  attend(): () => void
  /** Streams of Node's were written to, or something else was begun that Node's loop brings to an end. */
  touch(): void
  /** Begins to count what is lost. */
  observe(metrics: MetricsScope, log: Logger): void
  /** Once everything is set up. */
  run(): void
}

export const dgramTransport: Transport = {
  name: 'dgram',
  clock: realClock,
  openDatagram: dgramPorts,
  connectDatagram: connectDgram,
  endOfRound: (what) => what.flush(),
  attend: () => () => undefined,
  touch: () => undefined,
  observe: () => undefined,
  run: () => undefined,
}

/** `missing`: why it is not batches, in words for the log. Rejects where batches were asked for and cannot be had. */
export async function chooseTransport(choice: TransportChoice): Promise<{ transport: Transport; missing?: string }> {
  if (choice === 'dgram') return { transport: dgramTransport }
  try {
    return { transport: await (await import('./native/transport.js')).makeBatchTransport() }
  } catch (error) {
    const missing = (error as Error).message
    if (choice === 'batch') throw new Error(`transport batch: ${missing}`, { cause: error })
    return { transport: dgramTransport, missing }
  }
}
