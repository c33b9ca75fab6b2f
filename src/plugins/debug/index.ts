/** `debug`: debug lines in the log, and crashes of a plugin that end the process. */
import { type PluginModule, wrongCount } from '../contract.js'

const module: PluginModule = {
  name: 'debug',
  apiVersion: 1,
  setup(uses, ctx) {
    for (const use of uses) {
      if (use.args.length > 0) throw ctx.error(wrongCount(use), use.args[0])
      for (const option of use.block ?? []) throw ctx.error(`unknown property '${option.name}'`, option)
    }
    ctx.block.debug = true
    return null
  },
}
export default module
