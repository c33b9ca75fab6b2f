/** Watched data in the control thread: each source runs once, whoever asks for it, and every serving thread has a copy that follows it. */
import type { Source } from '../plugins/contract.js'
import type { ToServing } from './protocol.js'

type SourceMessage = Extract<ToServing, { kind: 'source' }>

/** One thread's copy of one source. */
interface Subscriber {
  readonly post: (message: SourceMessage) => void
  number: number
}

interface Running {
  readonly source: Source
  readonly users: Set<number>
  readonly subscribers: Map<number, Subscriber>
  started: Promise<void>
}

export class Sources {
  readonly #running = new Map<string, Running>()
  /** Subscriptions that came before their source: thread number and how to reach it. */
  readonly #early = new Map<string, Map<number, Subscriber['post']>>()
  readonly #report: (error: Error) => void

  constructor(report: (error: Error) => void) {
    this.#report = report
  }

  /** The generation uses `source`, or the one that runs already under its key. */
  use(generation: number, source: Source): void {
    const known = this.#running.get(source.key)
    if (known !== undefined) {
      known.users.add(generation)
      return
    }
    const running: Running = { source, users: new Set([generation]), subscribers: new Map(), started: Promise.resolve() }
    this.#running.set(source.key, running)
    for (const [thread, post] of this.#early.get(source.key) ?? []) this.#attach(running, thread, post)
    this.#early.delete(source.key)
  }

  /** Starts those that the generation brought. Rejects with what the first failing one throws. */
  async start(generation: number): Promise<void> {
    const fresh = [...this.#running.values()].filter((r) => r.users.size === 1 && r.users.has(generation))
    for (const running of fresh) {
      running.started = Promise.resolve(running.source.start((part) => this.#emit(running, part)))
      await running.started
    }
  }

  /** The generation is over, or never came to be: what nobody else uses stops. */
  async release(generation: number): Promise<void> {
    for (const [key, running] of this.#running) {
      if (!running.users.delete(generation) || running.users.size > 0) continue
      this.#running.delete(key)
      try {
        await running.source.stop()
      } catch (error) {
        this.#report(error as Error)
      }
    }
  }

  remarks(): string[] {
    return [...this.#running.values()].flatMap(({ source }) => source.remark?.() ?? [])
  }

  subscribe(key: string, thread: number, post: Subscriber['post']): void {
    const running = this.#running.get(key)
    if (running !== undefined) {
      this.#attach(running, thread, post)
      return
    }
    const early = this.#early.get(key) ?? new Map<number, Subscriber['post']>()
    this.#early.set(key, early.set(thread, post))
  }

  unsubscribe(key: string, thread: number): void {
    this.#running.get(key)?.subscribers.delete(thread)
    this.#early.get(key)?.delete(thread)
  }

  /** The thread has ended. */
  drop(thread: number): void {
    for (const { subscribers } of this.#running.values()) subscribers.delete(thread)
    for (const early of this.#early.values()) early.delete(thread)
  }

  /**
   * A new subscription gets the whole state, one part a turn, so that neither end is blocked by it; a part is made when it is sent, and
   * deltas go out between parts as they come. Either is what is true at that moment, so what was sent last holds, and nothing is queued:
   * whole lists of records waiting here would be most of the memory of a start.
   */
  #attach(running: Running, thread: number, post: Subscriber['post']): void {
    const { key } = running.source
    const snapshot = running.source.snapshot()[Symbol.iterator]()
    const subscriber: Subscriber = { post, number: 0 }
    running.subscribers.set(thread, subscriber)
    const step = (): void => {
      // The thread has ended, or subscribed anew.
      if (running.subscribers.get(thread) !== subscriber) return
      const next = snapshot.next()
      if (next.done === true) {
        send(key, subscriber, 'swap', [])
        return
      }
      send(key, subscriber, 'apply', next.value)
      setImmediate(step)
    }
    send(key, subscriber, 'begin', [])
    step()
  }

  #emit(running: Running, part: readonly unknown[]): void {
    for (const subscriber of running.subscribers.values()) send(running.source.key, subscriber, 'apply', part)
  }
}

function send(key: string, subscriber: Subscriber, op: SourceMessage['op'], part: readonly unknown[]): void {
  subscriber.post({ kind: 'source', key, number: subscriber.number++, op, part })
}
