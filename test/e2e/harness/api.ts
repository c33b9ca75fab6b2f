/** A client of the Kubernetes API, as little as the tests need: one request, JSON in and out. */
import http, { type RequestOptions } from 'node:http'
import https from 'node:https'

export type Json = any

export interface ApiTarget {
  readonly base: URL
  /** Headers and TLS of a request. */
  options(): Promise<https.RequestOptions>
}

export class ApiFailure extends Error {
  readonly status: number
  constructor(status: number, what: string, body: string) {
    super(`${what}: ${status} ${body.slice(0, 500)}`)
    this.status = status
  }
}

const GROUPS: Readonly<Record<string, string>> = {
  endpointslices: '/apis/discovery.k8s.io/v1',
  serviceimports: '/apis/multicluster.x-k8s.io/v1alpha1',
  customresourcedefinitions: '/apis/apiextensions.k8s.io/v1',
  clusterroles: '/apis/rbac.authorization.k8s.io/v1',
  clusterrolebindings: '/apis/rbac.authorization.k8s.io/v1',
}

/** The path of a collection. `namespace` "" for what has none. */
export const collection = (resource: string, namespace = ''): string =>
  `${GROUPS[resource] ?? '/api/v1'}${namespace === '' ? '' : `/namespaces/${namespace}`}/${resource}`

export class Api {
  readonly target: ApiTarget
  readonly #agent: http.Agent

  constructor(target: ApiTarget) {
    this.target = target
    const { Agent } = target.base.protocol === 'https:' ? https : http
    this.#agent = new Agent({ keepAlive: true, maxSockets: 16 })
  }

  close(): void {
    this.#agent.destroy()
  }

  /** Resolves with the parsed answer of a 2xx; rejects with ApiFailure, or as the connection fails. */
  async request(method: string, path: string, body?: Json): Promise<Json> {
    const { base } = this.target
    const { headers, agent: _, ...tls } = await this.target.options()
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const options: RequestOptions = {
      ...tls,
      method,
      hostname: base.hostname.replace(/^\[|\]$/g, ''),
      port: base.port,
      path: base.pathname.replace(/\/$/, '') + path,
      agent: this.#agent,
      headers: { accept: 'application/json', ...(body === undefined ? {} : { 'content-type': type }), ...headers },
      timeout: 60_000,
    }
    const { status, text } = await send(options, base.protocol === 'https:', body === undefined ? undefined : JSON.stringify(body))
    if (status < 200 || status > 299) throw new ApiFailure(status, `${method} ${path}`, text)
    return text.startsWith('{') ? JSON.parse(text) : text
  }

  get(path: string): Promise<Json> {
    return this.request('GET', path)
  }
  create(resource: string, object: Json): Promise<Json> {
    return this.request('POST', collection(resource, object.metadata.namespace), object)
  }
  /** Merge patch. */
  patch(resource: string, namespace: string, name: string, change: Json, part = ''): Promise<Json> {
    return this.request('PATCH', `${collection(resource, namespace)}/${name}${part}`, change)
  }
  async delete(resource: string, namespace: string, name: string): Promise<void> {
    await this.request('DELETE', `${collection(resource, namespace)}/${name}`)
  }
}

function send(options: RequestOptions, secure: boolean, body: string | undefined): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const request = (secure ? https : http).request(options, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text += chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
      response.on('error', reject)
    })
    request.on('timeout', () => request.destroy(new Error('no answer in time')))
    request.on('error', reject)
    request.end(body)
  })
}
