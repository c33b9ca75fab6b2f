/** One question put to one upstream, while it waits for its reply. */
import { randomFillSync } from 'node:crypto'
import type { Query } from '../../src/plugins/contract.js'
import type { Cookies } from './cookies.js'
import { PREFIX } from './frame.js'
import type { Received } from './reply.js'

export type Proto = 'udp' | 'tcp'

/** Who wants to know what comes of a question. */
export interface Asker {
  /** Called once: with a sound reply that fits the question, or with an error. */
  settled(ask: Ask, reply: Received | undefined, error: Error | undefined): void
}

export interface Carrier {
  forget(ask: Ask): void
  /** Our end, "10.0.0.2:41234", or "" if there is none yet. */
  readonly local: string
}

export class Ask {
  readonly proto: Proto
  /** Octets of its own. Without, it is the client's `query` that is put, and written only when it is sent. */
  frame: Buffer | undefined = undefined
  query: Query | undefined = undefined
  /** The client's ECS goes along. */
  ecsPass = false
  /** The letter case of the question must come back as it was sent. */
  exact = false
  /** The frame has a cookie; they look at the reply's. */
  cookies: Cookies | undefined = undefined
  /** Monotonic ms when it was given to the upstream. */
  began = 0
  /** Monotonic ms when it was put on the wire; -1 while it waits for a connection. */
  sentAt = -1
  /** How often a kept connection broke under it. */
  redials = 0
  /** The connection or socket it waits on. */
  via: Carrier | undefined = undefined
  #id = 0
  #asker: Asker | undefined

  constructor(proto: Proto, asker: Asker) {
    this.proto = proto
    this.#asker = asker
  }

  get id(): number {
    return this.#id
  }
  set id(value: number) {
    this.#id = value
    if (this.frame !== undefined) this.frame.writeUInt16BE(value, PREFIX)
  }

  get settled(): boolean {
    return this.#asker === undefined
  }

  settle(reply: Received | undefined, error: Error | undefined): void {
    const asker = this.#asker
    if (asker === undefined) return
    this.#asker = undefined
    this.via = undefined
    asker.settled(this, reply, error)
  }

  /** Nobody waits any longer. */
  cancel(): void {
    this.via?.forget(this)
    this.via = undefined
    this.#asker = undefined
  }
}

const POOL = 8192

/** Unpredictable numbers, drawn from the system in batches: 0…65,535. */
export class Ids {
  readonly #pool = new Uint16Array(POOL)
  #at = POOL

  next(): number {
    if (this.#at >= POOL) {
      randomFillSync(this.#pool)
      this.#at = 0
    }
    return this.#pool[this.#at++]!
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
