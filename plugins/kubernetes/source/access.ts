/**
 * How to reach an API server: address, TLS and credentials. A new way of access is a function that returns an ApiAccess; nothing else
 * of the source knows about it.
 */
import type { RequestOptions } from 'node:https'
import type { Access } from '../options.js'

export interface ApiAccess {
  /** Scheme, host and port, with a path in front of the API's own if there is one. */
  readonly base: URL
  /**
   * Options of one request beyond its address: headers, CA, client certificate. Asked for before every request, so that what changes on
   * disk is taken up. May throw or reject.
   */
  options(): RequestOptions | Promise<RequestOptions>
  /** The server answered 401: what was remembered of the credentials is void. */
  refused(): void
}

export class AccessError extends Error {
  readonly code = 'KUBE_ACCESS'
}

/** The access for a source that talks to an API server. Throws AccessError with the peer's wording where it has one. */
export function openAccess(access: Exclude<Access, { kind: 'manifests' }>): ApiAccess {
  if (access.kind === 'endpoint' && access.tls === undefined) return plainAccess(access.url)
  throw new AccessError(`${NEEDS[access.kind]}: known, not built yet`)
}

const NEEDS = { cluster: 'access from inside the cluster', endpoint: 'tls', kubeconfig: 'kubeconfig' } as const

/** `endpoint URL` without `tls`. */
function plainAccess(url: string): ApiAccess {
  return { base: baseUrl(url, 'http'), options: () => ({}), refused: () => undefined }
}

/** A URL may lack its scheme, as with the peer. */
export function baseUrl(text: string, scheme: 'http' | 'https'): URL {
  const url = URL.parse(/^[a-z]+:\/\//i.test(text) ? text : `${scheme}://${text}`)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.hostname === '') {
    throw new AccessError(`invalid endpoint ${JSON.stringify(text)}`)
  }
  return url
}
