/** The serving threads as control sees them: spoken to together, watched, and replaced when they die or hang. */
import type { Corefile } from '../corefile/tree.js'
import type { Logger } from '../plugins/contract.js'
import type { Channel, FromServing, ToServing } from './protocol.js'

/** One running serving half, in a Worker or in this thread. */
export interface ServingHandle {
  readonly channel: Channel<ToServing, FromServing>
  /** Called once when it has ended, for whatever reason. */
  onExit(listener: (error: Error | undefined) => void): void
  terminate(): Promise<void>
}
export type Spawn = (index: number, count: number) => ServingHandle

/** Milliseconds. A thread that is silent for `silent` is unhealthy, for `hung` replaced, unless it is preparing a configuration. */
export const WATCH = {
  tick: 500,
  silent: 2_000,
  hung: 5_000,
  preparing: 60_000,
  firstBackoff: 100,
  longestBackoff: 10_000,
  calm: 60_000,
} as const

/** What threads say that is not an answer to a request of ours. */
export interface ThreadEvents {
  message(thread: ServingThread, message: FromServing): void
  /** Its counters have to be kept, its subscriptions dropped. */
  ended(thread: ServingThread): void
  /** Every thread has drained this generation. */
  retired(generation: number): void
}

interface Waiter {
  resolve(message: FromServing): void
  reject(error: Error): void
}

export class ServingThread {
  /** Never used again by another thread. */
  readonly number: number
  readonly index: number
  readonly handle: ServingHandle
  readonly started: number
  lastSign: number
  /** Those who wait for the next heartbeat. */
  readonly curious: ((notReady: readonly string[]) => void)[] = []
  preparing = false
  ended = false
  readonly waiters = new Map<string, Waiter>()

  constructor(number: number, index: number, handle: ServingHandle, now: number) {
    this.number = number
    this.index = index
    this.handle = handle
    this.started = now
    this.lastSign = now
  }

  /** The answer of that kind to a request that is being sent; rejects if the thread ends before it comes. */
  answer(key: string): Promise<FromServing> {
    if (this.ended) return Promise.reject(new Error('a serving thread ended'))
    return new Promise((resolve, reject) => this.waiters.set(key, { resolve, reject }))
  }
}

interface Current {
  readonly generation: number
  readonly corefile: Corefile
}

export class ServingThreads {
  readonly #count: number
  readonly #spawn: Spawn
  readonly #events: ThreadEvents
  readonly #log: Logger
  readonly #threads: ServingThread[] = []
  readonly #retiring = new Map<number, Set<number>>()
  #current: Current | undefined
  #numbers = 0
  #backoff: number = WATCH.firstBackoff
  #stopping = false
  #watch: NodeJS.Timeout | undefined
  #lastTick = 0

  constructor(count: number, spawn: Spawn, events: ThreadEvents, log: Logger) {
    this.#count = count
    this.#spawn = spawn
    this.#events = events
    this.#log = log
  }

  /** Resolves when all threads take messages. */
  async start(): Promise<void> {
    await Promise.all(Array.from({ length: this.#count }, (_, index) => this.#launch(index)))
    this.#lastTick = performance.now()
    this.#watch = setInterval(() => this.#tick(), WATCH.tick)
    this.#watch.unref()
  }

  /** All threads set the configuration up beside what they serve. Rejects with the first one's failure. */
  async prepare(generation: number, corefile: Corefile): Promise<{ listening: readonly string[]; warnings: readonly string[] }> {
    const answers = await Promise.all(this.#threads.map((thread) => prepare(thread, generation, corefile)))
    return answers[0] ?? { listening: [], warnings: [] }
  }

  /** All threads change over; the promise is for their word on it. */
  async commit(generation: number, corefile: Corefile): Promise<void> {
    const before = this.#current?.generation
    this.#current = { generation, corefile }
    if (before !== undefined) this.#retiring.set(before, new Set(this.#threads.map(({ number }) => number)))
    await Promise.all(this.#threads.filter(({ ended }) => !ended).map((thread) => commit(thread, generation).catch(() => undefined)))
  }

  abort(generation: number): void {
    for (const thread of this.#threads) thread.handle.channel.post({ kind: 'abort', generation })
  }

  /** Lets what is in flight finish, then ends the threads; those that take much longer than `graceMs` are cut off. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true
    clearInterval(this.#watch)
    await Promise.all(
      this.#threads.map(async (thread) => {
        const stopped = thread.answer('stopped').catch(() => undefined)
        thread.handle.channel.post({ kind: 'stop', graceMs })
        let cut: NodeJS.Timeout | undefined
        await Promise.race([stopped, new Promise((resolve) => (cut = setTimeout(resolve, graceMs + 2_000)))])
        clearTimeout(cut)
        await thread.handle.terminate()
      }),
    )
  }

  /** Plugins that are not ready at this moment in some thread; a thread that serves nothing yet, or doesn't answer in time, is one of them, as "server". */
  async notReady(): Promise<readonly string[]> {
    if (this.#threads.length === 0) return ['server']
    const answers = await Promise.all(this.#threads.map((thread) => ask(thread)))
    return [...new Set(answers.flat())]
  }

  healthy(): boolean {
    const now = performance.now()
    return this.#threads.every(({ ended, lastSign }) => !ended && now - lastSign < WATCH.silent)
  }

  async #launch(index: number): Promise<ServingThread> {
    const thread = new ServingThread(this.#numbers++, index, this.#spawn(index, this.#count), performance.now())
    this.#threads[index] = thread
    const online = thread.answer('online')
    thread.handle.onExit((error) => this.#exited(thread, error))
    thread.handle.channel.onMessage((message) => this.#message(thread, message))
    await online
    return thread
  }

  #message(thread: ServingThread, message: FromServing): void {
    thread.lastSign = performance.now()
    const waiter = (key: string): Waiter | undefined => {
      const found = thread.waiters.get(key)
      thread.waiters.delete(key)
      return found
    }
    switch (message.kind) {
      case 'online':
      case 'stopped':
        waiter(message.kind)?.resolve(message)
        break
      case 'prepared':
      case 'failed':
        waiter(`prepared:${message.generation}`)?.resolve(message)
        break
      case 'committed':
        waiter(`committed:${message.generation}`)?.resolve(message)
        break
      case 'retired':
        this.#drained(message.generation, thread.number)
        break
      case 'heartbeat':
        for (const resolve of thread.curious.splice(0)) resolve(message.notReady)
        break
      default:
        this.#events.message(thread, message)
    }
  }

  #drained(generation: number, thread: number): void {
    const left = this.#retiring.get(generation)
    if (left === undefined) return
    left.delete(thread)
    if (left.size > 0) return
    this.#retiring.delete(generation)
    this.#events.retired(generation)
  }

  #exited(thread: ServingThread, error: Error | undefined): void {
    if (thread.ended) return
    thread.ended = true
    const reason = error?.message ?? 'it ended without a word'
    for (const waiter of thread.waiters.values()) waiter.reject(new Error(`serving thread ended: ${reason}`))
    thread.waiters.clear()
    this.#events.ended(thread)
    for (const generation of [...this.#retiring.keys()]) this.#drained(generation, thread.number)
    if (this.#stopping || this.#current === undefined) return
    if (performance.now() - thread.started > WATCH.calm) this.#backoff = WATCH.firstBackoff
    this.#log.error(`Serving thread ${thread.index} ended: ${reason}. Starting another in ${this.#backoff} ms`)
    this.#replaceLater(thread.index)
  }

  #replaceLater(index: number): void {
    setTimeout(() => void this.#replace(index), this.#backoff).unref()
    this.#backoff = Math.min(this.#backoff * 2, WATCH.longestBackoff)
  }

  /** A new thread gets the configuration that the others serve. */
  async #replace(index: number): Promise<void> {
    if (this.#stopping) return
    let thread: ServingThread | undefined
    try {
      thread = await this.#launch(index)
      for (;;) {
        const current = this.#current
        if (current === undefined) return
        await prepare(thread, current.generation, current.corefile)
        // A reload may have passed meanwhile: what was prepared is then not what is served.
        if (this.#current !== current) continue
        await commit(thread, current.generation)
        break
      }
      this.#log.info(`Serving thread ${index} is back`)
    } catch (error) {
      // A thread that ended says so itself, and is replaced by that.
      if (thread === undefined || thread.ended) return
      this.#log.error(`Serving thread ${index} could not take over: ${(error as Error).message}`)
      await thread.handle.terminate()
    }
  }

  #tick(): void {
    const now = performance.now()
    // This thread was held up itself (a stopped process, a starved machine): the silence of the others proves nothing.
    const late = now - this.#lastTick > 2 * WATCH.tick
    this.#lastTick = now
    for (const thread of this.#threads) {
      if (thread.ended) continue
      if (late) thread.lastSign = now
      const patience = thread.preparing ? WATCH.preparing : WATCH.hung
      if (now - thread.lastSign < patience) continue
      this.#log.error(`Serving thread ${thread.index} has given no sign of life for ${patience / 1000} s`)
      thread.lastSign = now
      void thread.handle.terminate()
    }
  }
}

function ask(thread: ServingThread): Promise<readonly string[]> {
  if (thread.ended) return Promise.resolve(['server'])
  return new Promise((resolve) => {
    const late = setTimeout(() => resolve(['server']), WATCH.silent)
    thread.curious.push((notReady) => {
      clearTimeout(late)
      resolve(notReady)
    })
    thread.handle.channel.post({ kind: 'beat' })
  })
}

async function prepare(thread: ServingThread, generation: number, corefile: Corefile): Promise<Extract<FromServing, { kind: 'prepared' }>> {
  thread.preparing = true
  try {
    const answer = thread.answer(`prepared:${generation}`)
    thread.handle.channel.post({ kind: 'prepare', generation, corefile })
    const message = await answer
    if (message.kind === 'prepared') return message
    if (message.kind !== 'failed') throw new Error(`unexpected answer ${message.kind}`)
    const error = new Error(message.error.message)
    if (message.error.stack !== undefined) error.stack = message.error.stack
    throw error
  } finally {
    thread.preparing = false
  }
}

async function commit(thread: ServingThread, generation: number): Promise<void> {
  const answer = thread.answer(`committed:${generation}`)
  thread.handle.channel.post({ kind: 'commit', generation })
  await answer
}
