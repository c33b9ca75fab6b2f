/** `minimal`: takes the authority and additional sections off positive answers; denials, referrals and errors stay whole. */
import { Message, RCODE, type RR, scanMessage, TYPE } from '../../dns/index.js'
import { after, type Handler, type Plugin, type PluginModule, type Query, type Reply, wrongCount } from '../contract.js'

const module: PluginModule = {
  name: 'minimal',
  apiVersion: 1,
  setup(uses, ctx) {
    const use = uses[0]!
    if (use.args.length > 0) throw ctx.error(wrongCount(use), use.args[0])
    return minimal
  },
}
export default module

const minimal: Plugin = {
  name: 'minimal',
  wraps: true,
  serveDNS: (query: Query, next: Handler): Reply | Promise<Reply> => after(next(query), shorten),
}

function shorten(reply: Message): Message {
  if ((reply.flags & 0xf) !== RCODE.NOERROR || (reply.count(2) === 0 && reply.count(3) === 0)) return reply
  const { bytes } = reply
  return bytes === undefined ? shortenRecords(reply) : shortenOctets(reply, bytes)
}

/** Without answers there is still something to take off (whoami says all it knows in the additional section), unless it denies or refers. */
const isPlain = (answers: number, authorities: readonly { readonly type: number }[]): boolean =>
  answers > 0 || !authorities.some(({ type }) => type === TYPE.SOA || type === TYPE.NS)

function shortenRecords(reply: Message): Message {
  if (reply.rcode !== RCODE.NOERROR || !isPlain(reply.answers.length, reply.authorities)) return reply
  if (reply.edns?.dnssecOk === true && hasExpired([...reply.answers, ...reply.authorities, ...reply.additionals])) return reply
  return reply.with({ authorities: [], additionals: [], edns: undefined })
}

/** RRSIG: expiration at offset 8, inception at 12, compared as serial numbers (RFC 4034 §3.1.5). */
function hasExpired(records: readonly RR[]): boolean {
  const now = Math.floor(Date.now() / 1000)
  return records.some(({ type, data }) => {
    if (type !== TYPE.RRSIG || data.kind !== 'OPAQUE' || data.octets.length < 18) return false
    return ((data.octets.readUInt32BE(8) - now) | 0) < 0 || ((now - data.octets.readUInt32BE(12)) | 0) < 0
  })
}

/** Pointers only point backwards, so what stands behind the answers can be cut off as it is. */
function shortenOctets(reply: Message, bytes: Buffer): Message {
  const { offset, length } = reply
  const { records, opt } = scanMessage(bytes, offset, length)
  const answers = records.filter((record) => record.section === 1)
  // An OPT record may hold more of the rcode, or say that signatures matter: rare enough to read the records.
  const optFlags = opt === undefined ? 0 : bytes.readUInt32BE(offset + opt.ttlAt)
  if (optFlags !== 0) return shortenRecords(reply)
  if (
    !isPlain(
      answers.length,
      records.filter((record) => record.section === 2),
    )
  )
    return reply
  const last = answers.at(-1)
  const question = reply.question
  if (last === undefined && question === undefined) return shortenRecords(reply)
  const end = last === undefined ? 12 + question!.name.wire.length + 4 : last.dataAt + last.size
  const copy = Buffer.from(bytes.subarray(offset, offset + end))
  copy.writeUInt16BE(reply.flags, 2)
  copy.writeUInt32BE(0, 8)
  const short = Message.view(copy)
  short.by = reply.by
  short.live = reply.live
  return short
}
