/** DNS over HTTPS to one upstream (RFC 8484): queries as streams of one HTTP/2 connection, which is made anew when it is gone. */
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import { isIP } from 'node:net'
import type { Ask } from './ask.js'
import { PREFIX } from './frame.js'
import { compare, inspect, type Received } from './reply.js'
import type { StreamOptions } from './stream.js'
import { faultText } from './udp.js'

/** Loaded when it is needed: it takes 4 MB. */
const http2 = (): typeof import('node:http2') => process.getBuiltinModule('node:http2')

const PATH = '/dns-query'
const TYPE = 'application/dns-message'
const MAX_BODY = 65_535
const MAX_REDIALS = 2

export interface DohOptions extends StreamOptions {
  readonly method: 'GET' | 'POST'
}

export class DohPool {
  readonly #options: DohOptions
  #session: DohSession | undefined

  constructor(options: DohOptions) {
    this.#options = options
  }

  get empty(): boolean {
    return this.#session === undefined
  }

  ask(ask: Ask): void {
    const session = this.#session
    if (session !== undefined && this.#worn(session)) this.#leave(session)
    this.#options.used(this.#session !== undefined)
    this.#session ??= new DohSession(this.#options, (gone, lost) => this.#closed(gone, lost))
    this.#session.send(ask)
  }

  #worn(session: DohSession): boolean {
    const { expire, maxAge, clock } = this.#options
    const now = clock.monotonic()
    if (!session.usable) return true
    return (session.pending.size === 0 && now - session.lastUsed >= expire) || (maxAge > 0 && now - session.opened >= maxAge)
  }

  sweep(): void {
    const session = this.#session
    if (session === undefined || session.pending.size > 0) return
    if (this.#options.clock.monotonic() - session.lastUsed >= this.#options.expire) this.#leave(session)
  }

  close(error: Error): void {
    const session = this.#session
    this.#session = undefined
    session?.fail(error, false)
  }

  #leave(session: DohSession): void {
    this.#session = undefined
    session.finish()
  }

  #closed(gone: DohSession, lost: readonly Ask[]): void {
    if (this.#session === gone) this.#session = undefined
    for (const ask of lost) {
      if (++ask.redials > MAX_REDIALS) ask.settle(undefined, new Error('EOF'))
      else this.ask(ask)
    }
  }
}

class DohSession {
  readonly pending = new Map<Ask, ClientHttp2Stream>()
  readonly opened: number
  lastUsed: number
  readonly #options: DohOptions
  readonly #session: ClientHttp2Session
  readonly #authority: string
  readonly #gone: (session: DohSession, lost: readonly Ask[]) => void
  #closed = false
  #replies = 0

  constructor(options: DohOptions, gone: (session: DohSession, lost: readonly Ask[]) => void) {
    this.#options = options
    this.#gone = gone
    this.opened = this.lastUsed = options.clock.monotonic()
    const { target, tls, sourceAddress } = options
    const name = tls !== undefined && isIP(tls.serverName) === 0 ? tls.serverName : ''
    this.#authority = target.port === 443 ? target.label.replace(/:443$/, '') : target.label
    this.#session = http2().connect(`https://${target.label}`, {
      ...(tls === undefined ? {} : { secureContext: tls.context }),
      ...(name === '' ? {} : { servername: name }),
      ...(sourceAddress === undefined ? {} : { localAddress: sourceAddress }),
    })
    this.#session.unref()
    const dialing = options.clock.timer(options.dialTimeout, () => this.fail(new Error(`dial tcp ${target.label}: i/o timeout`), false))
    this.#session.on('connect', () => dialing.cancel())
    this.#session.on('error', (error: NodeJS.ErrnoException) => {
      dialing.cancel()
      this.fail(
        new Error(faultText('tcp', this.#replies > 0 ? 'read' : 'dial', '', target.label, error), { cause: error }),
        this.#replies > 0,
      )
    })
    // After GOAWAY no new stream may begin; those under way may still end.
    this.#session.on('goaway', () => this.fail(new Error('EOF'), true))
    this.#session.on('close', () => {
      dialing.cancel()
      this.fail(new Error('EOF'), this.#replies > 0)
    })
  }

  /** Streams fail before their session says that it is gone. */
  get usable(): boolean {
    return !this.#session.closed && !this.#session.destroyed
  }

  send(ask: Ask): void {
    // RFC 8484 §4.1: id 0, so that HTTP caches may help.
    ask.id = 0
    ask.via = this
    const message = ask.frame!.subarray(PREFIX)
    const get = this.#options.method === 'GET'
    const stream = this.#session.request(
      {
        ':method': this.#options.method,
        ':authority': this.#authority,
        ':path': get ? `${PATH}?dns=${message.toString('base64url')}` : PATH,
        accept: TYPE,
        ...(get ? {} : { 'content-type': TYPE, 'content-length': message.length }),
      },
      { endStream: get },
    )
    this.pending.set(ask, stream)
    this.lastUsed = ask.sentAt = this.#options.clock.monotonic()
    this.#listen(ask, stream)
    if (!get) stream.end(message)
  }

  get local(): string {
    return ''
  }

  forget(ask: Ask): void {
    const stream = this.pending.get(ask)
    this.pending.delete(ask)
    stream?.close(http2().constants.NGHTTP2_CANCEL)
  }

  /** No new query comes; the session goes once those under way have ended. */
  finish(): void {
    if (this.pending.size === 0) this.fail(new Error('EOF'), false)
    else this.#session.close()
  }

  fail(error: Error, redial: boolean): void {
    if (this.#closed) return
    this.#closed = true
    const asks = [...this.pending.keys()]
    this.pending.clear()
    this.#session.destroy()
    this.#gone(this, redial ? asks : [])
    if (!redial) for (const ask of asks) ask.settle(undefined, error)
  }

  #listen(ask: Ask, stream: ClientHttp2Stream): void {
    const chunks: Buffer[] = []
    let size = 0
    let status = 0
    stream.on('response', (headers) => {
      status = Number(headers[':status'])
    })
    stream.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > MAX_BODY) stream.close(http2().constants.NGHTTP2_CANCEL)
      else chunks.push(chunk)
    })
    stream.on('error', (error) => this.#done(ask, undefined, new Error(`stream error: ${error.message}`, { cause: error })))
    stream.on('close', () => this.#done(ask, undefined, new Error('EOF')))
    stream.on('end', () => {
      const body = Buffer.concat(chunks)
      const found = compare(ask.frame!, body, body.length) === 'other' ? undefined : inspect(body, body.length)
      if (status !== 200) this.#done(ask, undefined, new Error(`unexpected HTTP status ${status}`))
      else if (found === undefined) this.#done(ask, undefined, new Error('reply is malformed or does not match the question'))
      else this.#done(ask, found, undefined)
    })
  }

  #done(ask: Ask, reply: Received | undefined, error: Error | undefined): void {
    if (!this.pending.delete(ask)) return
    if (reply !== undefined) {
      this.#replies++
      this.lastUsed = this.#options.clock.monotonic()
    }
    ask.settle(reply, error)
  }
}
