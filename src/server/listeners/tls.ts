/** DNS over TLS (RFC 7858): the handshake around a stream listener. */
import { createHmac } from 'node:crypto'
import { appendFile } from 'node:fs'
import type { Socket } from 'node:net'
import type { Server, TlsOptions } from 'node:tls'
import type { Logger, TlsConfig } from '../../plugins/contract.js'
import type { StreamLimits } from './stream.js'

/** What the keys of session tickets are made from. */
export interface TicketSource {
  /** The `server` label of the listener. */
  readonly server: string
  /** Known to all serving threads of this process. */
  readonly secret: Uint8Array
}

/**
 * A session that one serving thread began, any of them takes up again; but no other listener does, nor the same one after a change of its
 * certificates or of what it asks of clients: a resumed session brings no certificate that could be looked at.
 */
function ticketKeys({ cert, key, ca, clientAuth }: TlsConfig, server: string, secret: Uint8Array): Buffer {
  const config = JSON.stringify([server, cert, key, ca, clientAuth])
  return createHmac('sha512', secret).update(config).digest().subarray(0, 48)
}

/** Node's options for a block's `tls`. CoreDNS asks for TLS 1.2 at least. */
export function tlsOptions(config: TlsConfig, { server, secret }: TicketSource): TlsOptions {
  const { clientAuth } = config
  return {
    ...(config.cert === undefined ? {} : { cert: config.cert }),
    ...(config.key === undefined ? {} : { key: config.key }),
    ...(config.ca === undefined ? {} : { ca: config.ca }),
    minVersion: 'TLSv1.2',
    ticketKeys: ticketKeys(config, server, secret),
    requestCert: clientAuth !== 'nocert',
    // "verify_if_given" and "require" are looked at after the handshake: Node has only the two ends of the scale.
    rejectUnauthorized: clientAuth === 'require_and_verify',
  }
}

/** Another configuration for the connections to come. */
export function changeTls(server: Pick<Server, 'setSecureContext'>, config: TlsConfig, tickets: TicketSource): void {
  const { requestCert, rejectUnauthorized, ...context } = tlsOptions(config, tickets)
  server.setSecureContext(context)
  // These two it leaves as they were.
  Object.assign(server, { requestCert, rejectUnauthorized })
}

/** Whether a context made for one does for the other. */
export const sameKeys = (one: TlsConfig, other: TlsConfig): boolean =>
  one.cert === other.cert && one.key === other.key && one.ca === other.ca && one.clientAuth === other.clientAuth

/** Whether a client's certificate, or its absence, is good enough; asked once the handshake is done. */
export function acceptsClient(config: TlsConfig, presented: boolean, authorized: boolean): boolean {
  if (config.clientAuth === 'require') return presented
  if (config.clientAuth === 'verify_if_given') return !presented || authorized
  return true
}

/** Session secrets for a packet dump, if the block asks for them. */
export function writeKeylog({ keylog }: TlsConfig, line: Buffer, log: Logger): void {
  if (keylog === undefined) return
  appendFile(keylog, line, (error) => {
    if (error !== null) log.warning(`TLS Key Log ${keylog}: ${error.message}`)
  })
}

/** Connections whose handshake is under way; when there are more, the one that has taken longest goes. */
const MAX_SHAKING = 1024

export class TlsAcceptor {
  readonly #server: Server
  /** By peer, the oldest first. */
  readonly #shaking = new Map<string, Socket>()
  readonly #tickets: TicketSource
  #config: TlsConfig

  constructor(config: TlsConfig, limits: StreamLimits, tickets: TicketSource, log: Logger, accept: (socket: Socket) => void) {
    this.#config = config
    this.#tickets = tickets
    this.#server = process
      .getBuiltinModule('node:tls')
      .createServer({ ...tlsOptions(config, tickets), handshakeTimeout: Math.max(1000, limits.read), allowHalfOpen: true }, (socket) => {
        this.#shaking.delete(peerOf(socket))
        const presented = Object.keys(socket.getPeerCertificate()).length > 0
        if (acceptsClient(this.#config, presented, socket.authorized)) accept(socket)
        else socket.destroy()
      })
    this.#server.on('keylog', (line) => writeKeylog(this.#config, line, log))
    this.#server.on('tlsClientError', (error, socket) => {
      log.debug(`TLS handshake failed: ${error.message}`)
      // Node leaves that to us, also where the time for the handshake was up.
      socket.destroy()
    })
  }

  /** New certificates for new connections; the ones that stand go on. */
  apply(config: TlsConfig): void {
    const before = this.#config
    this.#config = config
    // Reading keys takes milliseconds, which a reload that changes none of them need not cost the queries that wait meanwhile.
    if (!sameKeys(before, config)) changeTls(this.#server, config, this.#tickets)
  }

  accept(socket: Socket): void {
    const peer = peerOf(socket)
    if (this.#shaking.size >= MAX_SHAKING) this.#evict()
    this.#shaking.set(peer, socket)
    socket.once('close', () => {
      if (this.#shaking.get(peer) === socket) this.#shaking.delete(peer)
    })
    this.#server.emit('connection', socket)
  }

  #evict(): void {
    for (const [peer, socket] of this.#shaking) {
      this.#shaking.delete(peer)
      socket.destroy()
      return
    }
  }
}

/** The TLS socket and the one below it have it in common. */
const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`
