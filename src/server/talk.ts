/** What plugins of one serving thread say to their counterparts in the others; control passes it on. */
import type { Counterparts, Logger } from '../plugins/contract.js'
import type { Channel, FromServing, ToServing } from './protocol.js'

export class Talk {
  readonly #listeners = new Map<string, Set<(value: unknown) => void>>()
  readonly #channel: Pick<Channel<FromServing, ToServing>, 'post'>
  readonly #log: Logger

  constructor(channel: Pick<Channel<FromServing, ToServing>, 'post'>, log: Logger) {
    this.#channel = channel
    this.#log = log
  }

  open<T>(key: string, receive: (value: T) => void): Counterparts<T> {
    const listener = receive as (value: unknown) => void
    const listeners = this.#listeners.get(key) ?? new Set()
    this.#listeners.set(key, listeners.add(listener))
    return {
      tell: (value) => this.#channel.post({ kind: 'tell', key, value }),
      close: () => {
        listeners.delete(listener)
        if (listeners.size === 0 && this.#listeners.get(key) === listeners) this.#listeners.delete(key)
      },
    }
  }

  hear(key: string, value: unknown): void {
    for (const listener of this.#listeners.get(key) ?? []) {
      try {
        listener(value)
      } catch (error) {
        this.#log.error(`${key}: ${error instanceof Error ? error.stack : error}`)
      }
    }
  }
}
