/** `prometheus`: set-up. The endpoint lives in the control thread, the counting in the serving threads. */
import {
  type ControlContext,
  type Directive,
  endpointAddress,
  ONCE,
  type PluginModule,
  type SetupContext,
  wrongCount,
} from '../contract.js'
import { VERSION } from '../version.js'
import { Prometheus } from './handler.js'
import { metricsHandler } from './scrape.js'

const module: PluginModule = {
  name: 'prometheus',
  apiVersion: 1,
  setup(uses, ctx) {
    parse(uses, ctx)
    return new Prometheus(ctx)
  },
  control(uses, ctx) {
    const address = parse(uses, ctx)
    ctx.metrics
      .gauge('coredns_build_info', 'Always 1; the labels say which build of the server this is.', ['version', 'revision', 'goversion'])
      .with(VERSION, '', process.version)
      .set(1)
    ctx.http(address, '/metrics', metricsHandler(ctx.process))
    return undefined
  },
}
export default module

/** Returns the address to listen on. */
function parse(uses: readonly Directive[], ctx: SetupContext | ControlContext): string {
  if (uses[1] !== undefined) throw ctx.fail(ONCE, uses[1])
  let address = 'localhost:9153'
  for (const use of uses) {
    address = endpointAddress(use, ctx, address)
    for (const option of use.block ?? []) {
      if (option.name === 'runtime_metrics') {
        if (option.args.length > 0) throw ctx.error(wrongCount(option), option.args[0])
      } else if (option.name === 'tls') {
        if (option.args.length !== 1) throw ctx.error(wrongCount(option), option.args.at(-1) ?? option)
        throw ctx.error("'tls' of the metrics endpoint is known, but not built yet", option)
      } else throw ctx.error(`unknown option: ${option.name}`, option, ['runtime_metrics', 'tls'])
    }
  }
  return address
}
