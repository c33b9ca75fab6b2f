/** `log`: set-up. */
import { Name } from '../../dns/index.js'
import { type Argument, type Directive, type PluginModule, type SetupContext, wrongCount } from '../contract.js'
import { COMMON, compileFormat } from './format.js'
import { type Classes, LogPlugin, type Rule } from './handler.js'

const CLASSES = ['all', 'success', 'denial', 'error']

const module: PluginModule = {
  name: 'log',
  apiVersion: 1,
  setup(uses, ctx) {
    return new LogPlugin(
      uses.flatMap((use) => rules(use, ctx)),
      ctx.log,
      ctx.clock,
    )
  },
}
export default module

/** `log [NAMES...] [FORMAT] { class CLASSES... }`. The last of several arguments is a format if it has a brace. */
function rules(use: Directive, ctx: SetupContext): Rule[] {
  const names = [...use.args]
  const only = names.length === 1 ? names[0] : undefined
  if (only?.text.includes('{')) ctx.warn(`'${only.text}' is taken for a name; for a format write: log . ${only.text}`, only)
  const format = names.length > 1 && names.at(-1)?.text.includes('{') ? names.pop()!.text : COMMON
  const classes = classesOf(use, ctx)
  const scopes = names.length === 0 ? [Name.root] : names.map((name) => scope(name, ctx))
  const print = compileFormat(format)
  return scopes.flatMap((zone) => (zone === undefined ? [] : [{ zone, print, classes }]))
}

function scope(name: Argument, ctx: SetupContext): Name | undefined {
  const parsed = Name.tryParse(name.text)
  if (parsed === undefined) ctx.warn(`'${name.text}' is no domain name: nothing will match it`, name)
  return parsed
}

function classesOf(use: Directive, ctx: SetupContext): Classes {
  const classes = new Set<string>()
  for (const option of use.block ?? []) {
    if (option.name !== 'class') throw ctx.error(`unknown property '${option.name}'`, option, ['class'])
    if (option.args.length === 0) throw ctx.error(wrongCount(option), option)
    for (const { text, pos } of option.args) {
      if (!CLASSES.includes(text)) throw ctx.fail(`invalid Class: ${text}`, pos)
      classes.add(text)
    }
  }
  return classes.size === 0 || classes.has('all') ? 'all' : (classes as ReadonlySet<string>)
}
