/** `acl`: set-up. */
import { BlockList, isIP } from 'node:net'
import { Name, typeNumber } from '../../dns/index.js'
import { type Argument, type Directive, type PluginModule, quote, type SetupContext, zonesOrDefault } from '../contract.js'
import { ACTIONS, Acl, type Action, type Policy, type Rule } from './handler.js'

const module: PluginModule = {
  name: 'acl',
  apiVersion: 1,
  setup(uses, ctx) {
    return new Acl(
      uses.map((use) => rule(use, ctx)),
      ctx.metrics,
    )
  },
}
export default module

/** `acl [ZONES...] { ACTION [type QTYPE...] [net SOURCE...] }` */
function rule(use: Directive, ctx: SetupContext): Rule {
  const args = use.args.map(({ text }) => text)
  const zones = zonesOrDefault(args, ctx.block.zones, (arg, error) => ctx.warn(`'${arg}' is no zone: ${error.message}`, use))
  return {
    zones: zones.map((zone) => ({ zone, name: Name.parse(zone) })).sort((a, b) => b.name.labelCount - a.name.labelCount),
    policies: (use.block ?? []).map((option) => policy(option, ctx)),
  }
}

const isAction = (text: string): text is Action => (ACTIONS as readonly string[]).includes(text)

function policy(option: Directive, ctx: SetupContext): Policy {
  const action = option.name.toLowerCase()
  if (!isAction(action))
    throw ctx.error(`unexpected token ${quote(option.name)}; expect 'allow', 'block', 'filter' or 'drop'`, option, ACTIONS)
  let types: Set<number> | undefined
  let sources: BlockList | undefined
  for (const { section, words } of sections(option, ctx)) {
    if (section === 'type') types = words.some(({ text }) => text === '*') ? undefined : typesOf(words, types, ctx)
    else sources = words.some(({ text }) => text === '*') ? undefined : sourcesOf(words, sources, ctx)
  }
  return { action, types, sources }
}

/** The words behind each `type` and `net`. */
function sections(option: Directive, ctx: SetupContext): { section: string; words: Argument[] }[] {
  const found: { section: string; words: Argument[] }[] = []
  for (const argument of option.args) {
    const section = argument.text.toLowerCase()
    if (section === 'type' || section === 'net') found.push({ section, words: [] })
    else if (found.length === 0) throw ctx.error(`unexpected token ${quote(argument.text)}; expect 'type | net'`, argument, ['type', 'net'])
    else found.at(-1)!.words.push(argument)
  }
  const empty = found.find(({ words }) => words.length === 0)
  if (empty !== undefined) throw ctx.error(`no token specified in ${quote(empty.section)} section`, option)
  return found
}

function typesOf(words: readonly Argument[], types: Set<number> | undefined, ctx: SetupContext): Set<number> {
  const all = types ?? new Set<number>()
  for (const word of words) {
    const type = word.text === word.text.toUpperCase() ? typeNumber(word.text) : undefined
    if (type === undefined) throw ctx.error(`unexpected token ${quote(word.text)}; expect legal QTYPE`, word)
    all.add(type)
  }
  return all
}

function sourcesOf(words: readonly Argument[], sources: BlockList | undefined, ctx: SetupContext): BlockList {
  const all = sources ?? new BlockList()
  for (const word of words) {
    const full = word.text.includes('/') ? word.text : `${word.text}/${word.text.includes(':') ? 128 : 32}`
    const slash = full.indexOf('/')
    const address = full.slice(0, slash)
    const family = isIP(address)
    const bits = /^\d{1,3}$/.test(full.slice(slash + 1)) ? Number(full.slice(slash + 1)) : -1
    if (family === 0 || address.includes('%') || bits < 0 || bits > (family === 4 ? 32 : 128))
      throw ctx.error(`illegal CIDR notation ${quote(full)}`, word)
    all.addSubnet(address, bits, family === 4 ? 'ipv4' : 'ipv6')
  }
  return all
}
