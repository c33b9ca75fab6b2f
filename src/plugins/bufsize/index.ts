/** `bufsize`: lowers the UDP size that clients state, for what is asked upstream and for what they are answered. */
import {
  type Directive,
  type Handler,
  type Passing,
  type Plugin,
  type PluginModule,
  parseInteger,
  type Query,
  type Reply,
  type SetupContext,
  wrongCount,
} from '../contract.js'

/** Octets that pass unfragmented nearly everywhere (DNS Flag Day 2020). */
const DEFAULT_SIZE = 1232

const module: PluginModule = {
  name: 'bufsize',
  apiVersion: 1,
  setup: (uses, ctx) => bufsize(sizeOf(uses[0]!, ctx)),
}
export default module

function sizeOf(use: Directive, ctx: SetupContext): number {
  const [size, more] = use.args
  if (size === undefined) return DEFAULT_SIZE
  if (more !== undefined) throw ctx.error(wrongCount(use), more)
  try {
    return parseInteger(size.text, 512, 4096)
  } catch {
    // CoreDNS has the one message for all that is not a size.
    throw ctx.error(wrongCount(use), size)
  }
}

function bufsize(size: number): Plugin {
  const lowering: Passing = { lowers: size }
  return {
    name: 'bufsize',
    stands: () => lowering,
    serveDNS(query: Query, next: Handler): Reply | Promise<Reply> {
      const { edns } = query.message
      if (edns === undefined || edns.size <= size) return next(query)
      query.lowered = size
      return next(query.carrying(query.message.with({ edns: { ...edns, size } })))
    },
  }
}
