/**
 * A reply that comes later, for plugins that wait for something at every query (`forward`). It is a promise to all that treat it as one. Those
 * that only look at what comes of a query (`errors`, `prometheus`, `log`) and the server, which waits for it last, are called back at once and
 * without a promise each: at some ten thousand queries a second, promises and their turns cost more than what is done in them.
 */
import { isPromise, type Reply } from './contract.js'
import type { Query } from './query.js'

/**
 * What a plugin does with the outcome on its way out: gives back the reply that goes on, or throws. `reply` is undefined if there is none, then
 * `error` says why. Octets of the reply may be others once this has returned.
 */
export type Step<X> = (query: Query, extra: X, reply: Reply | undefined, error: unknown) => Reply

/** Who waits at the end. */
export interface ReplyWaiter {
  /** Looks at the reply's octets after `ready` has returned. */
  readonly keeps: boolean
  /** Called once; without `reply`, `error` says why. Must not throw. */
  ready(reply: Reply | undefined, error: unknown): void
}

// The ends of the promise that was made last.
let fulfil: (reply: Reply) => void
let fail: (error: unknown) => void
const keepEnds = (resolve: typeof fulfil, reject: typeof fail): void => {
  fulfil = resolve
  fail = reject
}

/** Whoever gets one from `next` owns it: adds a step and passes it on, waits for it, or uses it as a promise. */
export abstract class Later implements Promise<Reply>, ReplyWaiter {
  #settled = false
  #reply: Reply | undefined = undefined
  #error: unknown = undefined
  /** Few chains have more than two plugins that look. */
  #step: Step<unknown> | undefined = undefined
  #query: Query | undefined = undefined
  #extra: unknown = undefined
  #secondStep: Step<unknown> | undefined = undefined
  #secondQuery: Query | undefined = undefined
  #secondExtra: unknown = undefined
  #more: (() => void)[] | undefined = undefined
  #waiter: ReplyWaiter | undefined = undefined
  #promise: Promise<Reply> | undefined = undefined
  #fulfil: typeof fulfil | undefined = undefined
  #fail: typeof fail | undefined = undefined

  /** Somebody looks at the reply's octets after this was settled. */
  get keeps(): boolean {
    return this.#promise !== undefined || this.#waiter === undefined || this.#waiter.keeps
  }

  /** Runs `step` when the outcome is there, after the steps that were added before. */
  through<X>(step: Step<X>, query: Query, extra: X): this {
    if (this.#settled || this.#secondStep !== undefined) {
      const pass = (): void => this.#pass(step as Step<unknown>, query, extra)
      if (this.#settled) pass()
      else {
        this.#more ??= []
        this.#more.push(pass)
      }
    } else if (this.#step === undefined) {
      this.#step = step as Step<unknown>
      this.#query = query
      this.#extra = extra
    } else {
      this.#secondStep = step as Step<unknown>
      this.#secondQuery = query
      this.#secondExtra = extra
    }
    return this
  }

  /** Calls `waiter` back, within this call if the outcome is there already. For one waiter. */
  awaitedBy(waiter: ReplyWaiter): void {
    if (this.#settled) waiter.ready(this.#reply, this.#error)
    else this.#waiter = waiter
  }

  // biome-ignore lint/suspicious/noThenProperty: it is a promise.
  then<A = Reply, B = never>(
    fulfilled?: ((reply: Reply) => A | PromiseLike<A>) | null,
    rejected?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#asPromise().then(fulfilled, rejected)
  }
  catch<B = never>(rejected?: ((error: unknown) => B | PromiseLike<B>) | null): Promise<Reply | B> {
    return this.#asPromise().catch(rejected)
  }
  finally(done?: (() => void) | null): Promise<Reply> {
    return this.#asPromise().finally(done)
  }
  get [Symbol.toStringTag](): string {
    return 'Later'
  }

  /** The outcome has come. Called once. */
  ready(reply: Reply | undefined, error: unknown): void {
    this.#settled = true
    this.#reply = reply
    this.#error = error
    if (this.#step !== undefined) this.#pass(this.#step, this.#query!, this.#extra)
    if (this.#secondStep !== undefined) this.#pass(this.#secondStep, this.#secondQuery!, this.#secondExtra)
    if (this.#more !== undefined) for (const pass of this.#more) pass()
    this.#waiter?.ready(this.#reply, this.#error)
    if (this.#promise === undefined) return
    if (this.#reply === undefined) this.#fail!(this.#error)
    else this.#fulfil!(this.#reply)
  }

  /** As `ready`, also with what only will be a reply. */
  protected resolve(reply: Reply | Promise<Reply>): void {
    if (!isPromise(reply)) this.ready(reply, undefined)
    else if (reply instanceof Later) reply.awaitedBy(this)
    else
      reply.then(
        (settled) => this.ready(settled, undefined),
        (error: unknown) => this.ready(undefined, error),
      )
  }

  #pass(step: Step<unknown>, query: Query, extra: unknown): void {
    try {
      this.#reply = step(query, extra, this.#reply, this.#error)
      this.#error = undefined
    } catch (error) {
      this.#reply = undefined
      this.#error = error
    }
  }

  #asPromise(): Promise<Reply> {
    if (this.#promise !== undefined) return this.#promise
    this.#promise = new Promise(keepEnds)
    this.#fulfil = fulfil
    this.#fail = fail
    if (this.#settled) {
      if (this.#reply === undefined) fail(this.#error)
      else fulfil(this.#reply)
    }
    return this.#promise
  }
}
