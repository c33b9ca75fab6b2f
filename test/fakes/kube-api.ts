/**
 * A Kubernetes API server for tests: lists in pages, streaming lists, watches with bookmarks, and the faults that real ones show. It
 * listens on loopback and keeps its history, so that watches can go on from any version that was not compacted.
 */
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo, Socket } from 'node:net'

export interface KubeObject {
  kind: string
  apiVersion?: string
  metadata: {
    name: string
    namespace?: string
    labels?: Record<string, string>
    annotations?: Record<string, string>
    resourceVersion?: string
    deletionTimestamp?: string
  }
  [member: string]: unknown
}

/** What goes wrong, until it is changed again. */
export interface Faults {
  /** Streaming lists: as new servers do; refused by status; by an ERROR event (an old etcd); or the question for it is lost on the way. */
  streaming: 'yes' | 'refused' | 'error' | 'lost'
  /** Every request is answered with this status. */
  status: number | undefined
  retryAfter: string | undefined
  /** Requests without this bearer token get 401. */
  token: string | undefined
  /** `limit` is ignored. */
  noPages: boolean
  /** So many requests for a further page get 410. */
  goneContinues: number
  /** Watches from an old version: 410 as a status, or as an ERROR event in a stream of status 200. */
  gone: 'status' | 'event'
  /** Resources that do not exist here. */
  missing: readonly string[]
  /** Bodies of lists come in pieces of so many octets, one per turn; 0: whole. */
  pieces: number
  /** Lists break off after so many octets; 0: never. */
  cutLists: number
  /** Watches are closed as soon as they are open. */
  shortWatches: boolean
}

interface Resource {
  readonly name: string
  readonly path: string
  readonly kind: string
  readonly version: string
}
const RESOURCES: readonly Resource[] = [
  { name: 'services', path: '/api/v1/services', kind: 'Service', version: 'v1' },
  { name: 'namespaces', path: '/api/v1/namespaces', kind: 'Namespace', version: 'v1' },
  { name: 'pods', path: '/api/v1/pods', kind: 'Pod', version: 'v1' },
  { name: 'endpointslices', path: '/apis/discovery.k8s.io/v1/endpointslices', kind: 'EndpointSlice', version: 'discovery.k8s.io/v1' },
  {
    name: 'serviceimports',
    path: '/apis/multicluster.x-k8s.io/v1alpha1/serviceimports',
    kind: 'ServiceImport',
    version: 'multicluster.x-k8s.io/v1alpha1',
  },
]

interface Event {
  readonly version: number
  readonly resource: string
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: KubeObject
}

interface Watcher {
  readonly resource: Resource
  readonly response: ServerResponse
  readonly selector: string | undefined
  stalled: boolean
}

export class FakeKubeApi {
  readonly requests: { readonly url: string; readonly headers: http.IncomingHttpHeaders; readonly at: number }[] = []
  readonly faults: Faults = {
    streaming: 'yes',
    status: undefined,
    retryAfter: undefined,
    token: undefined,
    noPages: false,
    goneContinues: 0,
    gone: 'event',
    missing: [],
    pieces: 0,
    cutLists: 0,
    shortWatches: false,
  }
  version = 1000
  #compacted = 0
  readonly #objects = new Map<string, KubeObject>()
  #history: Event[] = []
  readonly #watchers = new Set<Watcher>()
  readonly #sockets = new Set<Socket>()
  #server: http.Server | undefined
  #port = 0
  readonly #tls: https.ServerOptions | undefined
  readonly #host: string

  /** `host`: a loopback address. */
  constructor(tls?: https.ServerOptions, host = '127.0.0.1') {
    this.#tls = tls
    this.#host = host
  }

  async start(): Promise<this> {
    const serve = (request: IncomingMessage, response: ServerResponse) => this.#serve(request, response)
    const server = this.#tls === undefined ? http.createServer(serve) : https.createServer(this.#tls, serve)
    server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
      socket.on('error', () => undefined)
    })
    await new Promise<void>((resolve) => server.listen(this.#port, this.#host, resolve))
    this.#port = (server.address() as AddressInfo).port
    this.#server = server
    return this
  }

  /** Goes away; `start` comes back at the same port. */
  async stop(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (server === undefined) return
    const closed = new Promise((resolve) => server.close(resolve))
    this.cutWatches()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  get port(): number {
    return this.#port
  }

  get url(): string {
    const host = this.#host.includes(':') ? `[${this.#host}]` : this.#host
    return `http${this.#tls === undefined ? '' : 's'}://${host}:${this.#port}`
  }

  get watches(): number {
    return this.#watchers.size
  }

  put(object: KubeObject): void {
    const key = this.#key(object)
    const before = this.#objects.get(key)
    this.version++
    const stored = structuredClone(object)
    stored.metadata.resourceVersion = String(this.version)
    this.#objects.set(key, stored)
    this.#happen(before === undefined ? 'ADDED' : 'MODIFIED', stored)
  }

  delete(object: Pick<KubeObject, 'kind' | 'metadata'>): void {
    const key = this.#key(object)
    const before = this.#objects.get(key)
    if (before === undefined) return
    this.#objects.delete(key)
    this.version++
    const last = structuredClone(before)
    last.metadata.resourceVersion = String(this.version)
    this.#happen('DELETED', last)
  }

  /** Versions before now are forgotten: watches from them get 410. */
  compact(): void {
    this.#compacted = this.version
    this.#history = []
  }

  bookmark(): void {
    for (const watcher of this.#watchers) this.#write(watcher, this.#bookmarkText(watcher.resource, false))
  }

  cutWatches(): void {
    for (const { response } of this.#watchers) response.destroy()
    this.#watchers.clear()
  }

  /** Watches that are open now stay open, but nothing comes any more. */
  stallWatches(): void {
    for (const watcher of this.#watchers) watcher.stalled = true
  }

  /** Writes this text into every open watch. */
  say(text: string): void {
    for (const watcher of this.#watchers) this.#write(watcher, text)
  }

  /** Requests whose URL matches. */
  asked(pattern: RegExp): number {
    return this.requests.filter(({ url }) => pattern.test(url)).length
  }

  #key({ kind, metadata }: Pick<KubeObject, 'kind' | 'metadata'>): string {
    return `${kind}/${metadata.namespace ?? ''}/${metadata.name}`
  }

  #happen(type: Event['type'], object: KubeObject): void {
    const resource = RESOURCES.find((r) => r.kind === object.kind)
    if (resource === undefined) throw new Error(`no resource for ${object.kind}`)
    const event = { version: this.version, resource: resource.name, type, object }
    this.#history.push(event)
    for (const watcher of this.#watchers) if (watcher.resource === resource) this.#tell(watcher, event)
  }

  #tell(watcher: Watcher, { type, object }: Event): void {
    if (!selected(watcher.selector, object)) return
    this.#write(watcher, `${JSON.stringify({ type, object })}\n`)
  }

  #write(watcher: Watcher, text: string): void {
    if (!watcher.stalled) watcher.response.write(text)
  }

  #bookmarkText({ kind, version }: Resource, endsList: boolean): string {
    const annotations = endsList ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}
    const metadata = { resourceVersion: String(this.version), creationTimestamp: null, ...annotations }
    return `${JSON.stringify({ type: 'BOOKMARK', object: { kind, apiVersion: version, metadata } })}\n`
  }

  #serve(request: IncomingMessage, response: ServerResponse): unknown {
    const url = new URL(request.url ?? '/', 'http://localhost')
    this.requests.push({ url: request.url ?? '', headers: request.headers, at: performance.now() })
    const { status, retryAfter, token, missing } = this.faults
    if (status !== undefined) return this.#refuse(response, status, 'out of order', retryAfter)
    if (token !== undefined && request.headers.authorization !== `Bearer ${token}`) return this.#refuse(response, 401, 'Unauthorized')
    const resource = RESOURCES.find((r) => r.path === url.pathname)
    if (resource === undefined || missing.includes(resource.name)) return this.#refuse(response, 404, 'not found')
    const query = url.searchParams
    return query.get('watch') === 'true' ? this.#watch(resource, query, response) : this.#list(resource, query, response)
  }

  #refuse(response: ServerResponse, code: number, message: string, retryAfter?: string): void {
    response.writeHead(code, { 'content-type': 'application/json', ...(retryAfter !== undefined && { 'retry-after': retryAfter }) })
    response.end(JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, code }))
  }

  #all(resource: Resource, selector: string | undefined): KubeObject[] {
    return [...this.#objects.values()]
      .filter((object) => object.kind === resource.kind && selected(selector, object))
      .sort((a, b) => (this.#key(a) < this.#key(b) ? -1 : 1))
  }

  #watch(resource: Resource, query: URLSearchParams, response: ServerResponse): unknown {
    const initial = query.get('sendInitialEvents') === 'true'
    const { streaming, gone, shortWatches } = this.faults
    if (initial && streaming === 'refused') return this.#refuse(response, 422, 'sendInitialEvents is forbidden for watch')
    const from = Number(query.get('resourceVersion') ?? 0)
    const tooOld = !initial && from < this.#compacted
    if (tooOld && gone === 'status') return this.#refuse(response, 410, `too old resource version: ${from} (${this.#compacted})`)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    const fail = (code: number, message: string) =>
      void response.end(`${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', status: 'Failure', message, code } })}\n`)
    if (tooOld) return fail(410, `too old resource version: ${from} (${this.#compacted})`)
    if (initial && streaming === 'error') return fail(500, 'etcd cannot stream lists')
    const watcher: Watcher = { resource, response, selector: query.get('labelSelector') ?? undefined, stalled: false }
    if (initial && streaming === 'yes') {
      for (const object of this.#all(resource, watcher.selector)) this.#write(watcher, `${JSON.stringify({ type: 'ADDED', object })}\n`)
      this.#write(watcher, this.#bookmarkText(resource, true))
    }
    if (!initial)
      for (const event of this.#history) if (event.version > from && event.resource === resource.name) this.#tell(watcher, event)
    if (shortWatches) return response.end()
    this.#watchers.add(watcher)
    return response.on('close', () => this.#watchers.delete(watcher))
  }

  #list(resource: Resource, query: URLSearchParams, response: ServerResponse): unknown {
    const token = query.get('continue')
    if (token !== null && this.faults.goneContinues > 0) {
      this.faults.goneContinues--
      return this.#refuse(response, 410, 'The provided continue parameter is too old')
    }
    const all = this.#all(resource, query.get('labelSelector') ?? undefined)
    const limit = this.faults.noPages ? Number.POSITIVE_INFINITY : Number(query.get('limit') ?? Number.POSITIVE_INFINITY)
    const start = Number(token ?? 0)
    const more = start + limit < all.length ? { continue: String(start + limit) } : {}
    // Elements of a typed list carry neither kind nor apiVersion.
    const items = all.slice(start, start + limit).map(({ kind: _, apiVersion: __, ...rest }) => rest)
    const metadata = { resourceVersion: String(this.version), ...more }
    const text = JSON.stringify({ kind: `${resource.kind}List`, apiVersion: resource.version, metadata, items })
    response.writeHead(200, { 'content-type': 'application/json' })
    return this.#send(response, Buffer.from(text))
  }

  async #send(response: ServerResponse, body: Buffer): Promise<void> {
    const { pieces, cutLists } = this.faults
    if (cutLists > 0 && body.length > cutLists) {
      response.write(body.subarray(0, cutLists), () => response.destroy())
      return
    }
    const size = pieces > 0 ? pieces : body.length
    for (let at = 0; at < body.length && !response.destroyed; at += size) {
      response.write(body.subarray(at, at + size))
      if (pieces > 0) await new Promise((resolve) => setImmediate(resolve))
    }
    response.end()
  }
}

/** Knows `a=b`, `a` and lists of them. */
function selected(selector: string | undefined, { metadata }: KubeObject): boolean {
  const parts = (selector ?? '').split(',').filter((part) => part !== '')
  return parts.every((part) => {
    const [key = '', value] = part.split(/==?/)
    const label = metadata.labels?.[key]
    return value === undefined ? label !== undefined : label === value
  })
}

/** A ClusterIP service; `over` goes over its spec. */
export function service(namespace: string, name: string, clusterIP: string, over: Record<string, unknown> = {}): KubeObject {
  const ports = [{ name: 'http', protocol: 'TCP', port: 80 }]
  return {
    kind: 'Service',
    apiVersion: 'v1',
    metadata: { name, namespace },
    spec: { type: 'ClusterIP', clusterIP, clusterIPs: [clusterIP], ports, ...over },
  }
}

export function namespace(name: string, labels: Record<string, string> = {}): KubeObject {
  return { kind: 'Namespace', apiVersion: 'v1', metadata: { name, labels } }
}

/** A slice of a service of the same namespace, its endpoints ready. */
export function slice(namespace: string, service: string, name: string, addresses: readonly string[]): KubeObject {
  return {
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    metadata: { name, namespace, labels: { 'kubernetes.io/service-name': service } },
    addressType: 'IPv4',
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    ports: [{ name: 'http', protocol: 'TCP', port: 80 }],
  }
}
