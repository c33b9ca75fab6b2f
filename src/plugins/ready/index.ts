/** `ready`: set-up. The endpoint lives in the control thread. */
import {
  type ControlContext,
  type Directive,
  endpointAddress,
  ONCE,
  type PluginModule,
  type SetupContext,
  wrongCount,
} from '../contract.js'
import { Ready } from './ready.js'

const MONITOR = ['until-ready', 'continuously']

const module: PluginModule = {
  name: 'ready',
  apiVersion: 1,
  setup(uses, ctx) {
    parse(uses, ctx)
    return null
  },
  control(uses, ctx) {
    const { address, continuously } = parse(uses, ctx)
    return new Ready(address, continuously, ctx)
  },
}
export default module

function parse(uses: readonly Directive[], ctx: SetupContext | ControlContext): { address: string; continuously: boolean } {
  if (uses[1] !== undefined) throw ctx.fail(ONCE, uses[1])
  let address = ':8181'
  let continuously = false
  for (const use of uses) {
    address = endpointAddress(use, ctx, address)
    for (const option of use.block ?? []) {
      if (option.name !== 'monitor') throw ctx.error(`unknown property '${option.name}'`, option, ['monitor'])
      const [type, more] = option.args
      if (type === undefined || more !== undefined) throw ctx.error(wrongCount(option), more ?? option)
      if (!MONITOR.includes(type.text)) throw ctx.error(`monitor type '${type.text}' not supported`, type, MONITOR)
      continuously = type.text === 'continuously'
    }
  }
  return { address, continuously }
}
