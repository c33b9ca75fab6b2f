/** From the plugins of a block to one function: linked once, from the right, so that a query costs a call per plugin and nothing more. */
import { type Handler, type Plugin, ServeError } from '../plugins/contract.js'

/** The chain of `plugins`; undefined if none of them serves. */
export function link(plugins: readonly Plugin[]): Handler | undefined {
  const serving = plugins.filter((plugin) => plugin.serveDNS !== undefined)
  const last = serving.at(-1)
  if (last === undefined) return undefined
  let handler = end(last.name)
  for (const plugin of serving.toReversed()) {
    const next = handler
    handler = (query) => plugin.serveDNS!(query, next)
  }
  return handler
}

const end =
  (name: string): Handler =>
  () => {
    throw new ServeError(`plugin/${name}: no next plugin found`)
  }
