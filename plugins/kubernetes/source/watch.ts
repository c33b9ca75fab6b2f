/** One watch request: lines in, events out, in the turn in which they were read. */
import type { IncomingMessage } from 'node:http'
import { type ApiClient, pump } from './client.js'
import { CutError, LineCutter } from './cut.js'
import { statusError } from './status.js'

/** An object as the API sends it: nothing in it is trusted. */
export interface RawObject {
  readonly metadata?: {
    readonly name?: unknown
    readonly namespace?: unknown
    readonly resourceVersion?: unknown
    readonly annotations?: Readonly<Record<string, unknown>> | null
    readonly [member: string]: unknown
  } | null
  readonly [member: string]: unknown
}

export type EventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'

export interface WatchHandler {
  /** May throw: the watch ends with that error. */
  event(watch: Watch, type: EventType, object: RawObject): void
  /** After the last event of what was read at once. */
  turn(): void
}

/** How a watch ended: undefined where the server (or we) closed it in order. */
export type WatchEnd = Error | undefined

export class Watch {
  /** When the answer began and when octets last came, by the monotonic clock; `openedAt` is 0 before. */
  openedAt = 0
  heardAt: number
  /** Events and bookmarks received. */
  events = 0
  /** When the first of them came. */
  firstEventAt = 0
  /** Was open beside another one: may bring what that one brought already. */
  overlaps = false
  readonly ended: Promise<WatchEnd>
  readonly #abort = new AbortController()
  readonly #client: ApiClient
  readonly #handler: WatchHandler

  constructor(client: ApiClient, path: string, handler: WatchHandler) {
    this.#client = client
    this.#handler = handler
    this.heardAt = client.clock.monotonic()
    this.ended = this.#run(path)
  }

  close(): void {
    this.#abort.abort()
  }

  async #run(path: string): Promise<WatchEnd> {
    try {
      const response = await this.#client.open(path, 'watch', this.#abort.signal)
      this.openedAt = this.heardAt = this.#client.clock.monotonic()
      await this.#read(response)
      return undefined
    } catch (error) {
      if (this.#abort.signal.aborted) return undefined
      return error instanceof Error ? error : new Error(String(error))
    }
  }

  #read(response: IncomingMessage): Promise<void> {
    const cutter = new LineCutter((line) => this.#line(line))
    const onChunk = (chunk: Buffer) => {
      this.heardAt = this.#client.clock.monotonic()
      try {
        cutter.write(chunk)
      } finally {
        this.#handler.turn()
      }
    }
    return pump(response, onChunk)
  }

  #line(line: string): void {
    // Closed by a handler in the middle of a chunk: what follows is no longer wanted.
    if (this.#abort.signal.aborted) return
    const { type, object } = parseEvent(line)
    if (type === 'ERROR') throw statusError(200, object)
    if (this.events++ === 0) this.firstEventAt = this.heardAt
    this.#handler.event(this, type, object)
  }
}

function parseEvent(line: string): { type: EventType | 'ERROR'; object: RawObject } {
  let event: { type?: unknown; object?: unknown } | null
  try {
    event = JSON.parse(line)
  } catch (cause) {
    throw new CutError(`unreadable event in a watch: ${JSON.stringify(line.slice(0, 80))}`, { cause })
  }
  const type = event?.type
  const object = event?.object
  const known = type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED' || type === 'BOOKMARK' || type === 'ERROR'
  if (!known || typeof object !== 'object' || object === null) {
    throw new CutError(`unknown event in a watch: ${JSON.stringify(line.slice(0, 80))}`)
  }
  return { type, object: object as RawObject }
}
