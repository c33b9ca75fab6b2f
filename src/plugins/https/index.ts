/** `https`: limits of the DNS-over-HTTPS listener. */
import { type Directive, type PluginModule, parseInteger, type SetupContext, wrongCount } from '../contract.js'

const module: PluginModule = {
  name: 'https',
  apiVersion: 1,
  setup(uses, ctx) {
    for (const use of uses) {
      if (use.args.length > 0) throw ctx.error(wrongCount(use), use.args.at(-1))
      for (const option of use.block ?? []) {
        if (option.name !== 'max_connections') throw ctx.error(`unknown property '${option.name}'`, option, ['max_connections'])
        const limit = maxConnections(option, ctx)
        if (ctx.block.httpsMaxConnections !== undefined) throw ctx.error('max_connections already defined for this server block', option)
        ctx.block.httpsMaxConnections = limit
      }
    }
    return null
  },
}
export default module

/** 0: without limit. */
function maxConnections(option: Directive, ctx: SetupContext): number {
  const [argument, more] = option.args
  if (argument === undefined || more !== undefined) throw ctx.error(wrongCount(option), more ?? option)
  let limit: number
  try {
    limit = parseInteger(argument.text)
  } catch (error) {
    throw ctx.error(`invalid max_connections value '${argument.text}': ${(error as Error).message}`, argument)
  }
  if (limit < 0) throw ctx.error(`max_connections must be a non-negative integer: ${limit}`, argument)
  return limit
}
