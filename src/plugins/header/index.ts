/** `header`: sets and clears flags of queries and replies. */
import { FLAG, type Message } from '../../dns/index.js'
import {
  after,
  type Directive,
  type Handler,
  type Plugin,
  type PluginModule,
  type Query,
  type Reply,
  type SetupContext,
  wrongCount,
} from '../contract.js'

const FLAGS: Readonly<Record<string, number>> = { aa: FLAG.AA, ra: FLAG.RA, rd: FLAG.RD }

/** Bits to set and to clear; what is named later counts. */
interface Rules {
  readonly set: number
  readonly clear: number
}

const module: PluginModule = {
  name: 'header',
  apiVersion: 1,
  /** As in CoreDNS the first use that has rules is the one that counts. */
  setup(uses, ctx) {
    const use = uses.find(({ block }) => block !== undefined && block.length > 0)
    if (use === undefined) throw ctx.error(wrongCount(uses[0]!), uses[0])
    const rules = { query: { set: 0, clear: 0 }, response: { set: 0, clear: 0 } }
    for (const option of use.block ?? []) {
      const selector = option.name.toLowerCase()
      if (selector !== 'query' && selector !== 'response')
        throw ctx.fail(`setting up rule: invalid selector=${selector} should be query or response`, option)
      rules[selector] = added(rules[selector], option, ctx)
    }
    return new Header(rules.query, rules.response)
  },
}
export default module

function added({ set, clear }: Rules, option: Directive, ctx: SetupContext): Rules {
  const [action, ...flags] = option.args
  if (action === undefined) throw ctx.fail('setting up rule: no flag action provided', option)
  if (flags.length === 0) throw ctx.fail('setting up rule: invalid length for flags, at least one should be provided', option)
  const verb = action.text.toLowerCase()
  if (verb !== 'set' && verb !== 'clear') throw ctx.fail(`setting up rule: unknown flag action=${verb}, should be set or clear`, action)
  let bits = 0
  for (const flag of flags) {
    const name = flag.text.toLowerCase()
    if (!Object.hasOwn(FLAGS, name)) throw ctx.fail(`setting up rule: unknown/unsupported flag=${name}`, flag)
    bits |= FLAGS[name]!
  }
  return verb === 'set' ? { set: set | bits, clear: clear & ~bits } : { set: set & ~bits, clear: clear | bits }
}

class Header implements Plugin {
  readonly name = 'header'
  readonly wraps = true
  readonly #query: Rules
  readonly #response: Rules

  constructor(query: Rules, response: Rules) {
    this.#query = query
    this.#response = response
  }

  serveDNS(query: Query, next: Handler): Reply | Promise<Reply> {
    const message = changed(query.message, this.#query)
    return after(next(message === query.message ? query : query.carrying(message)), (reply) => changed(reply, this.#response))
  }
}

function changed(message: Message, { set, clear }: Rules): Message {
  const flags = (message.flags & ~clear) | set
  return flags === message.flags ? message : message.as(message, flags)
}
