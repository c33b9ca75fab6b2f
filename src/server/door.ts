/**
 * What is decided from the octets of a query before anything else looks at it: who is ignored, what is FORMERR or NOTIMP. The rules are
 * those of the library under CoreDNS, so that garbage gets the same answers.
 */
import { type Edns, type EdnsOption, Message, Name, OPCODE, OPTION, type Question, RCODE, WireError } from '../dns/index.js'

/** Not even an error is sent: it would be of use to nobody but an amplifier. */
export const IGNORE = -1
export const ACCEPT = 0

const QR = 0x8000

/** ACCEPT, IGNORE, or the rcode of the refusal (FORMERR, NOTIMP). Looks at the twelve octets of the header. */
export function admit(bytes: Buffer, length: number): number {
  if (length < 12) return IGNORE
  const flags = (bytes[2]! << 8) | bytes[3]!
  if ((flags & QR) !== 0) return IGNORE
  const opcode = (flags >> 11) & 0xf
  if (opcode !== OPCODE.QUERY && opcode !== OPCODE.NOTIFY) return RCODE.NOTIMP
  // NOTIFY may carry a SOA as answer (RFC 1996 §3.7), IXFR one as authority (RFC 1995 §3); OPT and TSIG are the two additional records.
  const high = bytes[4]! | bytes[6]! | bytes[8]! | bytes[10]!
  return high === 0 && bytes[5] === 1 && bytes[7]! <= 1 && bytes[9]! <= 1 && bytes[11]! <= 2 ? ACCEPT : RCODE.FORMERR
}

/**
 * Decodes an admitted query whole, so that no plugin meets octets that cannot be read. A message that ends before its counted records is
 * taken as if it had not counted them: `bytes` is corrected in place. Throws WireError for what is malformed.
 */
export function decodeQuery(bytes: Buffer, length: number): Message {
  if (length === 12) bytes.fill(0, 4, 12)
  let message = Message.received(bytes, 0, length)
  if (message.full >= 0) return message
  const { question } = message
  if (question !== undefined && dropMissing(bytes, length, question.end)) message = Message.received(bytes, 0, length)
  checkOptions(message.edns)
  return message
}

/** Of a message that cannot be decoded: its question, as far as it could be read. */
export function legibleQuestion(bytes: Buffer, length: number): Question | undefined {
  try {
    return Message.view(bytes, 0, length).question
  } catch (error) {
    if (error instanceof WireError) return undefined
    throw error
  }
}

/** Lowers the counts of records that are not there at all. Returns whether it changed something. */
function dropMissing(bytes: Buffer, length: number, from: number): boolean {
  let at = from
  for (let count = 6; count < 12; count += 2) {
    const records = bytes.readUInt16BE(count)
    for (let i = 0; i < records; i++) {
      if (at === length) {
        bytes.writeUInt16BE(i, count)
        bytes.fill(0, count + 2, 12)
        return true
      }
      at = Name.skip(bytes, at, 0, length) + 10
      if (at > length) throw new WireError('SHORT', 'record cut off')
      at += bytes.readUInt16BE(at - 2)
    }
  }
  return false
}

function checkOptions(edns: Edns | undefined): void {
  if (edns === undefined || edns.options.length === 0) return
  for (const option of edns.options) if (!wellFormed(option)) throw new WireError('RDATA', `EDNS option ${option.code} is malformed`)
}

/** Options whose content is known must have their form (RFC 7871 §7.1.2, RFC 7828 §3.1, RFC 7314, RFC 8914). */
function wellFormed({ code, data }: EdnsOption): boolean {
  if (code === OPTION.ECS) return wellFormedSubnet(data)
  if (code === OPTION.KEEPALIVE) return data.length === 0 || data.length === 2
  if (code === OPTION.EXPIRE) return data.length === 0 || data.length >= 4
  return code !== OPTION.EDE || data.length >= 2
}

function wellFormedSubnet(data: Buffer): boolean {
  if (data.length < 4) return false
  const family = data.readUInt16BE(0)
  if (family === 0) return data[2] === 0
  const bits = family === 1 ? 32 : family === 2 ? 128 : -1
  return data[2]! <= bits && data[3]! <= bits
}
