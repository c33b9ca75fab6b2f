/** `cancel`: a time-out on each query of a block. */
import {
  type Clock,
  type Handler,
  isPromise,
  type Passing,
  type Plugin,
  type PluginModule,
  parseDuration,
  type Query,
  quote,
  type Reply,
  ServeError,
  UNTOUCHED,
  wrongCount,
} from '../contract.js'

/** Clients give up after 5 s. */
const STANDARD = 5001
/** Milliseconds that plugins which look at the deadline by themselves have to answer in their own way. */
const GRACE = 10

const module: PluginModule = {
  name: 'cancel',
  apiVersion: 1,
  setup(uses, ctx) {
    let timeout = STANDARD
    for (const use of uses) {
      const [argument, more] = use.args
      if (more !== undefined) throw ctx.error(wrongCount(use), use.args.at(-1))
      for (const option of use.block ?? []) throw ctx.error(`unknown property '${option.name}'`, option)
      if (argument === undefined) continue
      try {
        timeout = parseDuration(argument.text)
      } catch {
        throw ctx.fail(`invalid duration: ${quote(argument.text)}`, argument)
      }
      if (timeout <= 0) throw ctx.fail(`invalid negative duration: ${quote(argument.text)}`, argument)
    }
    return new Cancel(timeout, ctx.clock)
  },
}
export default module

class Cancel implements Plugin {
  readonly name = 'cancel'
  readonly #timeout: number
  readonly #clock: Clock

  constructor(timeout: number, clock: Clock) {
    this.#timeout = timeout
    this.#clock = clock
  }

  serveDNS(query: Query, next: Handler): Reply | Promise<Reply> {
    const deadline = this.#clock.monotonic() + this.#timeout
    if (deadline < query.deadline) query.deadline = deadline
    const result = next(query)
    return isPromise(result) ? this.#limited(result) : result
  }

  /** What was answered at once was in time. */
  stands(): Passing {
    return UNTOUCHED
  }

  #limited(result: Promise<Reply>): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.timer(this.#timeout + GRACE, () => reject(new ServeError('plugin/cancel: deadline exceeded')))
      result.then(resolve, reject).finally(() => timer.cancel())
    })
  }
}
