/** Looking at what came of a query, for the plugins that log and count. */
import { fullLength, type Message } from '../dns/index.js'
import { DROP, type Handler, isPromise, Later, type Reply, ServeError, type Step } from './contract.js'
import type { Query } from './query.js'

/**
 * `message` is undefined where nothing was sent: DROP, or `error` is set and the server will answer with `rcode`. `size` is the reply's
 * length without compression, 0 where no plugin made one; for a stream the sum, with its last message. Octets of the message may be others
 * once this has returned.
 */
export type Watcher = (query: Query, message: Message | undefined, size: number, rcode: number, error: unknown) => void

/** Calls `next` and then `seen`, exactly once; passes the result or the error on. */
export function watch(query: Query, next: Handler, seen: Watcher): Reply | Promise<Reply> {
  let result: Reply | Promise<Reply>
  try {
    result = next(query)
  } catch (error) {
    seen(query, undefined, 0, rcodeOf(error), error)
    throw error
  }
  if (!isPromise(result)) return look(query, result, seen)
  if (result instanceof Later) return result.through(passed, query, seen)
  return result.then(
    (reply) => passed(query, seen, reply, undefined),
    (error: unknown) => passed(query, seen, undefined, error),
  )
}

const passed: Step<Watcher> = (query, seen, reply, error) => {
  if (reply !== undefined) return look(query, reply, seen)
  seen(query, undefined, 0, rcodeOf(error), error)
  throw error
}

/** A fault in a plugin's code, not an outcome it chose: the server logs and counts it by itself. */
export const isCrash = (error: unknown): boolean =>
  error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError

/** The rcode that the server answers a failure with. */
export const rcodeOf = (error: unknown): number => (error instanceof ServeError ? error.rcode : 2)

function look(query: Query, reply: Reply, seen: Watcher): Reply {
  if (reply === DROP) seen(query, undefined, 0, 0, undefined)
  else if ('stream' in reply) return { stream: pulled(query, reply.stream, seen), by: reply.by }
  else seen(query, reply, fullLength(reply), reply.rcode, undefined)
  return reply
}

async function* pulled(query: Query, stream: AsyncIterable<Message>, seen: Watcher): AsyncGenerator<Message> {
  let last: Message | undefined
  let size = 0
  let error: unknown
  try {
    for await (const message of stream) {
      last = message
      size += fullLength(message)
      yield message
    }
  } catch (thrown) {
    error = thrown
    throw thrown
  } finally {
    seen(query, last, size, error === undefined ? (last?.rcode ?? 0) : rcodeOf(error), error)
  }
}
