/** From the plugins of a block to one function: linked once, from the right, so that a query costs a call per plugin and nothing more. */
import { OPCODE, RCODE } from '../dns/index.js'
import { type Handler, type Plugin, type Query, ServeError } from '../plugins/contract.js'

/** These would carry a NOTIFY to somebody whom it was not meant for, so for them opcodes other than QUERY end here. */
const QUERIES_ONLY: ReadonlySet<string> = new Set(['forward', 'grpc'])

/** The chain of `plugins`; undefined if none of them serves. */
export function link(plugins: readonly Plugin[]): Handler | undefined {
  const serving = plugins.filter((plugin) => plugin.serveDNS !== undefined)
  const last = serving.at(-1)
  if (last === undefined) return undefined
  let handler = end(last.name)
  for (const plugin of serving.toReversed()) handler = join(plugin, handler)
  return handler
}

const end =
  (name: string): Handler =>
  () => {
    throw new ServeError(`plugin/${name}: no next plugin found`)
  }

function join(plugin: Plugin, next: Handler): Handler {
  const linked: Handler = (query) => plugin.serveDNS!(query, next)
  if (!QUERIES_ONLY.has(plugin.name)) return linked
  return (query) => (query.message.opcode === OPCODE.QUERY ? linked(query) : notImplemented(plugin.name, query))
}

const notImplemented = (name: string, query: Query) => query.reply(name, RCODE.NOTIMP, { aa: false })
