/** Turns the reply for the external name into one for the name that was asked. */
import { CLASS, type Message, Name, OPTION, RCODE, type RR, TYPE } from '../../src/dns/index.js'
import type { Query } from '../../src/plugins/contract.js'
import type { Failure } from './failures.js'

const NAME = 'cloud_ndots'

/**
 * NOERROR: a CNAME to the external name, then what its reply holds. AA and AD are off: the chain leaves our zone, and nobody signed the
 * CNAME. A truncated reply keeps TC and gives no records: half an RRset, or a CNAME alone, would be taken for the whole (RFC 2181 §9).
 */
export function rewritten(q: Query, external: Name, reply: Message, ttlCap: number): Message {
  const follow = [...reply.answers, ...reply.authorities]
  const ttl = follow.reduce((least, rr) => Math.min(least, rr.ttl), ttlCap)
  const alias: RR = { name: q.name, type: TYPE.CNAME, class: CLASS.IN, ttl, data: { kind: 'NAME', target: external } }
  const whole = !reply.tc
  return q
    .reply(NAME, RCODE.NOERROR, {
      answers: whole ? [alias, ...reply.answers] : [],
      authorities: whole ? reply.authorities : [],
      additionals: whole ? reply.additionals : [],
      aa: false,
    })
    .with({ tc: reply.tc, ra: reply.ra, edns: keepErrors(reply) })
}

/** NXDOMAIN with the SOA of the zone that was asked: the external zone's would be out of bailiwick (RFC 2308 §3). */
export function denied(q: Query, reply: Message, soa: RR, ttlCap: number): Message {
  return q.reply(NAME, RCODE.NXDOMAIN, { authorities: [capped(soa, ttlCap)], aa: false }).with({ ra: reply.ra, edns: keepErrors(reply) })
}

/** A failure under the question that was asked; never a denial. */
export function failed(q: Query, { rcode, ra }: Failure): Message {
  return q.reply(NAME, rcode, { aa: false }).with({ ra })
}

function capped(soa: RR, cap: number): RR {
  const data = soa.data.kind === 'SOA' ? { ...soa.data, minimum: Math.min(soa.data.minimum, cap) } : soa.data
  return { ...soa, ttl: Math.min(soa.ttl, cap), data }
}

/** An SOA in the form `kubernetes` gives its zones, for a zone that is served elsewhere. `serial` in seconds since 1970. */
export function madeUpSoa(zone: Name, ttl: number, serial: number): RR {
  return {
    name: zone,
    type: TYPE.SOA,
    class: CLASS.IN,
    ttl,
    data: {
      kind: 'SOA',
      mname: Name.parse('ns.dns.').append(zone),
      rname: Name.parse('hostmaster.').append(zone),
      serial,
      refresh: 7200,
      retry: 1800,
      expire: 86_400,
      minimum: ttl,
    },
  }
}

/** Extended errors (RFC 8914) such as "stale answer" concern the client as well; the rest of the OPT record is hop by hop. */
function keepErrors(reply: Message): Message['edns'] {
  const edns = reply.edns
  const options = edns?.options.filter((option) => option.code === OPTION.EDE) ?? []
  return edns === undefined || options.length === 0 ? undefined : { ...edns, extendedRcode: 0, options }
}
