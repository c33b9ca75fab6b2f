/** `any`: a short HINFO in place of everything that is known of a name (RFC 8482). */
import { CLASS, type RR, TYPE } from '../../dns/index.js'
import { type Handler, type Passing, type Plugin, type PluginModule, type Query, type Reply, UNTOUCHED, wrongCount } from '../contract.js'

const module: PluginModule = {
  name: 'any',
  apiVersion: 1,
  setup(uses, ctx) {
    const use = uses[0]!
    if (use.args.length > 0) throw ctx.error(wrongCount(use), use.args[0])
    const property = use.block?.[0]
    if (property !== undefined) throw ctx.error(`unknown property '${property.name}'`, property)
    return any
  },
}
export default module

const HINFO = Buffer.from('\x0dANY obsoleted\x0cSee RFC 8482', 'latin1')

const any: Plugin = {
  name: 'any',
  stands: ({ type }: Query): Passing | undefined => (type === TYPE.ANY ? undefined : UNTOUCHED),
  serveDNS(query: Query, next: Handler): Reply | Promise<Reply> {
    if (query.type !== TYPE.ANY) return next(query)
    const hinfo: RR = { name: query.name, type: TYPE.HINFO, class: CLASS.IN, ttl: 8482, data: { kind: 'OPAQUE', octets: HINFO } }
    return query.reply('any', 0, { answers: [hinfo], aa: false })
  },
}
