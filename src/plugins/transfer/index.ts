/** `transfer`: set-up. */
import { parseAddress } from '../../dns/index.js'
import {
  type Directive,
  isAddress,
  type PluginModule,
  parseHostPort,
  quote,
  type SetupContext,
  splitHostPort,
  wrongCount,
  zonesOrDefault,
} from '../contract.js'
import { type Secondary, TransferPlugin, type TransferRule } from './handler.js'

const module: PluginModule = {
  name: 'transfer',
  apiVersion: 1,
  setup(uses, ctx) {
    return new TransferPlugin(
      uses.map((use) => rule(use, ctx)),
      ctx,
    )
  },
}
export default module

function rule(use: Directive, ctx: SetupContext): TransferRule {
  const zones = zonesOrDefault(
    use.args.map((arg) => arg.text),
    ctx.block.zones,
    (arg, error) => ctx.warn(`zone '${arg}' is left out: ${error.message}`, use),
  )
  const to: Secondary[] = []
  let anyone = false
  let source: string | undefined
  for (const option of use.block ?? []) {
    if (option.name === 'to') {
      const hosts = option.args.filter((arg) => arg.text !== '*')
      if (option.args.length === 0) throw ctx.error(wrongCount(option), option)
      anyone ||= hosts.length < option.args.length
      for (const host of hosts) to.push(secondary(host.text, (message) => ctx.error(message, host)))
    } else if (option.name === 'source') {
      source = sourceAddress(option, source, ctx)
    } else throw ctx.error(`unknown property ${quote(option.name)}`, option, ['to', 'source'])
  }
  if (to.length === 0 && !anyone) throw ctx.error("'to' is required", use)
  return { zones, to, anyone, source }
}

function secondary(text: string, fail: (message: string) => Error): Secondary {
  let joined: string
  try {
    joined = parseHostPort(text, 53)
  } catch (error) {
    throw fail((error as Error).message)
  }
  const { host, port } = splitHostPort(joined)
  const bare = host.replace(/%.*$/, '')
  return { text: joined, host, port: Number(port), octets: parseAddress(bare)?.toString('latin1') ?? bare }
}

function sourceAddress(option: Directive, before: string | undefined, ctx: SetupContext): string {
  const [address] = option.args
  if (address === undefined || option.args.length !== 1) throw ctx.error(wrongCount(option), option)
  if (before !== undefined) throw ctx.error('source already specified', option)
  if (!isAddress(address.text) || address.text.includes('%')) throw ctx.error(`invalid source address ${quote(address.text)}`, address)
  return address.text
}
