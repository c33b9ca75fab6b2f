/** `erratic`: set-up. */
import { type Directive, type PluginModule, parseDuration, quote, type SetupContext, wrongCount } from '../contract.js'
import { Erratic, type Options } from './handler.js'

const PROPERTIES = ['drop', 'delay', 'truncate', 'large']

const module: PluginModule = {
  name: 'erratic',
  apiVersion: 1,
  setup(uses, ctx) {
    const options = { drop: 2, delay: 0, duration: 0, truncate: 0, large: false }
    let drop = false
    for (const option of uses.flatMap((use) => use.block ?? [])) {
      const most = option.name === 'delay' ? 2 : 1
      if (option.name === 'large') options.large = true
      else if (!PROPERTIES.includes(option.name)) throw ctx.error(`unknown property '${option.name}'`, option, PROPERTIES)
      else if (option.args.length > most) throw ctx.error(wrongCount(option), option.args.at(-1))
      else if (option.name === 'drop') {
        options.drop = amount(option, options.drop, ctx)
        drop ||= option.args.length > 0
      } else if (option.name === 'truncate') options.truncate = amount(option, 2, ctx)
      else {
        options.delay = amount(option, 2, ctx)
        options.duration = duration(option, ctx)
      }
    }
    // Whoever asks for delays or truncation alone gets no drops.
    if ((options.delay > 0 || options.truncate > 0) && !drop) options.drop = 0
    return new Erratic(options satisfies Options, ctx.clock)
  },
}
export default module

function amount(option: Directive, standard: number, ctx: SetupContext): number {
  const argument = option.args[0]
  if (argument === undefined) return standard
  const { text } = argument
  if (!/^[+-]?\d+$/.test(text)) throw ctx.fail(`strconv.ParseInt: parsing ${quote(text)}: invalid syntax`, argument)
  const value = Number(text)
  if (value >= 2 ** 31) throw ctx.fail(`strconv.ParseInt: parsing ${quote(text)}: value out of range`, argument)
  if (value < 0) throw ctx.fail(`illegal amount value given ${quote(text)}`, argument)
  return value
}

function duration(option: Directive, ctx: SetupContext): number {
  const argument = option.args[1]
  if (argument === undefined) return 100
  try {
    return parseDuration(argument.text)
  } catch (error) {
    throw ctx.fail((error as Error).message, argument)
  }
}
