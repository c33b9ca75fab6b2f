/** What kind of reply a message is, in CoreDNS's terms. Wants the decoded sections, so it is only asked where a class or its name matters. */
import { type Message, OPCODE, RCODE, type RR, TYPE } from '../../dns/index.js'

export type Kind = 'NOERROR' | 'NXDOMAIN' | 'SERVERERROR' | 'NODATA' | 'DELEGATION' | 'META' | 'UPDATE' | 'OTHERERROR'
export type Class = 'success' | 'denial' | 'error'

export function classOf(kind: Kind): Class {
  if (kind === 'NOERROR' || kind === 'DELEGATION') return 'success'
  return kind === 'NXDOMAIN' || kind === 'NODATA' ? 'denial' : 'error'
}

/** `rcode` stands for the message's own, which lacks what only the OPT record of the answer would say. `now`: ms since 1970. */
export function kindOf(message: Message | undefined, now: number): Kind {
  if (message === undefined) return 'OTHERERROR'
  if (message.opcode === OPCODE.UPDATE) return 'UPDATE'
  if (message.opcode === OPCODE.NOTIFY) return 'META'
  const type = message.question?.type
  if (type === TYPE.AXFR || type === TYPE.IXFR) return 'META'
  if (message.edns?.dnssecOk && hasExpired(message, now)) return 'OTHERERROR'
  const { rcode } = message
  if (message.answers.length > 0) {
    if (rcode === RCODE.NOERROR) return 'NOERROR'
    if (rcode === RCODE.NXDOMAIN) return 'OTHERERROR'
  }
  if (rcode === RCODE.NXDOMAIN) return 'NXDOMAIN'
  if (rcode === RCODE.SERVFAIL || rcode === RCODE.NOTIMP) return 'SERVERERROR'
  if (rcode !== RCODE.NOERROR) return 'OTHERERROR'
  if (message.authorities.some((rr) => rr.type === TYPE.SOA)) return 'NODATA'
  return message.authorities.some((rr) => rr.type === TYPE.NS) ? 'DELEGATION' : 'NOERROR'
}

const hasExpired = (message: Message, now: number): boolean =>
  [message.answers, message.authorities, message.additionals].some((section) => section.some((rr) => signatureExpired(rr, now)))

/** Validity of an RRSIG in serial arithmetic on 32 bits (RFC 4034 §3.1.5). */
function signatureExpired(rr: RR, now: number): boolean {
  if (rr.type !== TYPE.RRSIG || rr.data.kind !== 'OPAQUE' || rr.data.octets.length < 18) return false
  const seconds = Math.floor(now / 1000)
  const expiration = rr.data.octets.readUInt32BE(8)
  const inception = rr.data.octets.readUInt32BE(12)
  return ((seconds - inception) | 0) < 0 || ((expiration - seconds) | 0) < 0
}
