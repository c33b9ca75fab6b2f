/**
 * Keeps one resource of the API server current: lists it, follows it by watches, lists again when the server lost the thread. It never
 * gives up and never turns without a pause. What it holds stays valid all the while: a list is compared with what is there, object by
 * object (mark), and only at its end what was not listed goes (sweep).
 */
import type { Clock, Counter, Logger } from '../../../src/plugins/contract.js'
import { Backoff, type BackoffLimits, pause } from './backoff.js'
import type { ApiClient } from './client.js'
import { CutError, ListCutter } from './cut.js'
import type { Resource } from './resources.js'
import { ApiError, isGone, refusesStreaming } from './status.js'
import { type EventType, type RawObject, Watch, type WatchEnd, type WatchHandler } from './watch.js'
import { guard } from './watchdog.js'

/** Takes the objects of one resource. */
export interface ObjectSink {
  /** A list begins; `listed` for each object; `endList`: what was not listed since `beginList` is gone. A list may begin again before it ended. */
  beginList(): void
  listed(object: RawObject): void
  endList(): void
  changed(object: RawObject): void
  removed(object: RawObject): void
  /** Hands on what changed. Called in the turn in which the octets were read. */
  flush(): void
}

/** All times in milliseconds. */
export interface ReflectorTimes {
  readonly backoff: BackoffLimits
  /** A watch is asked to end between this and twice this time, so that connections spread over servers again. */
  readonly watch: number
  /** A watch that brought nothing for so long gets another one beside it. */
  readonly silence: number
  /** How long the older of two watches may lag behind the newer one. */
  readonly grace: number
}

/** The longest wait is what a server that comes back waits for us; four requests in that time are nothing to it. */
export const REFLECTOR_TIMES: ReflectorTimes = {
  backoff: { first: 200, longest: 4000 },
  watch: 300_000,
  silence: 40_000,
  grace: 3000,
}

/** Objects in one page of a list. */
const PAGE = 500
/** A watch that lived so long was no failure. */
const LONG_ENOUGH = 5000
/** The shortest pause between two watches, ms. */
const SHORTEST_PAUSE = 50
/** Watches that fail in a row at the same version before the resource is listed anew. */
const TRIES_PER_VERSION = 3
/** The same complaint is logged once in so many ms. */
const LOG_AGAIN = 30_000

export interface ReflectorOptions {
  readonly resource: Resource
  readonly client: ApiClient
  readonly sink: ObjectSink
  readonly log: Logger
  readonly times: ReflectorTimes
  /** Counts watches opened in place of another, by reason. */
  reopened(reason: 'closed' | 'failed' | 'silent' | 'stalled'): Counter
  /** After every whole list. */
  onListed(): void
}

export class Reflector {
  readonly #o: ReflectorOptions
  readonly #clock: Clock
  readonly #backoff: Backoff
  readonly #abort = new AbortController()
  /** The newest resourceVersion seen; "" before the first list. */
  #version = ''
  #stopped: Promise<void> | undefined
  #complaint = ''
  #complainedAt = 0

  constructor(options: ReflectorOptions) {
    this.#o = options
    this.#clock = options.client.clock
    this.#backoff = new Backoff(options.times.backoff)
  }

  start(): void {
    this.#stopped = this.#run()
  }

  async stop(): Promise<void> {
    this.#abort.abort()
    await this.#stopped
  }

  async #run(): Promise<void> {
    while (!this.#abort.signal.aborted) {
      let asked = 0
      try {
        const watch = await this.#fill()
        this.#o.onListed()
        await this.#follow(watch)
      } catch (error) {
        this.#complain(`failed to list ${this.#o.resource.typeName}: `, error)
        asked = retryAfter(error)
      }
      await this.#pause(Math.max(asked, this.#backoff.next()))
    }
  }

  /** Lists the resource. Resolves with the watch that goes on after a streaming list; undefined after pages. */
  async #fill(): Promise<Watch | undefined> {
    try {
      return await this.#streamList()
    } catch (error) {
      if (this.#abort.signal.aborted || !refusesStreaming(error)) throw error
      this.#o.log.debug(`no streaming list of ${this.#o.resource.name}: ${(error as Error).message}`)
    }
    await this.#pagedList()
    return undefined
  }

  /** A watch that begins with all objects; a bookmark with an annotation of its own ends the list. */
  async #streamList(): Promise<Watch> {
    const list = new StreamingList(this.#o.sink, this.#changes, (version) => (this.#version = version))
    const query = { resourceVersionMatch: 'NotOlderThan', sendInitialEvents: 'true' }
    this.#o.sink.beginList()
    const watch = this.#watch(this.#watchPath(query), list)
    const patience = this.#patience(watch, list)
    const end = await Promise.race([watch.ended.then((error) => ({ error })), list.whole])
    patience.cancel()
    if (end === undefined) return watch
    watch.close()
    throw end.error ?? new ApiError('the streaming list ended before its last object', 0)
  }

  /** Gives up a streaming list that brings no more objects: a server or proxy that swallowed the question for it sends changes only. */
  #patience(watch: Watch, list: StreamingList): { cancel(): void } {
    let seen = -1
    let timer = this.#clock.timer(0, () => undefined)
    const check = () => {
      if (list.objects === seen && watch.openedAt > 0) {
        list.refuse(new ApiError('the streaming list came to a halt', 422))
        return
      }
      seen = list.objects
      timer = this.#clock.timer(this.#o.times.silence / 2, check)
    }
    timer = this.#clock.timer(this.#o.times.silence / 2, check)
    return { cancel: () => timer.cancel() }
  }

  async #pagedList(): Promise<void> {
    const { sink, resource } = this.#o
    let restarts = 0
    let next: string | undefined = ''
    let version = ''
    sink.beginList()
    while (next !== undefined) {
      const page: Record<string, string> = { ...resource.query }
      // A server that forgets its pages faster than they are read gets one question for all of them.
      if (restarts < 3) page.limit = String(PAGE)
      if (next !== '') page.continue = next
      try {
        const { metadata } = await this.#page(page)
        // Of the first page: what changes while the others are read comes again by the watch.
        version ||= String(metadata?.resourceVersion)
        next = typeof metadata?.continue === 'string' && metadata.continue !== '' ? metadata.continue : undefined
      } catch (error) {
        if (!isGone(error) || next === '' || restarts++ > 3) throw error
        next = ''
        version = ''
        sink.beginList()
      }
    }
    sink.endList()
    sink.flush()
    this.#version = version
  }

  /** Reads one page; its items go to the sink as they come. */
  async #page(query: Record<string, string>): Promise<RawObject> {
    const { sink, resource, client } = this.#o
    const cutter = new ListCutter((text) => sink.listed(parseItem(text)))
    const onChunk = (chunk: Buffer) => {
      cutter.write(chunk)
      sink.flush()
    }
    await client.list(`${resource.path}?${new URLSearchParams(query)}`, onChunk, this.#abort.signal)
    const frame = JSON.parse(cutter.end()) as RawObject
    if (typeof frame.metadata?.resourceVersion !== 'string' || frame.metadata.resourceVersion === '')
      throw new CutError('a list without resourceVersion')
    return frame
  }

  /** Watches from the newest version on, for as long as the server can. Returns when the resource has to be listed again. */
  async #follow(first: Watch | undefined): Promise<void> {
    const open = () => this.#watch(this.#watchPath({ resourceVersion: this.#version }), this.#changes)
    let watch = first ?? open()
    let failures = 0
    while (!this.#abort.signal.aborted) {
      const before = this.#version
      const { end, successor, reason } = await guard(watch, open, this.#clock, this.#o.times)
      if (this.#abort.signal.aborted) {
        watch.close()
        successor?.close()
        return
      }
      if (this.#lived(watch)) this.#backoff.reset()
      if (successor === undefined) {
        if (isGone(end)) return
        failures = this.#version === before && end !== undefined ? failures + 1 : 0
        if (needsList(end, failures)) throw end
        await this.#rest(watch, end)
      }
      this.#o.reopened(reason).inc()
      watch = successor ?? open()
    }
    watch.close()
  }

  /** The pause after a watch ended. */
  async #rest(watch: Watch, end: WatchEnd): Promise<void> {
    if (end !== undefined) this.#complain('', end)
    await this.#pause(Math.max(retryAfter(end), this.#lived(watch) && end === undefined ? SHORTEST_PAUSE : this.#backoff.next()))
  }

  /** True for a watch that was of use, so that the next one may be opened soon. */
  #lived(watch: Watch): boolean {
    return watch.events > 0 || (watch.openedAt > 0 && this.#clock.monotonic() - watch.openedAt >= LONG_ENOUGH)
  }

  readonly #changes: WatchHandler = {
    event: (watch, type, object) => this.#event(watch, type, object),
    turn: () => this.#o.sink.flush(),
  }

  #event(watch: Watch, type: EventType, object: RawObject): void {
    const version = object.metadata?.resourceVersion
    if (typeof version === 'string') {
      // Two watches at once: what the other one brought must not come back as news.
      if (watch.overlaps && Number(version) <= Number(this.#version)) return
      this.#version = version
    }
    if (type === 'DELETED') this.#o.sink.removed(object)
    else if (type !== 'BOOKMARK') this.#o.sink.changed(object)
  }

  #watch(path: string, handler: WatchHandler): Watch {
    const watch = new Watch(this.#o.client, path, handler)
    const close = () => watch.close()
    this.#abort.signal.addEventListener('abort', close)
    void watch.ended.then(() => this.#abort.signal.removeEventListener('abort', close))
    return watch
  }

  #watchPath(query: Record<string, string>): string {
    const seconds = Math.ceil((this.#o.times.watch * (1 + Math.random())) / 1000)
    const whole = { allowWatchBookmarks: 'true', ...this.#o.resource.query, ...query, timeoutSeconds: String(seconds), watch: 'true' }
    return `${this.#o.resource.path}?${new URLSearchParams(whole)}`
  }

  #pause(ms: number): Promise<void> {
    return pause(this.#clock, ms, this.#abort.signal)
  }

  #complain(prefix: string, error: unknown): void {
    if (this.#abort.signal.aborted) return
    const line = `Failed to watch: ${prefix}${error instanceof Error ? error.message : String(error)}`
    const now = this.#clock.monotonic()
    if (line === this.#complaint && now - this.#complainedAt < LOG_AGAIN) return
    this.#complaint = line
    this.#complainedAt = now
    this.#o.log.error(line)
  }
}

/** Routes the events of a watch that begins with a list. */
class StreamingList implements WatchHandler {
  /** Resolves with undefined at the end of the list, or with an error where it was refused. */
  readonly whole: Promise<{ error: Error } | undefined>
  objects = 0
  #done = false
  #settle: (value: { error: Error } | undefined) => void = () => undefined
  readonly #sink: ObjectSink
  readonly #after: WatchHandler
  readonly #onWhole: (version: string) => void

  /** `after` gets what follows the list; `onWhole` its version, in the turn in which it ended. */
  constructor(sink: ObjectSink, after: WatchHandler, onWhole: (version: string) => void) {
    this.#sink = sink
    this.#after = after
    this.#onWhole = onWhole
    this.whole = new Promise((resolve) => (this.#settle = resolve))
  }

  refuse(error: Error): void {
    this.#settle({ error })
  }

  event(watch: Watch, type: EventType, object: RawObject): void {
    if (this.#done) this.#after.event(watch, type, object)
    else if (type === 'BOOKMARK') this.#bookmark(watch, object)
    else if (type === 'DELETED') this.#sink.removed(object)
    else {
      this.objects++
      this.#sink.listed(object)
    }
  }

  turn(): void {
    this.#sink.flush()
  }

  #bookmark(watch: Watch, { metadata }: RawObject): void {
    if (metadata?.annotations?.['k8s.io/initial-events-end'] !== 'true') return
    if (typeof metadata.resourceVersion !== 'string') throw new CutError('a bookmark without resourceVersion')
    this.#done = true
    // The list itself does not count as a sign that watching works.
    watch.events = 0
    this.#sink.endList()
    this.#onWhole(metadata.resourceVersion)
    this.#settle(undefined)
  }
}

const retryAfter = (error: unknown): number => (error instanceof ApiError ? error.retryAfter : 0)

/** True where another watch at the same version will not do. */
function needsList(end: WatchEnd, failures: number): end is Error {
  if (!(end instanceof ApiError)) return end !== undefined && failures >= TRIES_PER_VERSION
  const { status } = end
  if (status === 0 || status === 401 || status === 403 || status === 429 || status === 502 || status === 503) return false
  return (status >= 400 && status < 500) || failures >= TRIES_PER_VERSION
}

function parseItem(text: string): RawObject {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new CutError(`unreadable object in a list: ${JSON.stringify(text.slice(0, 80))}`, { cause })
  }
}
