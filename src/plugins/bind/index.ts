/** `bind`: the addresses that a block listens on, by address or by interface. */
import { networkInterfaces } from 'node:os'
import { type Argument, type Directive, isAddress, type PluginModule, quote, type SetupContext } from '../contract.js'

type Interfaces = ReturnType<typeof networkInterfaces>

const module: PluginModule = {
  name: 'bind',
  apiVersion: 1,
  setup(uses, ctx) {
    const interfaces = networkInterfaces()
    ctx.block.bind = uses.flatMap((use) => addressesOf(use, interfaces, ctx))
    return null
  },
}
export default module

/** `bind ADDRESS|IFACE... { except ADDRESS|IFACE... }`; the exceptions hold for this use alone. */
function addressesOf(use: Directive, interfaces: Interfaces, ctx: SetupContext): string[] {
  if (use.args.length === 0) throw ctx.fail('at least one address or interface name is expected', use)
  let except: readonly Argument[] = []
  for (const option of use.block ?? []) {
    if (option.name !== 'except') throw ctx.fail(`invalid option ${quote(option.name)}`, option)
    if (option.args.length === 0) throw ctx.fail('at least one address or interface must be given to except subdirective', option)
    except = option.args
  }
  const excluded = new Set(except.flatMap((argument) => resolve(argument, interfaces, ctx)))
  return use.args.flatMap((argument) => resolve(argument, interfaces, ctx)).filter((address) => !excluded.has(address))
}

function resolve(argument: Argument, interfaces: Interfaces, ctx: SetupContext): string[] {
  const { text } = argument
  const infos = Object.hasOwn(interfaces, text) ? interfaces[text] : undefined
  // A link-local address means nothing without its interface (RFC 4007 §11).
  if (infos !== undefined) return infos.map(({ address }) => (/^fe[89ab]/i.test(address) ? `${address}%${text}` : address))
  if (isAddress(text) && !text.includes('%')) return [text]
  const error = ctx.fail(`not a valid IP address or interface name: ${quote(text)}`, argument)
  // What looks like an address, or like a host name, can be no interface of the machine that this will run on.
  if (!ctx.checking || /[.:]/.test(text)) throw error
  ctx.note(`no interface '${text}' on this machine`, argument)
  return []
}
