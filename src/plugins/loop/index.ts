/** Set-up of `loop`: finds forwarding loops and switches the nameservers off that cause them. See README.md. */
import { type Directive, ONCE, type PluginModule, type SetupContext, wrongCount } from '../contract.js'
import { Loop } from './loop.js'

const module: PluginModule = {
  name: 'loop',
  apiVersion: 1,
  setup(uses, ctx) {
    if (uses.length > 1) throw ctx.fail(ONCE, uses[1])
    return new Loop(ctx, readExit(uses[0], ctx))
  },
}

export default module

/** `loop exit`, an option of ours: end the process, as CoreDNS does. */
function readExit(use: Directive | undefined, ctx: SetupContext): boolean {
  const [first, second] = use?.args ?? []
  if (use === undefined || first === undefined) return false
  if (first.text !== 'exit' || second !== undefined) throw ctx.error(wrongCount(use), second ?? first)
  return true
}
