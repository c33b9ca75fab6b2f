/** `health`: set-up. The endpoint lives in the control thread. */
import {
  type ControlContext,
  type Directive,
  endpointAddress,
  type PluginModule,
  parseDuration,
  type SetupContext,
  wrongCount,
} from '../contract.js'
import { Health } from './health.js'

interface Options {
  readonly address: string
  /** Milliseconds that a shutdown is delayed. */
  readonly lameduck: number
}

const module: PluginModule = {
  name: 'health',
  apiVersion: 1,
  setup(uses, ctx) {
    parse(uses, ctx)
    return null
  },
  control(uses, ctx) {
    const { address, lameduck } = parse(uses, ctx)
    return new Health(address, lameduck, ctx)
  },
}
export default module

/** Of several uses in one block the last word on each counts, as in CoreDNS. */
function parse(uses: readonly Directive[], ctx: SetupContext | ControlContext): Options {
  let address = ':8080'
  let lameduck = 0
  for (const use of uses) {
    address = endpointAddress(use, ctx, address)
    for (const option of use.block ?? []) {
      if (option.name !== 'lameduck') throw ctx.error(`unknown property '${option.name}'`, option, ['lameduck'])
      const [duration, more] = option.args
      if (duration === undefined || more !== undefined) throw ctx.error(wrongCount(option), more ?? option)
      try {
        lameduck = parseDuration(duration.text)
      } catch (error) {
        throw ctx.fail(`unable to parse lameduck duration value: '${duration.text}' : ${(error as Error).message}`, duration)
      }
    }
  }
  return { address, lameduck }
}
