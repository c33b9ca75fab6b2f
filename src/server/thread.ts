/** One serving thread as control sees it, and what is asked of it. */
import type { Corefile } from '../corefile/tree.js'
import type { Claim } from './listeners/ports.js'
import type { Channel, Common, FromServing, Ports, ToServing } from './protocol.js'

/** One running serving half, in a Worker or in this thread. */
export interface ServingHandle {
  readonly channel: Channel<ToServing, FromServing>
  /** Called once when it has ended, for whatever reason. */
  onExit(listener: (error: Error | undefined) => void): void
  terminate(): Promise<void>
}
export type Spawn = (index: number, count: number, common: Common) => ServingHandle

export interface Waiter {
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
  /** As the kernel numbers it. */
  task: number | undefined
  /** What it had waited for a processor when its silence was noticed, in milliseconds. */
  waited: number | undefined
  /** Those who wait for the next heartbeat. */
  readonly curious: ((notReady: readonly string[]) => void)[] = []
  /** Is being started, or prepares a configuration. */
  preparing = true
  /** Has committed a configuration. */
  serving = false
  /** Is not needed any more, and is not to be replaced. */
  leaving = false
  ended = false
  /** While it takes over what the others serve; never rejects. */
  settling: Promise<void> | undefined
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

export interface Preparation {
  readonly generation: number
  readonly corefile: Corefile
  readonly count: number
  readonly claim: Claim
  readonly ports: Ports | undefined
}
export type Prepared = Extract<FromServing, { kind: 'prepared' }>

/** The plugins that are not ready in it; `ms` without an answer is one: "server". */
export function ask(thread: ServingThread, ms: number): Promise<readonly string[]> {
  return new Promise((resolve) => {
    const late = setTimeout(() => resolve(['server']), ms)
    thread.curious.push((notReady) => {
      clearTimeout(late)
      resolve(notReady)
    })
    thread.handle.channel.post({ kind: 'beat' })
  })
}

export async function prepare(thread: ServingThread, preparation: Preparation): Promise<Prepared> {
  thread.preparing = true
  try {
    const answer = thread.answer(`prepared:${preparation.generation}`)
    thread.handle.channel.post({ kind: 'prepare', ...preparation })
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

export async function commit(thread: ServingThread, generation: number): Promise<void> {
  const answer = thread.answer(`committed:${generation}`)
  thread.handle.channel.post({ kind: 'commit', generation })
  await answer
  thread.serving = true
}

/** Resolves to the reason why other threads can't have the addresses of this one; undefined: they can. */
export async function share(thread: ServingThread): Promise<string | undefined> {
  const answer = thread.answer('shared')
  thread.handle.channel.post({ kind: 'share' })
  const message = await answer
  return message.kind === 'shared' ? message.error : `unexpected answer ${message.kind}`
}

/** Lets what is in flight finish, then ends the thread; one that takes much longer than `graceMs` is cut off. */
export async function end(thread: ServingThread, graceMs: number): Promise<void> {
  const stopped = thread.answer('stopped').catch(() => undefined)
  thread.handle.channel.post({ kind: 'stop', graceMs })
  let cut: NodeJS.Timeout | undefined
  await Promise.race([stopped, new Promise((resolve) => (cut = setTimeout(resolve, graceMs + 2_000)))])
  clearTimeout(cut)
  await thread.handle.terminate()
}
