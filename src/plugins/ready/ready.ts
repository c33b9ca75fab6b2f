/** The /ready endpoint. */
import type { ServerResponse } from 'node:http'
import { type ControlContext, type ControlPart, quote } from '../contract.js'

export class Ready implements ControlPart {
  readonly #ctx: ControlContext
  readonly #continuously: boolean
  /** Plugins not seen ready by any request so far; undefined before the first. It only ever shrinks. */
  #pending: ReadonlySet<string> | undefined
  #down = false

  constructor(address: string, continuously: boolean, ctx: ControlContext) {
    this.#ctx = ctx
    this.#continuously = continuously
    ctx.http(address, '/ready', (_request, response) => this.#answer(response))
  }

  onFinalShutdown(): void {
    this.#down = true
  }

  async #answer(response: ServerResponse): Promise<void> {
    if (this.#down) return send(response, 503, 'Shutting down')
    const missing = this.#missing(await this.#ctx.process.notReady())
    const remarks = this.#ctx.process.remarks().map((line) => `\n${line}`)
    if (missing.length === 0) return send(response, 200, `OK${remarks.join('')}`)
    const names = missing.sort().join(',')
    this.#ctx.log.info(`Plugins not ready: ${quote(names)}`)
    send(response, 503, `${names}${remarks.join('')}`)
  }

  /** Those of `now` that still count: what was ready at an earlier request is not asked again, unless all are monitored continuously. */
  #missing(now: readonly string[]): string[] {
    // Some thread serves nothing yet: what it says of its plugins is not the last word, so nothing is concluded from it.
    if (now.includes('server')) return now.length === 1 ? [...now] : now.filter((name) => name !== 'server')
    const names = new Set(now)
    if (!this.#continuously && this.#pending !== undefined) for (const name of names) if (!this.#pending.has(name)) names.delete(name)
    this.#pending = names
    return [...names]
  }
}

function send(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'content-length': Buffer.byteLength(body) })
  response.end(body)
}
