/** The serving threads as control sees them: spoken to together, watched, and replaced when they die or hang. */
import { randomBytes } from 'node:crypto'
import type { Corefile } from '../corefile/tree.js'
import type { Logger } from '../plugins/contract.js'
import { clearColumn, newBoard } from './board.js'
import type { Common, FromServing, Ports } from './protocol.js'
import { waited } from './starved.js'
import { ask, commit, end, type Prepared, prepare, ServingThread, type Spawn, share, type Waiter } from './thread.js'

/**
 * Milliseconds. A thread that is silent for `silent` is unhealthy, for `hung` replaced, unless it is being started or prepares a
 * configuration. From `silent` on, time in which it was not let run does not count.
 */
export const WATCH = {
  tick: 500,
  silent: 2_000,
  hung: 5_000,
  preparing: 60_000,
  firstBackoff: 100,
  longestBackoff: 10_000,
  calm: 60_000,
  /** What a thread that is not needed any more gets for its last queries. */
  grace: 5_000,
} as const

/** What threads say that is not an answer to a request of ours. */
export interface ThreadEvents {
  message(thread: ServingThread, message: FromServing): void
  /** Its counters have to be kept, its subscriptions dropped. */
  ended(thread: ServingThread): void
  /** Every thread has drained this generation. */
  retired(generation: number): void
}

interface Current {
  readonly generation: number
  readonly corefile: Corefile
  /** Number of threads. */
  readonly count: number
  readonly ports: Ports
}

interface Next {
  readonly generation: number
  readonly count: number
  /** Those that were asked to prepare it. One that comes to be meanwhile catches up by itself. */
  readonly members: readonly ServingThread[]
  readonly ports: Ports
}

export class ServingThreads {
  readonly #spawn: Spawn
  readonly #events: ThreadEvents
  readonly #log: Logger
  readonly #waited: (task: number | undefined) => number
  /** By index. */
  readonly #threads: ServingThread[] = []
  readonly #common: Common = { board: newBoard(), secret: randomBytes(32) }
  readonly #retiring = new Map<number, Set<number>>()
  #current: Current | undefined
  #next: Next | undefined
  #numbers = 0
  #backoff: number = WATCH.firstBackoff
  #stopping = false
  #watch: NodeJS.Timeout | undefined
  #lastTick = 0

  /** `waitedFor`: milliseconds that a thread has waited for a processor so far. */
  constructor(spawn: Spawn, events: ThreadEvents, log: Logger, waitedFor = waited) {
    this.#waited = waitedFor
    this.#spawn = spawn
    this.#events = events
    this.#log = log
  }

  /** Resolves when the first thread takes messages. How many there will be, the configuration says. */
  async start(): Promise<void> {
    await this.#launch(0, 1)
    this.#lastTick = performance.now()
    this.#watch = setInterval(() => this.#tick(), WATCH.tick)
    this.#watch.unref()
  }

  /**
   * All threads set the configuration up beside what they serve, `wanted` threads if this machine lets them share addresses. The first one
   * takes the addresses, the others come beside it. Rejects with the first one's failure.
   */
  async prepare(
    generation: number,
    corefile: Corefile,
    wanted: number,
  ): Promise<{ listening: readonly string[]; warnings: readonly string[] }> {
    await Promise.all(this.#threads.map(({ settling }) => settling))
    const count = await this.#grow(wanted)
    const [leader, ...others] = this.#alive().slice(0, count)
    if (leader === undefined) throw new Error('no serving thread is up')
    const members = [leader, ...others]
    this.#next = { generation, count, members, ports: [] }
    const first = prepare(leader, { generation, corefile, count, claim: count > 1 ? 'first' : 'alone', ports: [] })
    const answers = await Promise.all([
      first.then((answer) => open(answer, others)),
      ...others.map((thread) => prepare(thread, { generation, corefile, count, claim: 'join', ports: undefined })),
    ])
    const { listening, warnings, ports } = answers[0]
    this.#next = { generation, count, members, ports }
    return { listening, warnings }
  }

  /** All threads change over; the promise is for their word on it. Those that are not needed any more end after that. */
  async commit(generation: number, corefile: Corefile): Promise<void> {
    const next = this.#next
    if (next?.generation !== generation) throw new Error(`generation ${generation} was not prepared`)
    this.#next = undefined
    const before = this.#current?.generation
    this.#current = { generation, corefile, count: next.count, ports: next.ports }
    if (before !== undefined) this.#retiring.set(before, new Set(this.#alive().map(({ number }) => number)))
    await Promise.all(next.members.filter(({ ended }) => !ended).map((thread) => commit(thread, generation).catch(() => undefined)))
    for (const thread of this.#alive().slice(0, next.count))
      if (!next.members.includes(thread) && thread.settling === undefined) void this.#settle(thread)
    void this.#shrink(next.count)
  }

  /** Takes a preparation back, whether it succeeded or not; threads that it brought end. */
  abort(generation: number): void {
    this.#next = undefined
    for (const thread of this.#alive()) thread.handle.channel.post({ kind: 'abort', generation })
    if (this.#current !== undefined) void this.#shrink(this.#current.count)
  }

  /** Lets what is in flight finish, then ends the threads; those that take much longer than `graceMs` are cut off. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true
    clearInterval(this.#watch)
    await Promise.all(this.#threads.map((thread) => end(thread, graceMs)))
  }

  /**
   * Plugins that are not ready at this moment in some thread that serves; one that doesn't answer in time is among them as "server". While
   * others serve, a thread that is being replaced takes no queries, so that it counts only when it is alone.
   */
  async notReady(): Promise<readonly string[]> {
    const alive = this.#alive()
    const serving = alive.filter((thread) => thread.serving)
    const asked = serving.length > 0 ? serving : alive
    if (asked.length === 0) return ['server']
    const answers = await Promise.all(asked.map((thread) => ask(thread, WATCH.silent)))
    return [...new Set(answers.flat())]
  }

  /** Passes on what a plugin in one thread says to the others. */
  tell(speaker: ServingThread, { key, value }: Extract<FromServing, { kind: 'tell' }>): void {
    for (const thread of this.#alive()) if (thread !== speaker) thread.handle.channel.post({ kind: 'told', key, value })
  }

  healthy(): boolean {
    const now = performance.now()
    return this.#threads.every(({ ended, lastSign }) => !ended && now - lastSign < WATCH.silent)
  }

  #alive(): ServingThread[] {
    return this.#threads.filter(({ ended, leaving }) => !ended && !leaving)
  }

  /** Starts what is missing to `wanted`; new threads serve what the others serve. Resolves to the number that there can be. */
  async #grow(wanted: number): Promise<number> {
    if (wanted > 1 && (this.#current?.count ?? 1) === 1) {
      for (const thread of this.#alive()) {
        const reason = await share(thread)
        if (reason === undefined) continue
        this.#log.warning(`serving with one thread, not ${wanted}: ${reason}`)
        return 1
      }
    }
    const missing = Array.from({ length: wanted }, (_, index) => index).filter((index) => index >= this.#threads.length)
    const launched = await Promise.all(missing.map((index) => this.#launch(index, wanted)))
    await Promise.all(launched.map((thread) => this.#catchUp(thread)))
    return wanted
  }

  /** Ends those beyond `count`. What the kernel has queued for their sockets is lost. */
  async #shrink(count: number): Promise<void> {
    const surplus = this.#threads.splice(count)
    for (const thread of surplus) thread.leaving = true
    await Promise.all(
      surplus.map(async (thread) => {
        if (!thread.ended) await end(thread, WATCH.grace)
        this.#exited(thread, undefined)
      }),
    )
    if (surplus.length > 0 && this.#threads.length === 1 && this.#current?.count === 1)
      for (const thread of this.#alive()) thread.handle.channel.post({ kind: 'unshare' })
  }

  async #launch(index: number, count: number): Promise<ServingThread> {
    const thread = new ServingThread(this.#numbers++, index, this.#spawn(index, count, this.#common), performance.now())
    this.#threads[index] = thread
    const online = thread.answer('online')
    thread.handle.onExit((error) => this.#exited(thread, error))
    thread.handle.channel.onMessage((message) => this.#message(thread, message))
    await online
    thread.preparing = false
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
        thread.task = message.task
        waiter(message.kind)?.resolve(message)
        break
      case 'shared':
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
    thread.serving = false
    const reason = error?.message ?? 'it ended without a word'
    for (const waiter of thread.waiters.values()) waiter.reject(new Error(`serving thread ended: ${reason}`))
    thread.waiters.clear()
    const others = this.#threads.some(({ serving }) => serving)
    for (const resolve of thread.curious.splice(0)) resolve(others ? [] : ['server'])
    clearColumn(this.#common.board, thread.index)
    this.#events.ended(thread)
    for (const generation of [...this.#retiring.keys()]) this.#drained(generation, thread.number)
    if (this.#stopping || thread.leaving || !this.#isNeeded(thread.index)) return
    if (performance.now() - thread.started > WATCH.calm) this.#backoff = WATCH.firstBackoff
    this.#log.error(`Serving thread ${thread.index} ended: ${reason}. Starting another in ${this.#backoff} ms`)
    this.#replaceLater(thread.index)
  }

  /** The configuration that serves wants a thread there. */
  #isNeeded(index: number): boolean {
    return this.#current !== undefined && index < this.#current.count
  }

  #replaceLater(index: number): void {
    setTimeout(() => void this.#replace(index), this.#backoff).unref()
    this.#backoff = Math.min(this.#backoff * 2, WATCH.longestBackoff)
  }

  /** A new thread gets the configuration that the others serve. */
  async #replace(index: number): Promise<void> {
    if (this.#stopping || !this.#isNeeded(index)) return
    const before = this.#threads[index]
    try {
      const thread = await this.#launch(index, this.#current?.count ?? 1)
      if (await this.#settle(thread)) this.#log.info(`Serving thread ${index} is back`)
    } catch (error) {
      // One that ended before it was online has said so, and is replaced by that.
      if (this.#threads[index] !== before) return
      this.#log.error(`Serving thread ${index} could not be started: ${(error as Error).message}`)
      this.#replaceLater(index)
    }
  }

  /** Has it take over what is served; resolves to whether it could. */
  async #settle(thread: ServingThread): Promise<boolean> {
    const outcome = this.#catchUp(thread).then(
      () => true,
      async (error: Error) => {
        // A thread that ended says so itself, and is replaced by that.
        if (thread.ended || thread.leaving) return false
        this.#log.error(`Serving thread ${thread.index} could not take over: ${error.message}`)
        await thread.handle.terminate()
        return false
      },
    )
    thread.settling = outcome.then(() => undefined)
    const could = await outcome
    thread.settling = undefined
    return could
  }

  /** A reload may pass meanwhile: until what it has committed is what is served. */
  async #catchUp(thread: ServingThread): Promise<void> {
    let served: Current | undefined
    while (this.#current !== undefined && this.#current !== served) {
      const current = this.#current
      const { generation, corefile, count, ports } = current
      const beside = this.#threads.some((other) => other !== thread && other.serving)
      await prepare(thread, { generation, corefile, count, claim: count === 1 && !beside ? 'alone' : beside ? 'join' : 'first', ports })
      if (this.#current !== current) {
        thread.handle.channel.post({ kind: 'abort', generation })
        continue
      }
      await commit(thread, generation)
      served = current
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
      if (this.#silence(thread, now) < patience) continue
      this.#log.error(`Serving thread ${thread.index} has given no sign of life for ${patience / 1000} s`)
      thread.lastSign = now
      void thread.handle.terminate()
    }
  }

  /** Milliseconds that a thread has been silent though it could have spoken. */
  #silence(thread: ServingThread, now: number): number {
    const silence = now - thread.lastSign
    if (silence < WATCH.silent) {
      thread.waited = undefined
      return silence
    }
    const total = this.#waited(thread.task)
    thread.waited ??= total
    return silence - (total - thread.waited)
  }
}

/** The first thread has the addresses: the others may have them too. */
function open(answer: Prepared, others: readonly ServingThread[]): Prepared {
  for (const { ended, handle } of others)
    if (!ended) handle.channel.post({ kind: 'open', generation: answer.generation, ports: answer.ports })
  return answer
}
