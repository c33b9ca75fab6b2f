/** `errors`: set-up. */
import {
  type Argument,
  compilePattern,
  type Directive,
  MAX_PATTERN,
  ONCE,
  type Pattern,
  type PluginModule,
  parseDuration,
  type SetupContext,
  wrongCount,
} from '../contract.js'
import { type Consolidation, ErrorsPlugin, isLevel, LEVELS, type Level } from './handler.js'

const module: PluginModule = {
  name: 'errors',
  apiVersion: 1,
  setup(uses, ctx) {
    if (uses[1] !== undefined) throw ctx.fail(ONCE, uses[1])
    const consolidations: Consolidation[] = []
    for (const use of uses) {
      if (use.args.length > 1) throw ctx.error(wrongCount(use), use.args.at(-1))
      const file = use.args[0]
      if (file !== undefined && file.text !== 'stdout') throw ctx.error(`invalid log file: ${file.text}`, file)
      for (const option of use.block ?? []) {
        if (option.name === 'stacktrace') ctx.block.stacktrace = true
        else if (option.name === 'consolidate') consolidations.push(consolidation(option, ctx))
        else throw ctx.error(`Unknown field ${option.name}`, option, ['stacktrace', 'consolidate'])
      }
    }
    return new ErrorsPlugin(consolidations, ctx.log, ctx.clock)
  },
}
export default module

/** `consolidate DURATION REGEXP [LEVEL] [show_first]` */
function consolidation(option: Directive, ctx: SetupContext): Consolidation {
  const [duration, pattern, ...flags] = option.args
  if (duration === undefined || pattern === undefined || flags.length > 2) throw ctx.error(wrongCount(option), option.args.at(-1) ?? option)
  return { period: period(duration, ctx), text: pattern.text, pattern: compiled(pattern, ctx), ...flagsOf(flags, ctx) }
}

function period(duration: Argument, ctx: SetupContext): number {
  try {
    return parseDuration(duration.text)
  } catch (error) {
    throw ctx.error((error as Error).message, duration)
  }
}

function compiled(pattern: Argument, ctx: SetupContext): Pattern {
  if (pattern.text.length > MAX_PATTERN) throw ctx.error(`regex pattern too long: ${pattern.text.length} > ${MAX_PATTERN}`, pattern.pos)
  try {
    return compilePattern(pattern.text)
  } catch (error) {
    throw ctx.error((error as Error).message, pattern.pos)
  }
}

function flagsOf(flags: readonly Argument[], ctx: SetupContext): { level: Level; showFirst: boolean } {
  let level: Level | undefined
  let showFirst = false
  for (const flag of flags) {
    if (isLevel(flag.text)) {
      if (level !== undefined) throw ctx.error('multiple log levels specified in consolidate', flag)
      if (showFirst) throw ctx.error('log level must come before show_first in consolidate', flag)
      level = flag.text
    } else if (flag.text === 'show_first') showFirst = true
    else throw ctx.error(`unknown option in consolidate: ${flag.text}`, flag, [...LEVELS, 'show_first'])
  }
  return { level: level ?? 'error', showFirst }
}
