/** `root`: where relative paths of the block's other plugins count from. */
import { statSync } from 'node:fs'
import { type PluginModule, wrongCount } from '../contract.js'

const module: PluginModule = {
  name: 'root',
  apiVersion: 1,
  setup(uses, ctx) {
    for (const use of uses) {
      const [path, more] = use.args
      if (path === undefined || more !== undefined) throw ctx.error(wrongCount(use), more ?? use)
      ctx.block.root = path.text
    }
    try {
      statSync(ctx.block.root)
    } catch (error) {
      const missing = (error as NodeJS.ErrnoException).code === 'ENOENT'
      const text = `Root path does not exist: ${ctx.block.root}`
      if (ctx.checking) ctx.note(missing ? text : (error as Error).message, uses.at(-1))
      // It may appear later, so this is no error.
      else if (missing) ctx.log.warning(text)
      else throw ctx.error(`unable to access root path '${ctx.block.root}': ${(error as Error).message}`, uses.at(-1))
    }
    return null
  },
}
export default module
