/** The server behind one address: outlives generations, which only exchange what it answers with. */
import type { Socket } from 'node:net'
import type { Clock, Logger, MetricsScope, Proto, TlsConfig, Transport } from '../../plugins/contract.js'
import type { Router } from '../router.js'
import { HttpsServer } from './https.js'
import type { Origin, PacketHandler, Sink } from './ports.js'
import { type StreamLimits, StreamServer } from './stream.js'
import { type TicketSource, TlsAcceptor } from './tls.js'

/** What a generation brings to an address. */
export interface Service {
  readonly generation: number
  readonly router: Router
  readonly limits: StreamLimits
  readonly tls: TlsConfig | undefined
  readonly httpsMaxConnections: number
}

/** Takes a query; `listener` says by which service. */
export type Receive = (listener: Listener, data: Buffer, length: number, origin: Origin) => void

export interface ListenerDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: MetricsScope
  readonly receive: Receive
  /** For TLS session tickets, with which clients may come back to another thread. */
  readonly secret: Uint8Array
  /** Something was written to a stream of Node's. */
  readonly touch: () => void
}

export class Listener implements Sink {
  readonly transport: Transport
  readonly host: string
  /** The `server` label: "dns://:53". */
  readonly server: string
  /** The port that is bound; the Corefile's may be 0, in tests. */
  port: number
  service: Service
  readonly #deps: ListenerDeps
  readonly #streams: StreamServer
  readonly #https: HttpsServer | undefined
  #tls: TlsAcceptor | undefined

  constructor(transport: Transport, host: string, port: number, server: string, service: Service, deps: ListenerDeps) {
    this.transport = transport
    this.host = host
    this.port = port
    this.server = server
    this.service = service
    this.#deps = deps
    const proto: Proto = transport === 'tls' ? 'tls' : 'tcp'
    const handler: PacketHandler = (data, length, origin) => deps.receive(this, data, length, origin)
    this.#streams = new StreamServer(proto, service.limits, deps.clock, handler, deps.touch)
    if (transport === 'https') this.#https = new HttpsServer(this, deps)
    this.apply(service)
  }

  /** Changes over to another generation's service. Cannot fail: TLS material was tried out when it was set up. */
  apply(service: Service): void {
    this.service = service
    this.#streams.limits = service.limits
    this.#https?.apply(service)
    if (this.transport !== 'tls') return
    if (service.tls === undefined) this.#tls = undefined
    else if (this.#tls === undefined)
      this.#tls = new TlsAcceptor(service.tls, service.limits, this.tickets, this.#deps.log, (socket) => this.#streams.accept(socket))
    else this.#tls.apply(service.tls)
  }

  get tickets(): TicketSource {
    return { server: this.server, secret: this.#deps.secret }
  }

  packet(data: Buffer, length: number, origin: Origin): void {
    this.#deps.receive(this, data, length, origin)
  }

  accept(socket: Socket): void {
    if (this.#https !== undefined) this.#https.accept(socket)
    else if (this.#tls !== undefined) this.#tls.accept(socket)
    else this.#streams.accept(socket)
  }

  /** Takes no new queries; what is in flight is still answered. */
  stop(): void {
    this.#streams.stop()
    this.#https?.stop()
  }

  close(): void {
    this.#streams.close()
    this.#https?.close()
  }
}
