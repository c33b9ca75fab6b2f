/** Watched data in the control thread: each source runs once, whoever asks for it, and every serving thread has a copy that follows it. */
import type { Source } from '../plugins/contract.js'
import type { ToServing } from './protocol.js'

type SourceMessage = Extract<ToServing, { kind: 'source' }>

/** One thread's copy of one source. */
interface Subscriber {
  readonly post: (message: SourceMessage) => void
  number: number
  /** Deltas that wait for the end of the snapshot; undefined: it is out. */
  waiting: (readonly unknown[])[] | undefined
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
   * A new subscription gets the whole state, one part a turn, so that neither end is blocked by it and never more than a part is held for
   * it. What changes meanwhile waits for its end and still comes before the swap: so no thread serves a state that is older than the
   * snapshot's last part.
   */
  #attach(running: Running, thread: number, post: Subscriber['post']): void {
    const snapshot = running.source.snapshot()[Symbol.iterator]()
    const subscriber: Subscriber = { post, number: 0, waiting: [] }
    running.subscribers.set(thread, subscriber)
    const send = (op: SourceMessage['op'], part: readonly unknown[]): void => this.#send(running.source.key, subscriber, op, part)
    const step = (): void => {
      // The thread has ended, or subscribed anew.
      if (running.subscribers.get(thread) !== subscriber) return
      const next = snapshot.next()
      if (next.done !== true) {
        send('apply', next.value)
        setImmediate(step)
        return
      }
      for (const part of subscriber.waiting ?? []) send('apply', part)
      subscriber.waiting = undefined
      send('swap', [])
    }
    send('begin', [])
    step()
  }

  #emit(running: Running, part: readonly unknown[]): void {
    for (const subscriber of running.subscribers.values()) {
      if (subscriber.waiting === undefined) this.#send(running.source.key, subscriber, 'apply', part)
      else subscriber.waiting.push(part)
    }
  }

  #send(key: string, subscriber: Subscriber, op: SourceMessage['op'], part: readonly unknown[]): void {
    subscriber.post({ kind: 'source', key, number: subscriber.number++, op, part })
  }
}
