/** A plain HTTP way to an API server, as `kubectl proxy` gives it, that tells when octets went through and can stall. */
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { ApiTarget } from './api.js'

export class ApiProxy {
  /** Paths of the requests of our server, in order: CoreDNS comes this way, too. */
  readonly requests: string[] = []
  /** When octets of a watch were last handed on, by performance.now(). */
  lastEvent = 0
  readonly #target: ApiTarget
  readonly #server: http.Server
  readonly #sockets = new Set<Socket>()
  #cut = false
  #count = 0
  #lastRequest = 0
  /** Watches opened before this count bring nothing any more. */
  #stalledBefore = 0

  constructor(target: ApiTarget) {
    this.#target = target
    this.#server = http.createServer((request, response) => void this.#forward(request, response))
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return this
  }
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }
  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /** Ends all connections and takes none, until `mend`. */
  cut(): void {
    this.#cut = true
    for (const socket of this.#sockets) socket.destroy()
  }
  mend(): void {
    this.#cut = false
  }
  /** Milliseconds since the last request of our server. */
  get quiet(): number {
    return performance.now() - this.#lastRequest
  }
  /** Watches that are open now stay open, and bring nothing any more. */
  stall(): void {
    this.#stalledBefore = this.#count
  }

  /** Requests for a list (or a streaming one) among those from `since` on. */
  lists(since = 0): number {
    return this.requests.slice(since).filter((path) => !path.includes('watch=true') || path.includes('sendInitialEvents')).length
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#cut) {
      request.destroy()
      return
    }
    const { base } = this.#target
    const number = this.#count++
    const path = request.url ?? '/'
    if (request.headers['user-agent'] === 'CairnDNS') {
      this.requests.push(path)
      this.#lastRequest = performance.now()
    }
    const { headers, agent: _, ...tls } = await this.#target.options()
    const watch = path.includes('watch=true')
    const options = {
      ...tls,
      hostname: base.hostname,
      port: base.port,
      path,
      method: request.method,
      headers: { ...headers, accept: 'application/json' },
    }
    const out = (base.protocol === 'https:' ? https : http).request(options, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      response.flushHeaders()
      answer.on('data', (chunk: Buffer) => {
        if (number < this.#stalledBefore) return
        if (watch) this.lastEvent = performance.now()
        response.write(chunk)
      })
      answer.on('end', () => number < this.#stalledBefore || response.end())
      answer.on('error', () => response.destroy())
    })
    out.on('error', () => response.destroy())
    response.on('close', () => out.destroy())
    request.pipe(out)
  }
}
