/** DNS over HTTPS (RFC 8484): GET and POST over HTTP/2 and HTTP/1.1; plain HTTP/1.1, for use behind a proxy, where there is no `tls`. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Http2SecureServer, Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Socket } from 'node:net'
import { Message, RCODE, WireError } from '../../dns/index.js'
import type { Counter, MetricFamily, Peer } from '../../plugins/contract.js'
import { ACCEPT, admit, decodeQuery } from '../door.js'
import { familyOf, plainAddress } from './addresses.js'
import type { Listener, ListenerDeps, Service } from './listener.js'
import type { Origin } from './ports.js'
import { acceptsClient, changeTls, tlsOptions, writeKeylog } from './tls.js'

type Request = IncomingMessage | Http2ServerRequest
type Response = ServerResponse | Http2ServerResponse

const PATH = '/dns-query'
const MEDIA_TYPE = 'application/dns-message'
const MAX_BODY = 65_536
/** Connections that may wait for one of the others to close. */
const MAX_QUEUE = 1024
/** Seconds: the age of answers without a TTL to go by, and the most that is ever stated (as CoreDNS has them). */
const DEFAULT_AGE = 5
const MAX_AGE = 3600

export class HttpsServer {
  readonly #listener: Listener
  readonly #deps: ListenerDeps
  readonly #responses: MetricFamily<Counter>
  readonly #open = new Set<Socket>()
  readonly #queue: Socket[] = []
  #server: Server | Http2SecureServer | undefined
  #secure: Http2SecureServer | undefined
  #max = 0
  #stopping = false

  constructor(listener: Listener, deps: ListenerDeps) {
    this.#listener = listener
    this.#deps = deps
    this.#responses = deps.metrics.counter(
      'coredns_dns_https_responses_total',
      'Counter of DoH responses per server and http status code.',
      ['server', 'status'],
    )
  }

  apply(service: Service): void {
    this.#max = service.httpsMaxConnections
    const { tls } = service
    if (tls !== undefined && this.#secure !== undefined) changeTls(this.#secure, tls, this.#listener.tickets)
    else if (tls !== undefined) this.#server = this.#secure = this.#makeSecure(service)
    else if (this.#server === undefined || this.#secure !== undefined) {
      this.#secure = undefined
      this.#server = this.#makePlain(service)
    }
  }

  accept(socket: Socket): void {
    if (this.#stopping || this.#server === undefined || (this.#full && this.#queue.length >= MAX_QUEUE)) socket.destroy()
    else if (this.#full) this.#queue.push(socket)
    else this.#admit(socket)
  }

  stop(): void {
    this.#stopping = true
    for (const socket of this.#queue.splice(0)) socket.destroy()
    for (const socket of this.#open) socket.setTimeout(500, () => socket.destroy())
  }

  close(): void {
    this.stop()
    for (const socket of this.#open) socket.destroy()
  }

  get #full(): boolean {
    return this.#max > 0 && this.#open.size >= this.#max
  }

  #admit(socket: Socket): void {
    this.#open.add(socket)
    socket.on('close', () => {
      this.#open.delete(socket)
      const next = this.#queue.shift()
      if (next !== undefined && !next.destroyed) this.#admit(next)
    })
    this.#server!.emit('connection', socket)
  }

  #makePlain({ limits }: Service): Server {
    const server = process.getBuiltinModule('node:http').createServer({
      requestTimeout: limits.read,
      headersTimeout: limits.read,
      keepAliveTimeout: limits.idle,
      connectionsCheckingInterval: 1000,
      maxHeaderSize: 128 << 10,
    })
    server.on('request', (request, response) => this.#serve(request, response))
    return server
  }

  #makeSecure({ limits, tls }: Service): Http2SecureServer {
    const server = process.getBuiltinModule('node:http2').createSecureServer({
      ...tlsOptions(tls!, this.#listener.tickets),
      allowHTTP1: true,
      handshakeTimeout: Math.max(1000, limits.read),
      maxSessionMemory: 4,
      settings: { maxConcurrentStreams: 250 },
    })
    server.on('secureConnection', (socket) => {
      const presented = Object.keys(socket.getPeerCertificate()).length > 0
      if (!acceptsClient(this.#listener.service.tls ?? tls!, presented, socket.authorized)) socket.destroy()
    })
    server.setTimeout(limits.idle)
    server.on('keylog', (line) => writeKeylog(this.#listener.service.tls ?? tls!, line, this.#deps.log))
    server.on('tlsClientError', (error) => this.#deps.log.debug(`TLS handshake failed: ${error.message}`))
    server.on('request', (request, response) => this.#serve(request, response))
    return server
  }

  #serve(request: Request, response: Response): void {
    const { pathname, query } = split(request.url ?? '')
    // A client that is gone makes these fail; that is no event.
    request.on('error', () => undefined)
    response.on('error', () => undefined)
    if (pathname !== PATH) this.#refuse(response, 404, '')
    else if (request.method === 'GET') this.#message(fromQuery(query), request, response)
    else if (request.method === 'POST') readBody(request, (body) => this.#message(body, request, response))
    else this.#refuse(response, 400, 'invalid request')
  }

  #message(bytes: Buffer | undefined, request: Request, response: Response): void {
    if (bytes === undefined || admit(bytes, bytes.length) !== ACCEPT || !isLegible(bytes)) this.#refuse(response, 400, 'invalid request')
    else this.#deps.receive(this.#listener, bytes, bytes.length, new HttpOrigin(this, request, response))
  }

  #refuse(response: Response, status: number, text: string): void {
    const headers = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff', 'content-length': text.length + 1 }
    this.respond(response, status, headers, Buffer.from(`${text}\n`))
  }

  answer(response: Response, body: Buffer | undefined): void {
    if (body === undefined) {
      this.#refuse(response, 500, 'No response')
      return
    }
    const headers = { 'content-type': MEDIA_TYPE, 'cache-control': `max-age=${maxAge(body)}`, 'content-length': body.length }
    this.respond(response, 200, headers, body)
  }

  respond(response: Response, status: number, headers: Record<string, string | number>, body: Buffer): void {
    this.#deps.touch()
    this.#responses.with(this.#listener.server, String(status)).inc()
    if (response.destroyed || response.writableEnded) return
    ;(response as ServerResponse).writeHead(status, headers)
    ;(response as ServerResponse).end(body)
  }
}

class HttpOrigin implements Origin {
  readonly proto = 'https'
  readonly peer: Peer
  readonly #server: HttpsServer
  readonly #response: Response
  #body: Buffer | undefined

  constructor(server: HttpsServer, request: Request, response: Response) {
    this.#server = server
    this.#response = response
    const { socket } = request
    const address = plainAddress(socket.remoteAddress ?? '')
    this.peer = {
      address,
      port: socket.remotePort ?? 0,
      family: familyOf(address),
      localAddress: plainAddress(socket.localAddress ?? ''),
      localPort: socket.localPort ?? 0,
    }
  }

  retain(): void {}
  room(): undefined {
    return undefined
  }
  /** One response carries one message: of a stream, the last. */
  send(data: Buffer, offset: number, length: number): boolean {
    this.#body = Buffer.from(data.subarray(offset, offset + length))
    return !this.#response.destroyed
  }
  end(): void {
    this.#server.answer(this.#response, this.#body)
  }
  drained(): undefined {
    return undefined
  }
}

function split(url: string): { pathname: string; query: string } {
  const mark = url.indexOf('?')
  return mark < 0 ? { pathname: url, query: '' } : { pathname: url.slice(0, mark), query: url.slice(mark + 1) }
}

/** The message in `?dns=`, base64url without padding, exactly once. */
function fromQuery(query: string): Buffer | undefined {
  const values = new URLSearchParams(query).getAll('dns')
  const text = values[0]
  if (values.length !== 1 || text === undefined || text.length % 4 === 1 || !/^[A-Za-z0-9_-]*$/.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64url')
  return bytes.length > MAX_BODY ? undefined : bytes
}

function readBody(request: Request, done: (body: Buffer | undefined) => void): void {
  const chunks: Buffer[] = []
  let size = 0
  request.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size <= MAX_BODY) chunks.push(chunk)
  })
  request.on('end', () => done(size > MAX_BODY ? undefined : Buffer.concat(chunks)))
}

/** Seconds that the answer may be kept (RFC 8484 §5.1): its lowest TTL; little where there is nothing to go by, or for failures. */
function maxAge(body: Buffer): number {
  const message = Message.view(body)
  const records = [...message.answers, ...message.authorities, ...message.additionals]
  if ((message.rcode !== RCODE.NOERROR && message.rcode !== RCODE.NXDOMAIN) || records.length === 0) return DEFAULT_AGE
  return records.reduce((age, { ttl }) => Math.min(age, ttl), MAX_AGE)
}

function isLegible(bytes: Buffer): boolean {
  try {
    decodeQuery(bytes, bytes.length)
    return true
  } catch (error) {
    if (error instanceof WireError) return false
    throw error
  }
}
