/** `reload`: set-up. The poller lives in the control thread. */
import { randomInt } from 'node:crypto'
import { type ControlContext, type Directive, type PluginModule, parseDuration, type SetupContext, wrongCount } from '../contract.js'
import { Poller } from './poller.js'

const MIN_INTERVAL = 2000
const MIN_JITTER = 1000

const module: PluginModule = {
  name: 'reload',
  apiVersion: 1,
  setup(uses, ctx) {
    parse(uses, ctx)
    return null
  },
  control(uses, ctx) {
    const { interval, jitter } = parse(uses, ctx)
    // One Corefile, one poller: of several blocks with `reload` the first has its way.
    return ctx.first ? new Poller(spread(interval, jitter), ctx) : undefined
  },
}
export default module

/** `reload [INTERVAL] [JITTER]`, in milliseconds. As in CoreDNS a second use in the block is not looked at. */
function parse(uses: readonly Directive[], ctx: SetupContext | ControlContext): { interval: number; jitter: number } {
  const use = uses[0]
  if (use === undefined) return { interval: 30_000, jitter: 15_000 }
  if (use.args.length > 2) throw ctx.error(wrongCount(use), use.args.at(-1))
  const interval = duration(use, 0, 30_000, ctx)
  if (interval < MIN_INTERVAL) throw ctx.fail('interval value must be greater or equal to 2s', use.args[0])
  const jitter = duration(use, 1, 15_000, ctx)
  if (jitter !== 0 && jitter < MIN_JITTER) throw ctx.fail('jitter value must be 0 or greater or equal to 1s', use.args[1])
  return { interval, jitter: Math.min(jitter, interval / 2) }
}

function duration(use: Directive, index: number, standard: number, ctx: SetupContext | ControlContext): number {
  const argument = use.args[index]
  if (argument === undefined) return standard
  try {
    return parseDuration(argument.text)
  } catch (error) {
    throw ctx.fail((error as Error).message, argument)
  }
}

/** The interval of this process and generation: half the jitter up or down. */
const spread = (interval: number, jitter: number): number =>
  jitter === 0 ? interval : interval + randomInt(Math.ceil(jitter)) - jitter / 2
