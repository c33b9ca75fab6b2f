/** `nsid`: tells a client that asks for it which server answered (RFC 5001). */
import { hostname } from 'node:os'
import { type Edns, type Message, OPTION } from '../../dns/index.js'
import { after, type Handler, ONCE, type Passing, type Plugin, type PluginModule, type Query, type Reply, UNTOUCHED } from '../contract.js'

const module: PluginModule = {
  name: 'nsid',
  apiVersion: 1,
  /** `nsid [DATA...]`; several words are joined by spaces. */
  setup(uses, ctx) {
    if (uses[1] !== undefined) throw ctx.fail(ONCE, uses[1])
    for (const option of uses[0]?.block ?? []) throw ctx.error(`unknown property '${option.name}'`, option)
    const words = uses[0]?.args.map(({ text }) => text) ?? []
    return new Nsid(Buffer.from(words.length === 0 ? hostname() || 'localhost' : words.join(' ')))
  },
}
export default module

class Nsid implements Plugin {
  readonly name = 'nsid'
  readonly wraps = true
  readonly #data: Buffer

  constructor(data: Buffer) {
    this.#data = data
  }

  serveDNS(query: Query, next: Handler): Reply | Promise<Reply> {
    const client = query.message.edns
    const result = next(query)
    if (!client?.options.some(({ code }) => code === OPTION.NSID)) return result
    return after(result, (reply) => this.#signed(reply, client))
  }

  /** Only replies to queries without options may stand. */
  stands(): Passing {
    return UNTOUCHED
  }

  #signed(reply: Message, client: Edns): Message {
    // Like CoreDNS: a reply that has no OPT record of its own gets one with DO.
    const edns = reply.edns ?? { size: client.size, extendedRcode: 0, version: 0, dnssecOk: true, z: 0, options: [] }
    const options = [...edns.options.filter(({ code }) => code !== OPTION.NSID), { code: OPTION.NSID, data: this.#data }]
    return reply.with({ edns: { ...edns, options } })
  }
}
