/** `timeouts`: how long connections are waited for, and how many queries one may bring. */
import {
  type Directive,
  formatDuration,
  type PluginModule,
  parseDuration,
  parseInteger,
  type SetupContext,
  wrongCount,
} from '../contract.js'

const OPTIONS = ['read', 'write', 'idle', 'maxtcpqueries']
const SECOND = 1000
const DAY = 24 * 3600 * SECOND

const module: PluginModule = {
  name: 'timeouts',
  apiVersion: 1,
  setup(uses, ctx) {
    for (const use of uses) {
      if (use.args.length > 0) throw ctx.error(wrongCount(use), use.args.at(-1))
      for (const option of use.block ?? []) apply(option, ctx)
      if ((use.block ?? []).length === 0) throw ctx.error('timeouts block with no timeouts specified', use)
    }
    return null
  },
}
export default module

function apply(option: Directive, ctx: SetupContext): void {
  const [argument, more] = option.args
  if (argument === undefined || more !== undefined) throw ctx.error(wrongCount(option), more ?? option)
  if (option.name === 'maxtcpqueries') {
    ctx.block.maxTcpQueries = maxQueries(argument.text, option, ctx)
    return
  }
  const timeout = duration(argument.text, option, ctx)
  if (timeout < SECOND || timeout > DAY)
    throw ctx.error(`timeout provided '${formatDuration(timeout)}' needs to be between 1 second and 24 hours`, argument.pos)
  if (option.name !== 'read' && option.name !== 'write' && option.name !== 'idle')
    throw ctx.error(`unknown option: '${option.name}'`, option, OPTIONS)
  ctx.block.timeouts[option.name] = timeout
}

/** A bare number means seconds. */
function duration(text: string, option: Directive, ctx: SetupContext): number {
  try {
    return parseDuration(/^[+-]?\d+$/.test(text) ? `${text}s` : text)
  } catch {
    throw ctx.error(`failed to parse duration '${text}'`, option.args[0]?.pos)
  }
}

/** undefined: no limit, written as -1. */
function maxQueries(text: string, option: Directive, ctx: SetupContext): number | undefined {
  let count: number
  try {
    count = parseInteger(text)
  } catch (error) {
    throw ctx.error(`invalid value for maxtcpqueries '${text}': ${(error as Error).message}`, option.args[0]?.pos)
  }
  if (count === 0 || count < -1)
    throw ctx.error(`maxtcpqueries provided '${count}' needs to be -1 (unlimited) or a positive integer`, option.args[0]?.pos)
  return count === -1 ? undefined : count
}
