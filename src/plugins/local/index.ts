/** `local`: set-up. */
import { type PluginModule, quote, wrongCount } from '../contract.js'
import { Local } from './handler.js'

const module: PluginModule = {
  name: 'local',
  apiVersion: 1,
  setup(uses, ctx) {
    let prefix = true
    for (const use of uses) {
      if (use.args.length > 0) throw ctx.error(wrongCount(use), use.args.at(-1))
      for (const option of use.block ?? []) {
        if (option.name !== 'localhost_prefix') throw ctx.error(`unknown property '${option.name}'`, option, ['localhost_prefix'])
        const [value, more] = option.args
        if (value === undefined || more !== undefined) throw ctx.error(wrongCount(option), more ?? option)
        if (value.text !== 'on' && value.text !== 'off')
          throw ctx.error(`localhost_prefix expects 'on' or 'off', got ${quote(value.text)}`, value, ['on', 'off'])
        prefix = value.text === 'on'
      }
    }
    const count = ctx.metrics
      .counter('coredns_local_localhost_requests_total', 'Queries for names below localhost or that begin with it.', [])
      .with()
    count.inc(0)
    return new Local(prefix, count, ctx.log, ctx.block)
  },
}
export default module
