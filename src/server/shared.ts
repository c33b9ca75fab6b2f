/** What outlives a generation: values that plugins share over reloads, and the replicas of sources. Both are counted by generation. */
import type { Logger, Replica } from '../plugins/contract.js'
import type { Channel, FromServing, ToServing } from './protocol.js'

interface Shared {
  readonly value: unknown
  readonly dispose: (value: unknown) => void
  readonly holders: Set<number>
}

export class SharedValues {
  readonly #values = new Map<string, Shared>()
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  get<T>(generation: number, key: string, create: () => T, dispose: (value: T) => void): T {
    let shared = this.#values.get(key)
    if (shared === undefined) {
      shared = { value: create(), dispose: dispose as (value: unknown) => void, holders: new Set() }
      this.#values.set(key, shared)
    }
    shared.holders.add(generation)
    return shared.value as T
  }

  /** The generation has ended: what nobody else holds is disposed of. */
  release(generation: number): void {
    for (const [key, shared] of this.#values) {
      if (!shared.holders.delete(generation) || shared.holders.size > 0) continue
      this.#values.delete(key)
      try {
        shared.dispose(shared.value)
      } catch (error) {
        this.#log.error(`disposing of ${key}: ${error}`)
      }
    }
  }
}

interface Held {
  readonly replica: Replica<unknown>
  readonly holders: Set<number>
  /** Number of the last message that was taken; undefined: waiting for the beginning of a snapshot. */
  last: number | undefined
}

type SourceMessage = Extract<ToServing, { kind: 'source' }>

export class Replicas {
  readonly #held = new Map<string, Held>()
  readonly #channel: Channel<FromServing, ToServing>
  readonly #log: Logger

  constructor(channel: Channel<FromServing, ToServing>, log: Logger) {
    this.#channel = channel
    this.#log = log
  }

  add(generation: number, key: string, replica: Replica<unknown>): void {
    const held = this.#held.get(key)
    if (held !== undefined) {
      held.holders.add(generation)
      return
    }
    this.#held.set(key, { replica, holders: new Set([generation]), last: undefined })
    this.#channel.post({ kind: 'subscribe', key })
  }

  release(generation: number): void {
    for (const [key, held] of this.#held) {
      if (!held.holders.delete(generation) || held.holders.size > 0) continue
      this.#held.delete(key)
      this.#channel.post({ kind: 'unsubscribe', key })
    }
  }

  /** A message that does not follow the one before it means that something was lost: a new snapshot is asked for. */
  take({ key, number, op, part }: SourceMessage): void {
    const held = this.#held.get(key)
    if (held === undefined) return
    if (op !== 'begin') {
      if (held.last === undefined) return
      if (number !== held.last + 1) {
        this.#log.warning(`source ${key}: message ${number} came after ${held.last}, asking for a new snapshot`)
        held.last = undefined
        this.#channel.post({ kind: 'subscribe', key })
        return
      }
    }
    held.last = number
    try {
      if (op === 'begin') held.replica.begin()
      if (part.length > 0) held.replica.apply(part)
      if (op === 'swap') held.replica.swap()
    } catch (error) {
      this.#log.error(`source ${key}: ${error instanceof Error ? (error.stack ?? error.message) : error}`)
    }
  }
}
