/**
 * DNS cookies (RFC 7873) towards one upstream, for questions by UDP: with each goes a number of ours and the last one that the upstream gave
 * us. Who cannot see our questions cannot forge a reply that has ours, and the upstream knows that we are where we say.
 */
import { randomBytes } from 'node:crypto'
import { OPTION, TYPE } from '../../src/dns/index.js'
import { PREFIX, questionEnd } from './frame.js'
import type { Received } from './reply.js'

const CLIENT = 8
/** Option lengths (RFC 7873 §4): ours alone, or ours with 8 to 32 octets of the upstream's. */
const SHORTEST = 16
const LONGEST = 40
const BADCOOKIE = 23
/** What a client takes that did not send an OPT record. */
const PLAIN_SIZE = 512
const OPT_HEADER = 11

/** `forged`: not to be listened to. `unproven`: the same must be asked by TCP. */
export type Verdict = 'good' | 'forged' | 'unproven'

export class Cookies {
  readonly #own = randomBytes(CLIENT)
  #server: Buffer = Buffer.alloc(0)
  /** It has sent cookies: a reply without one is suspicious from then on. */
  #knows = false
  /** It does not understand EDNS at all. */
  #useless = false

  /** A copy of the frame with the cookie, and an OPT record for it if it had none. undefined: this one goes as it is. */
  put(frame: Buffer): Buffer | undefined {
    if (this.#useless || frame.readUInt32BE(PREFIX + 6) !== 0) return undefined
    const end = PREFIX + questionEnd(frame)
    const additional = frame.readUInt16BE(PREFIX + 10)
    const hasOpt = additional === 1 && frame[end] === 0 && frame.readUInt16BE(end + 1) === TYPE.OPT
    if (!hasOpt && additional !== 0) return undefined
    const size = CLIENT + this.#server.length
    const out = Buffer.alloc(frame.length + (hasOpt ? 0 : OPT_HEADER) + 4 + size)
    frame.copy(out)
    if (!hasOpt) {
      out.writeUInt16BE(1, PREFIX + 10)
      out.writeUInt16BE(TYPE.OPT, end + 1)
      out.writeUInt16BE(PLAIN_SIZE, end + 3)
    }
    const at = out.length - 4 - size
    out.writeUInt16BE(OPTION.COOKIE, at)
    out.writeUInt16BE(size, at + 2)
    this.#own.copy(out, at + 4)
    this.#server.copy(out, at + 4 + CLIENT)
    out.writeUInt16BE(out.readUInt16BE(end + 9) + 4 + size, end + 9)
    out.writeUInt16BE(out.length - PREFIX, 0)
    return out
  }

  /** Looks at the reply to a frame that had a cookie, and learns from it. */
  judge({ cookie, rcode }: Received): Verdict {
    if (cookie === undefined) return this.#without(rcode)
    if (cookie.length < CLIENT || !cookie.subarray(0, CLIENT).equals(this.#own)) return 'forged'
    if (cookie.length > LONGEST || (cookie.length > CLIENT && cookie.length < SHORTEST)) return 'forged'
    if (cookie.length > CLIENT) {
      this.#server = cookie.subarray(CLIENT)
      this.#knows = true
    }
    return rcode === BADCOOKIE ? 'unproven' : 'good'
  }

  #without(rcode: number): Verdict {
    if (this.#knows) return 'unproven'
    // FORMERR or NOTIMP: perhaps it is the OPT record. By TCP it gets the question as the client put it.
    if (rcode !== 1 && rcode !== 4) return 'good'
    this.#useless = true
    return 'unproven'
  }
}
