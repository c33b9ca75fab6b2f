/**
 * How to reach an API server: address, TLS and credentials. A new way of access is a function that returns an ApiAccess (see
 * access-open.ts); nothing else of the source knows about it.
 */
import type { RequestOptions } from 'node:https'

export interface ApiAccess {
  /** Scheme, host and port, with a path in front of the API's own if there is one. */
  readonly base: URL
  /**
   * Options of one request beyond its address: headers, CA, client certificate, an agent where a proxy leads to the server. Asked for
   * before every request, so that what changes on disk is taken up. May throw or reject.
   */
  options(): RequestOptions | Promise<RequestOptions>
  /** The server answered 401: what was remembered of the credentials is void. */
  refused(): void
  /** The CA of the server as it is trusted now, "" for none of its own: part of the identity of a snapshot. Works without the server. */
  authority(): string
}

export class AccessError extends Error {
  readonly code = 'KUBE_ACCESS'
}

/** A URL may lack its scheme, as with CoreDNS. */
export function baseUrl(text: string, scheme: 'http' | 'https'): URL {
  const whole = /^[a-z]+:\/\//i.test(text) ? text : `${scheme}://${text}`
  const url = URL.canParse(whole) ? new URL(whole) : undefined
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.hostname === '') {
    throw new AccessError(`invalid endpoint ${JSON.stringify(text)}`)
  }
  return url
}
