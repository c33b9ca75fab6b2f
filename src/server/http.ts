/**
 * The process's HTTP endpoints: (address, path) to handler. Addresses belong to the process, not to a plugin or a generation: a new one
 * is open before anything old is closed, and a commit only swaps route tables.
 */
import http from 'node:http'
import type { Socket } from 'node:net'
import type { HttpHandler } from '../plugins/contract.js'

/** Milliseconds and counts that keep slow or greedy clients from holding the endpoints. */
const LIMITS = { headers: 5_000, request: 10_000, idle: 30_000, connections: 512, headerBytes: 16_384 } as const

type Routes = ReadonlyMap<string, HttpHandler>

interface Endpoint {
  readonly server: http.Server
  readonly port: number
  routes: Routes
}

/** What one generation wants to have open. */
export class HttpPlan {
  readonly routes = new Map<string, Map<string, HttpHandler>>()
  /** The first handler for an address and path stays. */
  add(address: string, path: string, handler: HttpHandler): void {
    let routes = this.routes.get(address)
    if (routes === undefined) {
      routes = new Map()
      this.routes.set(address, routes)
    }
    if (!routes.has(path)) routes.set(path, handler)
  }
}

/** Sockets opened for a plan that does not serve yet. */
export interface HttpStage {
  commit(): Promise<void>
  abort(): Promise<void>
}

export class HttpEndpoints {
  readonly #open = new Map<string, Endpoint>()
  readonly #report: (error: Error) => void

  /** `report` takes what goes wrong where nobody waits for it: a handler that throws, an address that could not be moved. */
  constructor(report: (error: Error) => void) {
    this.#report = report
  }

  /** Port of an open address; for tests with port 0. */
  port(address: string): number | undefined {
    return this.#open.get(address)?.port
  }

  /** Opens what is new. Rejects with `listen tcp ADDRESS: bind: …`, with nothing left open. */
  async stage(plan: HttpPlan): Promise<HttpStage> {
    const fresh = new Map<string, Endpoint>()
    const late: string[] = []
    try {
      for (const [address, routes] of plan.routes) {
        if (this.#open.has(address)) continue
        try {
          fresh.set(address, await listen(address, routes, this.#report))
        } catch (error) {
          // Narrower or wider than an address of ours that is about to go (":8080" to "127.0.0.1:8080"): its turn comes then.
          if (!this.#frees(address, plan, error)) throw error
          late.push(address)
        }
      }
    } catch (error) {
      await closeAll(fresh.values())
      throw error
    }
    return { commit: () => this.#commit(plan, fresh, late), abort: () => closeAll(fresh.values()) }
  }

  async close(): Promise<void> {
    const all = [...this.#open.values()]
    this.#open.clear()
    await closeAll(all)
  }

  #frees(address: string, plan: HttpPlan, error: unknown): boolean {
    if ((error as { code?: string }).code !== 'EADDRINUSE') return false
    const port = split(address).port
    return [...this.#open].some(([other, endpoint]) => endpoint.port === port && !plan.routes.has(other))
  }

  /** Route tables change in one turn; the rest happens after it. */
  async #commit(plan: HttpPlan, fresh: ReadonlyMap<string, Endpoint>, late: readonly string[]): Promise<void> {
    const vanished: Endpoint[] = []
    for (const [address, endpoint] of this.#open) {
      const routes = plan.routes.get(address)
      if (routes !== undefined) endpoint.routes = routes
      else {
        vanished.push(endpoint)
        this.#open.delete(address)
      }
    }
    for (const [address, endpoint] of fresh) this.#open.set(address, endpoint)
    await closeAll(vanished)
    for (const address of late) {
      try {
        this.#open.set(address, await listen(address, plan.routes.get(address)!, this.#report))
      } catch (error) {
        this.#report(error as Error)
      }
    }
  }
}

function split(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon).replace(/^\[(.*)\]$/, '$1')
  return { host, port: Number(address.slice(colon + 1)) }
}

async function listen(address: string, routes: Routes, report: (error: Error) => void): Promise<Endpoint> {
  const { host, port } = split(address)
  const options = {
    headersTimeout: LIMITS.headers,
    requestTimeout: LIMITS.request,
    keepAliveTimeout: LIMITS.idle,
    maxHeaderSize: LIMITS.headerBytes,
  }
  const server = http.createServer({ ...options, connectionsCheckingInterval: 2_000 })
  limitConnections(server, LIMITS.connections)
  server.timeout = LIMITS.idle
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => reject(listenError(address, cause)))
    server.listen({ port, ...(host === '' ? {} : { host }) }, resolve)
  })
  server.on('error', report)
  const bound = server.address()
  const endpoint: Endpoint = { server, port: typeof bound === 'object' && bound !== null ? bound.port : port, routes }
  server.on('request', (request, response) => answer(endpoint, request, response, report))
  return endpoint
}

/**
 * Above `most` connections the one that has gone longest without a request of its own being answered is cut: so those who connect and say
 * nothing can't keep a probe out, which would cost the process its life.
 */
export function limitConnections(server: http.Server, most: number): void {
  const silent = new Set<Socket>()
  let open = 0
  server.on('connection', (socket: Socket) => {
    open++
    silent.add(socket)
    socket.once('close', () => {
      open--
      silent.delete(socket)
    })
    if (open <= most) return
    // With all others being answered, that is the one that has just come.
    for (const oldest of silent) {
      oldest.destroy()
      break
    }
  })
  server.on('request', ({ socket }, response) => {
    silent.delete(socket)
    response.once('close', () => {
      if (!socket.destroyed) silent.add(socket)
    })
  })
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'bind: address already in use',
  EACCES: 'bind: permission denied',
  EADDRNOTAVAIL: 'bind: cannot assign requested address',
}

function listenError(address: string, cause: NodeJS.ErrnoException): Error {
  if (cause.code === 'ENOTFOUND') return new Error(`listen tcp: lookup ${split(address).host}: no such host`, { cause })
  const error = new Error(`listen tcp ${address}: ${REASONS[cause.code ?? ''] ?? cause.message}`, { cause })
  return Object.assign(error, { code: cause.code })
}

function answer(endpoint: Endpoint, request: http.IncomingMessage, response: http.ServerResponse, report: (error: Error) => void): void {
  const path = (request.url ?? '/').replace(/[?#].*/, '')
  const handler = find(endpoint.routes, path)
  if (handler === undefined) {
    response
      .writeHead(404, { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' })
      .end('404 page not found\n')
    return
  }
  const failed = (error: unknown): void => {
    report(new Error(`HTTP ${path}: ${error instanceof Error ? error.message : String(error)}`, { cause: error }))
    if (!response.headersSent) response.writeHead(500)
    response.end()
  }
  try {
    const result = handler(request, response)
    if (result !== undefined) result.catch(failed)
  } catch (error) {
    failed(error)
  }
}

/** The exact path, else the longest registered prefix that ends in a slash. */
function find(routes: Routes, path: string): HttpHandler | undefined {
  const exact = routes.get(path)
  if (exact !== undefined) return exact
  let best: string | undefined
  for (const prefix of routes.keys()) {
    if (prefix.endsWith('/') && path.startsWith(prefix) && prefix.length > (best?.length ?? 0)) best = prefix
  }
  return best === undefined ? undefined : routes.get(best)
}

/** Answers under way get a second; then their connections are cut. */
async function closeAll(endpoints: Iterable<Endpoint>): Promise<void> {
  await Promise.all(
    [...endpoints].map(
      ({ server }) =>
        new Promise<void>((resolve) => {
          const cut = setTimeout(() => server.closeAllConnections(), 1_000)
          server.close(() => {
            clearTimeout(cut)
            resolve()
          })
          server.closeIdleConnections()
        }),
    ),
  )
}
