/** What an API server says when it refuses: HTTP status, or an ERROR event in a watch. */

export class ApiError extends Error {
  readonly code = 'KUBE_API'
  /** HTTP status or the code of a Status object; 0: the server was not reached or the connection broke. */
  readonly status: number
  /** Milliseconds that the server asked to wait; 0: not said. */
  readonly retryAfter: number

  constructor(message: string, status: number, retryAfter = 0, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ApiError'
    this.status = status
    this.retryAfter = retryAfter
  }
}

/** The longest Retry-After that is obeyed, in milliseconds. */
const LONGEST_RETRY_AFTER = 60_000

/** An error out of a Status object or, where the body is none, out of the HTTP status alone. */
export function statusError(status: number, body: unknown, retryAfter?: string): ApiError {
  const { message, code, details } = (typeof body === 'object' && body !== null ? body : {}) as {
    message?: unknown
    code?: unknown
    details?: { retryAfterSeconds?: unknown } | null
  }
  const number = status !== 200 ? status : typeof code === 'number' ? code : 500
  const seconds = Number(retryAfter ?? details?.retryAfterSeconds ?? 0)
  const wait = Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds * 1000, LONGEST_RETRY_AFTER) : 0
  return new ApiError(typeof message === 'string' && message !== '' ? message : `the server answered with status ${number}`, number, wait)
}

/** The version asked for is no longer there (or the continue token is too old): list again. */
export const isGone = (error: unknown): boolean => error instanceof ApiError && error.status === 410

/** How servers refuse `sendInitialEvents`: they do not know it (400, 422), or their etcd cannot (500 inside the stream). */
export const refusesStreaming = (error: unknown): boolean =>
  error instanceof ApiError && (error.status === 400 || error.status === 422 || error.status === 500)
