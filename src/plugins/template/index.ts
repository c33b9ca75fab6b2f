/** `template`: set-up. */
import { CLASS, Name, RCODE, TYPE } from '../../dns/index.js'
import {
  type Argument,
  compileExpression,
  compilePattern,
  type Directive,
  type Expression,
  isReserved,
  MAX_PATTERN,
  type PluginModule,
  parseUnsigned,
  quote,
  type SetupContext,
  wrongCount,
  zonesOrDefault,
} from '../contract.js'
import { type Rule, TemplatePlugin } from './handler.js'
import { compileTemplate } from './template.js'

const SECTIONS = { answer: 'answers', authority: 'authorities', additional: 'additionals' } as const
const OPTIONS = ['match', 'answer', 'additional', 'authority', 'rcode', 'ederror', 'fallthrough', 'var', 'expr']

type Draft = { -readonly [K in keyof Rule]: Rule[K] extends readonly (infer T)[] ? T[] : Rule[K] }

const module: PluginModule = {
  name: 'template',
  apiVersion: 1,
  setup(uses, ctx) {
    return new TemplatePlugin(
      uses.map((use) => rule(use, ctx)),
      ctx,
    )
  },
}
export default module

/** `template CLASS TYPE [ZONES...] { ... }` */
function rule(use: Directive, ctx: SetupContext): Rule {
  const [className, typeName, ...zones] = use.args
  if (className === undefined || typeName === undefined) throw ctx.error(wrongCount(use), use.args.at(-1) ?? use)
  if (!Object.hasOwn(CLASS, className.text)) throw ctx.error(`invalid query class ${className.text}`, className, Object.keys(CLASS))
  if (!Object.hasOwn(TYPE, typeName.text)) throw ctx.error(`invalid RR class ${typeName.text}`, typeName, Object.keys(TYPE))
  const draft: Draft = {
    class: CLASS[className.text as keyof typeof CLASS],
    type: TYPE[typeName.text as keyof typeof TYPE],
    zones: named(
      zones.map(({ text }) => text),
      ctx.block.zones,
    ),
    patterns: [],
    answers: [],
    authorities: [],
    additionals: [],
    rcode: RCODE.NOERROR,
    ede: undefined,
    fall: [],
    vars: [],
    tests: [],
  }
  for (const option of use.block ?? []) apply(draft, option, ctx)
  draft.zones.sort((a, b) => b.name.labelCount - a.name.labelCount)
  return draft
}

const named = (args: readonly string[], standard: readonly string[]): { zone: string; name: Name }[] =>
  zonesOrDefault(args, standard).map((zone) => ({ zone, name: Name.parse(zone) }))

function apply(draft: Draft, option: Directive, ctx: SetupContext): void {
  switch (option.name) {
    case 'match':
      if (option.args.length === 0) throw ctx.error(wrongCount(option), option)
      draft.patterns.push(...patterns(option, ctx))
      return
    case 'answer':
    case 'authority':
    case 'additional':
      if (option.args.length === 0) throw ctx.error(wrongCount(option), option)
      draft[SECTIONS[option.name]].push(...templates(option, ctx))
      return
    case 'rcode':
      draft.rcode = rcode(option, ctx)
      return
    case 'ederror':
      draft.ede = extendedError(option, ctx)
      return
    case 'fallthrough':
      draft.fall = named(
        option.args.map(({ text }) => text),
        ['.'],
      ).map(({ name }) => name)
      return
    case 'upstream':
      return
    case 'var':
      draft.vars.push(variable(draft, option, ctx))
      return
    case 'expr':
      if (option.args.length === 0) throw ctx.error(wrongCount(option), option)
      draft.tests.push(expression(draft, option, option.args, 'could not compile expression: ', ctx))
      return
    default:
      throw ctx.error(wrongCount(option), option, OPTIONS)
  }
}

/** `var NAME EXPRESSION`, which later ones may use. */
function variable(draft: Draft, option: Directive, ctx: SetupContext): Rule['vars'][number] {
  const [name, ...words] = option.args
  if (name === undefined || words.length === 0) throw ctx.error(wrongCount(option), name ?? option)
  if (!/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name.text)) throw ctx.error(`invalid variable name ${quote(name.text)}`, name)
  if (isReserved(name.text)) throw ctx.error(`variable name ${quote(name.text)} is reserved`, name)
  return { name: name.text, value: expression(draft, option, words, `could not compile expression: ${name.text}, `, ctx) }
}

function expression(draft: Draft, option: Directive, words: readonly Argument[], what: string, ctx: SetupContext): Expression {
  try {
    return compileExpression(
      words.map(({ text }) => text).join(' '),
      new Map(draft.vars.map(({ name, value }) => [name, value.type])),
      true,
    )
  } catch (error) {
    throw ctx.error(what + (error as Error).message, option.pos)
  }
}

function patterns(option: Directive, ctx: SetupContext): Rule['patterns'] {
  return option.args.map(({ text, pos }) => {
    if (text.length > MAX_PATTERN) throw ctx.error(`regex pattern too long: ${text.length} > ${MAX_PATTERN}`, pos)
    try {
      return { text, pattern: compilePattern(text) }
    } catch (error) {
      throw ctx.error(`could not parse regex: ${text}, ${(error as Error).message}`, pos)
    }
  })
}

function templates(option: Directive, ctx: SetupContext): Rule['answers'] {
  return option.args.map(({ text, pos }) => {
    try {
      return { text, print: compileTemplate(option.name, text) }
    } catch (error) {
      throw ctx.error(`could not compile template: ${option.name}, ${(error as Error).message}`, pos)
    }
  })
}

function rcode(option: Directive, ctx: SetupContext): number {
  const argument = option.args[0]
  if (argument === undefined) throw ctx.error(wrongCount(option), option)
  if (!Object.hasOwn(RCODE, argument.text)) throw ctx.error(`unknown rcode ${argument.text}`, argument, Object.keys(RCODE))
  return RCODE[argument.text as keyof typeof RCODE]
}

function extendedError(option: Directive, ctx: SetupContext): Buffer {
  const [code, reason, more] = option.args
  if (code === undefined || more !== undefined) throw ctx.error(wrongCount(option), more ?? option)
  try {
    const number = parseUnsigned(code.text, 16)
    return Buffer.concat([Buffer.from([number >> 8, number & 0xff]), Buffer.from(reason?.text ?? '')])
  } catch (error) {
    throw ctx.error(`error parsing extended DNS error code ${code.text}, ${(error as Error).message}`, code)
  }
}
