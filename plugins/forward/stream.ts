/**
 * TCP and TLS connections to one upstream. Queries are pipelined on one connection and answered in any order (RFC 7766 §6.2.1.1, RFC 7858).
 * A kept connection that turns out closed is replaced without the query noticing.
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import type { ConnectionOptions, SecureContext } from 'node:tls'
import { joinHostPort, type Timer } from '../../src/plugins/contract.js'
import type { Ask } from './ask.js'
import { PREFIX } from './frame.js'
import { compare, inspect } from './reply.js'
import { faultText, type PoolOptions } from './udp.js'

/** Queries at once on one connection before a second one is opened. */
const MAX_PIPELINED = 100
/** Shared connections that may break under a query before it gets one of its own. */
const MAX_REDIALS = 1

export interface StreamOptions extends PoolOptions {
  /** Milliseconds to connect, handshake included. */
  readonly dialTimeout: number
  readonly tls: { readonly context: SecureContext; readonly serverName: string } | undefined
}

export class StreamPool {
  readonly #options: StreamOptions
  #connections: Connection[] = []
  /** TLS session to resume (RFC 8446 §2.2). */
  #session: Buffer | undefined

  constructor(options: StreamOptions) {
    this.#options = options
  }

  get empty(): boolean {
    return this.#connections.length === 0
  }

  ask(ask: Ask): void {
    const kept = ask.redials > MAX_REDIALS ? undefined : this.#pick()
    this.#options.used(kept !== undefined)
    const connection = kept ?? this.#open(ask.redials > MAX_REDIALS)
    connection.send(ask)
  }

  /** Closes what has been idle for too long, and what is idle beyond `maxIdle`. */
  sweep(): void {
    const now = this.#options.clock.monotonic()
    let idle = 0
    for (const connection of [...this.#connections]) {
      if (connection.pending.size > 0) continue
      idle++
      if (this.#worn(connection, now) || (this.#options.maxIdle > 0 && idle > this.#options.maxIdle)) this.#drop(connection)
    }
  }

  close(error: Error): void {
    const connections = this.#connections
    this.#connections = []
    for (const connection of connections) connection.fail(error, false)
  }

  /** The kept connection with room that was used last: the others may grow idle and go. */
  #pick(): Connection | undefined {
    const now = this.#options.clock.monotonic()
    let best: Connection | undefined
    for (const connection of [...this.#connections]) {
      if (connection.exclusive || connection.pending.size >= MAX_PIPELINED) continue
      if (this.#worn(connection, now)) {
        if (connection.pending.size === 0) this.#drop(connection)
      } else if (best === undefined || connection.lastUsed > best.lastUsed) best = connection
    }
    return best
  }

  #worn(connection: Connection, now: number): boolean {
    const { expire, maxAge } = this.#options
    const idle = connection.pending.size === 0 && now - connection.lastUsed >= expire
    return idle || (maxAge > 0 && now - connection.opened >= maxAge)
  }

  #open(exclusive: boolean): Connection {
    const connection = new Connection(this.#options, exclusive, this.#session, {
      closed: (gone, lost) => {
        this.#connections = this.#connections.filter((other) => other !== gone)
        for (const ask of lost) {
          ask.redials++
          this.ask(ask)
        }
      },
      session: (session) => {
        this.#session = session
      },
      idle: () => this.sweep(),
    })
    this.#connections.push(connection)
    return connection
  }

  #drop(connection: Connection): void {
    this.#connections = this.#connections.filter((other) => other !== connection)
    connection.fail(new Error('closed'), false)
  }
}

interface Hooks {
  /** `lost`: queries that deserve another connection. */
  closed(connection: Connection, lost: readonly Ask[]): void
  session(session: Buffer): void
  idle(): void
}

class Connection {
  readonly pending = new Map<number, Ask>()
  readonly opened: number
  lastUsed: number
  /** Carries one query only, until that is answered. */
  exclusive: boolean
  readonly #options: StreamOptions
  readonly #hooks: Hooks
  readonly #socket: Socket
  readonly #dialing: Timer
  #state: 'dialing' | 'open' | 'closed' = 'dialing'
  /** Replies so far: a connection without any that breaks is a failure of the upstream. */
  #replies = 0
  #lastHeard = 0
  #rest: Buffer | undefined

  constructor(options: StreamOptions, exclusive: boolean, session: Buffer | undefined, hooks: Hooks) {
    this.#options = options
    this.#hooks = hooks
    this.exclusive = exclusive
    this.opened = this.lastUsed = options.clock.monotonic()
    this.#socket = dial(options, session)
    this.#socket.unref()
    this.#socket.setNoDelay(true)
    this.#socket.on(options.tls === undefined ? 'connect' : 'secureConnect', () => this.#connected())
    this.#socket.on('session', hooks.session)
    this.#socket.on('data', (data) => this.#receive(data))
    this.#socket.on('error', (error) => this.fail(this.#fault(error), this.#replies > 0))
    this.#socket.on('close', () => this.fail(new Error('EOF'), this.#replies > 0))
    this.#dialing = options.clock.timer(options.dialTimeout, () => {
      this.fail(new Error(`dial tcp ${options.target.label}: i/o timeout`), false)
    })
  }

  send(ask: Ask): void {
    ask.via = this
    ask.id = this.#options.ids.unused(this.pending)
    this.pending.set(ask.id, ask)
    this.lastUsed = this.#options.clock.monotonic()
    if (this.#state === 'open') this.#write(ask)
  }

  /** A query was given up. A connection that has been silent since it was sent is dead (a NAT forgot it, say): nothing else may wait on it. */
  forget(ask: Ask): void {
    this.pending.delete(ask.id)
    if (this.#state === 'open' && ask.sentAt > this.#lastHeard) this.fail(new Error('EOF'), true)
  }

  get local(): string {
    const { localAddress, localPort } = this.#socket
    return localAddress === undefined || localPort === undefined ? '' : joinHostPort(localAddress, localPort)
  }

  /** Ends the connection. `redial`: what waits here is asked again elsewhere instead of failing. */
  fail(error: Error, redial: boolean): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    this.#dialing.cancel()
    this.#socket.destroy()
    const asks = [...this.pending.values()]
    this.pending.clear()
    this.#hooks.closed(this, redial ? asks : [])
    if (!redial) for (const ask of asks) ask.settle(undefined, error)
  }

  #connected(): void {
    if (this.#state !== 'dialing') return
    this.#state = 'open'
    this.#dialing.cancel()
    for (const ask of this.pending.values()) this.#write(ask)
  }

  #write(ask: Ask): void {
    ask.sentAt = this.#options.clock.monotonic()
    this.#socket.write(ask.frame!)
  }

  #receive(data: Buffer): void {
    this.#lastHeard = this.#options.clock.monotonic()
    let rest = this.#rest === undefined ? data : Buffer.concat([this.#rest, data])
    while (rest.length >= PREFIX && rest.length >= PREFIX + rest.readUInt16BE(0) && this.#state === 'open') {
      const end = PREFIX + rest.readUInt16BE(0)
      this.#reply(rest.subarray(PREFIX, end))
      rest = rest.subarray(end)
    }
    this.#rest = rest.length > 0 ? rest : undefined
  }

  #reply(reply: Buffer): void {
    const ask = reply.length < 2 ? undefined : this.pending.get(reply.readUInt16BE(0))
    if (ask === undefined) {
      this.#options.ignored()
      return
    }
    const found = compare(ask.frame!, reply, reply.length) === 'other' ? undefined : inspect(reply, reply.length)
    if (found === undefined) {
      // Nobody can slip a message into a connection: the upstream itself answers wrongly.
      this.#options.ignored()
      this.pending.delete(ask.id)
      ask.settle(undefined, new Error('reply is malformed or does not match the question'))
      return
    }
    this.#replies++
    this.exclusive = false
    this.lastUsed = this.#lastHeard
    this.pending.delete(ask.id)
    ask.settle(found, undefined)
    if (this.pending.size === 0 && this.#options.maxIdle > 0) this.#hooks.idle()
  }

  #fault(error: NodeJS.ErrnoException): Error {
    const { label } = this.#options.target
    if (this.#state === 'open') return new Error(faultText('tcp', 'read', this.local, label, error), { cause: error })
    const tls =
      error.code === undefined || !/^E[A-Z]+$/.test(error.code) || error.code.startsWith('ERR_') || error.code.startsWith('EPROTO')
    return new Error(tls ? `tls: ${error.message}` : faultText('tcp', 'dial', '', label, error), { cause: error })
  }
}

function dial(options: StreamOptions, session: Buffer | undefined): Socket {
  const { target, tls, sourceAddress } = options
  const where = { host: target.host, port: target.port, ...(sourceAddress === undefined ? {} : { localAddress: sourceAddress }) }
  if (tls === undefined) return connectTcp(where)
  const settings: ConnectionOptions = { ...where, secureContext: tls.context, ALPNProtocols: ['dot'] }
  // Without a name the certificate is checked against the address; SNI never carries an address (RFC 6066 §3).
  if (tls.serverName !== '' && isIP(tls.serverName) === 0) settings.servername = tls.serverName
  if (session !== undefined) settings.session = session
  return process.getBuiltinModule('node:tls').connect(settings)
}
