/** One question put to one upstream, while it waits for its reply. */
import { randomFillSync } from 'node:crypto'
import type { Cookies } from './cookies.js'
import { PREFIX, type Received } from './frame.js'

export type Proto = 'udp' | 'tcp'

/** Called once: with a sound reply that fits the question, or with an error. */
export type Done = (ask: Ask, reply: Received | undefined, error: Error | undefined) => void

export interface Carrier {
  forget(ask: Ask): void
  /** Our end, "10.0.0.2:41234", or "" if there is none yet. */
  readonly local: string
}

export class Ask {
  readonly frame: Buffer
  readonly proto: Proto
  /** The letter case of the question must come back as it was sent. */
  readonly exact: boolean
  /** The frame has a cookie; they look at the reply's. */
  cookies: Cookies | undefined
  /** Monotonic ms when it was put on the wire; -1 while it waits for a connection. */
  sentAt = -1
  /** How often a kept connection broke under it. */
  redials = 0
  /** The connection or socket it waits on. */
  via: Carrier | undefined
  #done: Done | undefined

  constructor(frame: Buffer, proto: Proto, exact: boolean, done: Done) {
    this.frame = frame
    this.proto = proto
    this.exact = exact
    this.#done = done
  }

  get id(): number {
    return this.frame.readUInt16BE(PREFIX)
  }
  set id(value: number) {
    this.frame.writeUInt16BE(value, PREFIX)
  }

  get settled(): boolean {
    return this.#done === undefined
  }

  settle(reply: Received | undefined, error: Error | undefined): void {
    const done = this.#done
    this.#done = undefined
    this.via = undefined
    done?.(this, reply, error)
  }

  /** Nobody waits any longer. */
  cancel(): void {
    this.via?.forget(this)
    this.via = undefined
    this.#done = undefined
  }
}

/** Unpredictable numbers, drawn from the system in batches: 0…65,535. */
export class Ids {
  readonly #pool = Buffer.alloc(4096)
  #at = this.#pool.length

  next(): number {
    if (this.#at >= this.#pool.length) {
      randomFillSync(this.#pool)
      this.#at = 0
    }
    const value = this.#pool.readUInt16LE(this.#at)
    this.#at += 2
    return value
  }

  /** An id that is not in `taken`, which holds far fewer than there are. */
  unused(taken: ReadonlyMap<number, unknown>): number {
    let id = this.next()
    while (taken.has(id)) id = this.next()
    return id
  }

  /** 0 … n-1, n at most some thousand. */
  below(n: number): number {
    return n <= 1 ? 0 : this.next() % n
  }

  /** Octets for random letter case: as many bits as a name may have letters. */
  octets(): Buffer {
    return randomFillSync(Buffer.allocUnsafe(32))
  }
}
