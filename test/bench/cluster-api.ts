/**
 * An API server double for benches, in a process of its own so that its memory and time are not the server's: streaming lists, pages,
 * watches, all out of texts made beforehand. Commands come over IPC; see `Command`.
 */
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { CERT, KEY } from '../fakes/certificate.js'
import { type ApiObject, ENDPOINTS, namespaces, SIZES, services, slices } from './cluster.js'

export type Command =
  /** Forgets old versions and ends all watches: every client has to list again. */
  | { readonly op: 'relist' }
  /** Turns the readiness of one endpoint in a slice of ten over, `rate` times a second. */
  | { readonly op: 'change'; readonly rate: number; readonly seconds: number }
  /** Asks which endpoints are ready. */
  | { readonly op: 'state' }

export type Report =
  | { readonly kind: 'listening'; readonly url: string }
  /** Lists that were sent whole so far. */
  | { readonly kind: 'listed'; readonly resource: string; readonly octets: number }
  /** One of the changes, as it was sent. */
  | { readonly kind: 'changed'; readonly service: number; readonly endpoint: number; readonly ready: boolean }
  | { readonly kind: 'done'; readonly changes: number }
  /** A bit per endpoint of each ClusterIP service. */
  | { readonly kind: 'state'; readonly ready: readonly number[] }

const report = (message: Report): void => void process.send!(message)
/** Octets that are written at once. */
const CHUNK = 64 * 1024
const TICK_MS = 5
const SLICES = '/apis/discovery.k8s.io/v1/endpointslices'
/** One in so many changes is reported. */
const SAMPLE = 100

interface Resource {
  readonly name: string
  readonly kind: string
  readonly apiVersion: string
  readonly objects: readonly ApiObject[]
  readonly texts: string[]
  readonly watchers: Set<Watcher>
}

/** `waiting`: what changed while the list was being sent. */
interface Watcher {
  readonly response: ServerResponse
  waiting: string[] | undefined
}

class ClusterApi {
  readonly #resources: ReadonlyMap<string, Resource>
  readonly #ready: number[]
  #version = 100_000
  #compacted = 0

  constructor(size: keyof typeof SIZES) {
    const shape = SIZES[size]!
    const resource = (path: string, kind: string, apiVersion: string, objects: readonly ApiObject[]): [string, Resource] => {
      for (const object of objects) object.metadata.resourceVersion = String(++this.#version)
      return [
        path,
        {
          name: path.slice(path.lastIndexOf('/') + 1),
          kind,
          apiVersion,
          objects,
          texts: objects.map((o) => JSON.stringify(o)),
          watchers: new Set(),
        },
      ]
    }
    this.#resources = new Map([
      resource('/api/v1/services', 'Service', 'v1', services(shape)),
      resource('/api/v1/namespaces', 'Namespace', 'v1', namespaces()),
      resource(SLICES, 'EndpointSlice', 'discovery.k8s.io/v1', slices(shape)),
    ])
    this.#ready = Array.from({ length: shape.services }, () => 2 ** ENDPOINTS - 1)
  }

  listen(scheme: 'http' | 'https'): void {
    const serve = (request: IncomingMessage, response: ServerResponse): void => this.#serve(request, response)
    const server = scheme === 'http' ? http.createServer(serve) : https.createServer({ cert: CERT, key: KEY }, serve)
    server.listen(0, '127.0.0.1', () =>
      report({ kind: 'listening', url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}` }),
    )
  }

  take(command: Command): void {
    if (command.op === 'relist') this.#forget()
    else if (command.op === 'state') report({ kind: 'state', ready: this.#ready })
    else this.#change(command.rate, command.seconds)
  }

  #forget(): void {
    this.#compacted = ++this.#version
    for (const { watchers } of this.#resources.values()) for (const { response } of watchers) response.end()
  }

  #change(rate: number, seconds: number): void {
    const start = performance.now()
    let done = 0
    const timer = setInterval(() => {
      const due = Math.min(rate * seconds, Math.floor(((performance.now() - start) * rate) / 1000))
      // As the real one does it: what waits for a watch goes out in one go.
      const { watchers } = this.#resources.get(SLICES)!
      for (const { response } of watchers) response.cork()
      for (; done < due; done++) this.#turnOver(done)
      for (const { response } of watchers) response.uncork()
      if (done < rate * seconds) return
      clearInterval(timer)
      report({ kind: 'done', changes: done })
    }, TICK_MS)
  }

  #turnOver(change: number): void {
    const resource = this.#resources.get(SLICES)!
    // All over the cluster, and the same slice again only after all others.
    const service = (change * 7919) % this.#ready.length
    const endpoint = Math.floor(change / this.#ready.length) % ENDPOINTS
    this.#ready[service]! ^= 1 << endpoint
    const ready = (this.#ready[service]! & (1 << endpoint)) !== 0
    const object = resource.objects[service]!
    const { conditions } = (object.endpoints as { conditions: Record<string, boolean> }[])[endpoint]!
    conditions.ready = conditions.serving = ready
    object.metadata.resourceVersion = String(++this.#version)
    resource.texts[service] = JSON.stringify(object)
    const event = `{"type":"MODIFIED","object":${this.#typed(resource, resource.texts[service]!)}}\n`
    for (const { response, waiting } of resource.watchers) waiting === undefined ? response.write(event) : waiting.push(event)
    if (change % SAMPLE === 0) report({ kind: 'changed', service, endpoint, ready })
  }

  #typed({ kind, apiVersion }: Resource, text: string): string {
    return `{"kind":"${kind}","apiVersion":"${apiVersion}",${text.slice(1)}`
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url!, 'http://localhost')
    const resource = this.#resources.get(url.pathname)
    if (resource === undefined) {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"kind":"Status","code":404}')
      return
    }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.on('error', () => undefined)
    const query = url.searchParams
    void (query.get('watch') === null ? this.#list(resource, query, response) : this.#watch(resource, query, response))
  }

  async #watch(resource: Resource, query: URLSearchParams, response: ServerResponse): Promise<void> {
    const initial = query.get('sendInitialEvents') === 'true'
    if (!initial && Number(query.get('resourceVersion')) < this.#compacted) {
      const object = {
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message: 'too old resource version',
        reason: 'Expired',
        code: 410,
      }
      response.end(`${JSON.stringify({ type: 'ERROR', object })}\n`)
      return
    }
    response.flushHeaders()
    const watcher: Watcher = { response, waiting: initial ? [] : undefined }
    resource.watchers.add(watcher)
    response.on('close', () => resource.watchers.delete(watcher))
    if (!initial) return
    const version = String(this.#version)
    const octets = await send(response, resource.texts, (text) => `{"type":"ADDED","object":${this.#typed(resource, text)}}\n`)
    const metadata = { resourceVersion: version, creationTimestamp: null, annotations: { 'k8s.io/initial-events-end': 'true' } }
    const { kind, apiVersion } = resource
    response.write(`${JSON.stringify({ type: 'BOOKMARK', object: { kind, apiVersion, metadata } })}\n${watcher.waiting!.join('')}`)
    watcher.waiting = undefined
    report({ kind: 'listed', resource: resource.name, octets })
  }

  /** At resourceVersion 0 the real one ignores `limit`, too. */
  async #list(resource: Resource, query: URLSearchParams, response: ServerResponse): Promise<void> {
    const start = Number(query.get('continue') ?? 0)
    const limit = query.get('resourceVersion') === '0' ? 0 : Number(query.get('limit') ?? 0)
    const end = limit === 0 ? resource.texts.length : Math.min(start + limit, resource.texts.length)
    const more = end < resource.texts.length ? { continue: String(end) } : {}
    const metadata = { resourceVersion: String(this.#version), ...more }
    response.write(`{"kind":"${resource.kind}List","apiVersion":"${resource.apiVersion}","metadata":${JSON.stringify(metadata)},"items":[`)
    let first = true
    const octets = await send(response, resource.texts.slice(start, end), (text) => {
      const comma = first ? '' : ','
      first = false
      return comma + text
    })
    response.end(']}')
    if (end === resource.texts.length) report({ kind: 'listed', resource: resource.name, octets })
  }
}

/** As fast as the other side reads. */
async function send(response: ServerResponse, texts: readonly string[], frame: (text: string) => string): Promise<number> {
  let octets = 0
  let chunk = ''
  const flush = async () => {
    octets += chunk.length
    const go = response.write(chunk)
    chunk = ''
    if (!go && !response.closed)
      await new Promise<void>((resolve) => {
        const done = () => {
          response.off('drain', done).off('close', done)
          resolve()
        }
        response.on('drain', done).on('close', done)
      })
  }
  for (const text of texts) {
    chunk += frame(text)
    if (chunk.length >= CHUNK) await flush()
  }
  await flush()
  return octets
}

export default function main([size, scheme]: readonly string[]): Promise<never> {
  const api = new ClusterApi(size!)
  process.on('message', (command: Command) => api.take(command))
  process.on('disconnect', () => process.exit(0))
  api.listen(scheme === 'https' ? 'https' : 'http')
  return new Promise(() => undefined)
}
