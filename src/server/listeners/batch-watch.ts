/** What the batched transport loses, counted for the metrics, off the path: looked at once a second. */
import type { Counter, Logger, MetricsScope } from '../../plugins/contract.js'
import { joinHostPort } from './addresses.js'
import type { Batches, BatchPort, BatchTally } from './batch.js'
import type { Clients } from './batch-client.js'

const LOOK_MS = 1000
/** Octets of a receive buffer that hold a burst of some thousand queries. */
const ENOUGH = 512 << 10

type Reason = 'too_long' | 'send_buffer' | 'send_failed'

export class BatchWatch {
  readonly #batches: Batches
  readonly #clients: Clients
  readonly #log: Logger
  readonly #drops: (address: string) => Counter
  readonly #lost: Readonly<Record<Reason, Counter>>
  /** What was counted before, so that only what is new is added. */
  readonly #before: BatchTally = { truncated: 0, failed: 0, dropped: 0 }
  #warned = false

  constructor(batches: Batches, clients: Clients, metrics: MetricsScope, log: Logger) {
    this.#batches = batches
    this.#clients = clients
    this.#log = log
    const drops = metrics.counter(
      'cairndns_udp_kernel_drops_total',
      'Queries by UDP that the kernel dropped because the receive buffer was full.',
      ['address'],
    )
    const lost = metrics.counter('cairndns_udp_lost_total', 'Datagrams that were too long to be read, or that could not be sent.', [
      'reason',
    ])
    this.#drops = (address) => drops.with(address)
    this.#lost = { too_long: lost.with('too_long'), send_buffer: lost.with('send_buffer'), send_failed: lost.with('send_failed') }
    this.#arm()
  }

  #arm(): void {
    this.#batches.loop.clock.timer(LOOK_MS, () => {
      this.#look()
      this.#arm()
    })
  }

  #look(): void {
    const { truncated, failed, dropped } = this.#batches.tally
    const upstream = this.#clients.tally
    this.#add('too_long', 'truncated', truncated)
    this.#add('send_failed', 'failed', failed + upstream.failed)
    this.#add('send_buffer', 'dropped', dropped + upstream.dropped)
    for (const port of this.#batches.ports) this.#lookAt(port)
  }

  #add(reason: Reason, name: keyof BatchTally, count: number): void {
    if (count === this.#before[name]) return
    this.#lost[reason].inc(count - this.#before[name])
    this.#before[name] = count
  }

  #lookAt(port: BatchPort): void {
    const drops = port.newDrops()
    if (drops === 0) return
    const address = joinHostPort(port.address, port.port)
    this.#drops(address).inc(drops)
    if (this.#warned || port.receiveBuffer >= ENOUGH) return
    this.#warned = true
    const size = Math.floor(port.receiveBuffer / 1024)
    this.#log.warning(
      `udp ${address}: the kernel dropped ${drops} queries. Its receive buffer of ${size} KiB, which net.core.rmem_max bounds, is small: sysctl -w net.core.rmem_max=4194304`,
    )
  }
}
