/**
 * ExternalName services: a CNAME, followed to its end. Inside our zones the index is asked; anything else goes through the whole server
 * as if the client had asked for it, with stub domains, rewrites and the fall-through of this very plugin.
 */

import { type Message, Name, RCODE, type RR, TYPE } from '../../src/dns/index.js'
import { after, isCrash, isPromise, type Reply, type SetupContext } from '../../src/plugins/contract.js'
import type { Asked, Kubernetes } from './kubernetes.js'
import { addressRecords, nameRecord } from './records.js'
import { zoneAsAsked } from './zones.js'

/** As many aliases as CoreDNS follows within its zones. */
const LONGEST_CHAIN = 10

export function aliasReply(plugin: Kubernetes, asked: Asked, target: string, ctx: SetupContext): Reply | Promise<Reply> {
  const { type } = asked.query
  const name = Name.tryParse(target)
  if (type === TYPE.CNAME && name !== undefined)
    return asked.query.reply(plugin.name, RCODE.NOERROR, { answers: [nameRecord(asked.query.name, type, name, plugin.ttl)], live: true })
  if (type !== TYPE.A && type !== TYPE.AAAA) return plugin.negative(asked, RCODE.NOERROR)
  return follow(plugin, asked, target, ctx)
}

function follow(plugin: Kubernetes, asked: Asked, first: string, ctx: SetupContext): Reply | Promise<Reply> {
  const { query } = asked
  const chain: RR[] = []
  const seen = new Set<string>()
  let owner = query.name
  let target = first
  for (;;) {
    const name = Name.tryParse(target)
    seen.add(owner.key)
    // What leads nowhere (to itself, below itself, in a circle, too far) is left out: NODATA, as CoreDNS has it.
    if (name === undefined || name.isUnder(owner) || seen.has(name.key) || seen.size > LONGEST_CHAIN)
      return plugin.negative(asked, RCODE.NOERROR)
    chain.push(nameRecord(owner, TYPE.CNAME, name, plugin.ttl))
    const zone = plugin.zoneOf(name)
    if (zone === undefined || name.key === zone.nsKey) return elsewhere(plugin, asked, chain, name, ctx)
    const outcome = plugin.find(name, zone, false)
    if (outcome.kind === 'external') {
      owner = name
      target = outcome.target
      continue
    }
    if (outcome.kind === 'absent' && plugin.fallsThrough(name)) return elsewhere(plugin, asked, chain, name, ctx)
    const addresses = outcome.kind === 'found' ? addressRecords(name, query.type, outcome.found, plugin.ttl) : []
    if (addresses.length > 0) return query.reply(plugin.name, RCODE.NOERROR, { answers: [...chain, ...addresses], live: true })
    // The denial is the target's (RFC 6604 §3): its rcode, and the SOA of its zone.
    const denied: Asked = { ...asked, zone, apex: zoneAsAsked(zone, name) }
    return plugin.negative(denied, outcome.kind === 'absent' ? plugin.absentRcode : RCODE.NOERROR, chain)
  }
}

function elsewhere(plugin: Kubernetes, asked: Asked, chain: readonly RR[], name: Name, ctx: SetupContext): Reply | Promise<Reply> {
  const { query } = asked
  const failed = (error: unknown): Reply => {
    // The chain that failed has had its `errors`; what is a fault of ours goes on up.
    if (isCrash(error)) throw error
    query.note?.(`${name} could not be resolved: ${String(error)}`)
    return unresolved(plugin, asked, chain)
  }
  const joined = (reply: Message): Reply => join(plugin, asked, chain, reply)
  try {
    const result = ctx.resolve(query.derive(name))
    // No block covers the target: its name is all that we can say, as an authoritative server does.
    if (result === undefined) return query.reply(plugin.name, RCODE.NOERROR, { answers: chain, live: true })
    const whole = after(result, joined)
    return isPromise(whole) ? whole.catch(failed) : whole
  } catch (error) {
    return failed(error)
  }
}

function join(plugin: Kubernetes, asked: Asked, chain: readonly RR[], reply: Message): Reply {
  if (reply.rcode !== RCODE.NOERROR && reply.rcode !== RCODE.NXDOMAIN) return unresolved(plugin, asked, chain)
  const { type } = asked.query
  const negative = !reply.answers.some((rr) => rr.type === type)
  return asked.query
    .reply(plugin.name, reply.rcode, {
      answers: [...chain, ...reply.answers],
      authorities: negative ? reply.authorities : [],
      live: true,
    })
    .with({ tc: reply.tc })
}

/** A stub resolver is to try elsewhere or later; one that does the work itself (no RD) takes the CNAME and goes on. */
function unresolved(plugin: Kubernetes, { query }: Asked, chain: readonly RR[]): Reply {
  return query.reply(plugin.name, query.message.rd ? RCODE.SERVFAIL : RCODE.NOERROR, { answers: chain, live: true })
}
