/**
 * One DNS message: octets beside a lazy view, or records that become octets when sent. Immutable; a changed copy shares what did not change.
 * Reading the header or the question decodes nothing else; the first touch of a section decodes all four, bounded by the message's length.
 */
import { FLAG, TYPE } from './constants.js'
import { encodeMessage } from './encode.js'
import { WireError } from './errors.js'
import { Name } from './name.js'
import { applyPatch } from './patch.js'
import { type Question, readQuestion } from './question.js'
import { decodeRdata } from './rdata.js'
import type { Edns, EdnsOption, RR } from './records.js'
import { type Layout, layoutOf, NO_LAYOUT, scanMessage } from './scan.js'

interface Sections {
  readonly answers: readonly RR[]
  readonly authorities: readonly RR[]
  /** Without OPT. */
  readonly additionals: readonly RR[]
  readonly edns: Edns | undefined
  /** Octets behind the last record. */
  readonly trailing: number
}

/** What `with` may change. `rcode` is the whole 12-bit code: its upper bits need an `edns`. */
export interface Change {
  readonly id?: number
  readonly flags?: number
  readonly rcode?: number
  readonly aa?: boolean
  readonly tc?: boolean
  readonly rd?: boolean
  readonly ra?: boolean
  readonly ad?: boolean
  readonly cd?: boolean
  readonly question?: Question | undefined
  readonly answers?: readonly RR[]
  readonly authorities?: readonly RR[]
  readonly additionals?: readonly RR[]
  readonly edns?: Edns | undefined
}

/** Where messages are put together before they get a buffer of their own; used within one call only. */
const scratch = Buffer.allocUnsafeSlow(65_535)

/** The engine takes a view for each part that it copies; fewer octets cost less one by one. */
const FEW = 192

const EMPTY: Sections = { answers: [], authorities: [], additionals: [], edns: undefined, trailing: 0 }

export class Message {
  readonly id: number
  /** The second header word: QR, opcode, AA, TC, RD, RA, Z, AD, CD, rcode. */
  readonly flags: number
  readonly length: number
  /** Name of the plugin that made this reply; "" for the server itself. Set by its maker, once. */
  by = ''
  /** True for replies made from live local data (kubernetes, hosts, file): `cache` passes them by. */
  live = false
  /** Octets without compression, where somebody has counted them; -1: nobody has. */
  full = -1
  /** Where the records without OPT end, if nothing but one OPT record may follow them and all is in octets; -1: nobody has looked. */
  tail = -1
  #bytes: Buffer | undefined
  #offset: number
  /** What goes over the octets when they are copied, with the three below; undefined: they stand as they are. */
  #layout: Layout | undefined = undefined
  #ttl = -1
  #seed = 0
  #spelling: Buffer | undefined = undefined
  #plain = false
  #question: Question | undefined | null
  #sections: Sections | undefined

  private constructor(
    id: number,
    flags: number,
    bytes: Buffer | undefined,
    offset: number,
    length: number,
    question: Question | undefined | null,
    sections: Sections | undefined,
  ) {
    this.id = id
    this.flags = flags
    this.#bytes = bytes
    this.#offset = offset
    this.length = length
    this.#question = question
    this.#sections = sections
  }

  /** A view on received octets; only the 12 octets of the header are looked at. Throws WireError if there are fewer. */
  static view(bytes: Buffer, offset = 0, length: number = bytes.length - offset): Message {
    if (length < 12 || offset + length > bytes.length) throw new WireError('SHORT', `message of ${length} octets`)
    return new Message(word(bytes, offset), word(bytes, offset + 2), bytes, offset, length, null, undefined)
  }

  /**
   * A view on a query that came in: its question is read at once, and if nothing follows it but an OPT record without options, all is known
   * of it without decoding. Throws WireError if there is no header or the question is malformed.
   */
  static received(bytes: Buffer, offset: number, length: number): Message {
    const message = Message.view(bytes, offset, length)
    const { question } = message
    if (question === undefined) return message
    const end = offset + question.end
    const left = length - question.end
    const counts = offset + 4
    if (bytes[counts + 1] !== 1 || (bytes[counts + 3]! | bytes[counts + 5]!) !== 0) return message
    if (left === 0 && bytes[counts + 7] === 0) message.#sections = EMPTY
    else if (left === OPT_OCTETS && bytes[counts + 7] === 1 && isBareOpt(bytes, end)) message.#sections = bareOpt(bytes, end)
    else return message
    message.full = length
    return message
  }

  /**
   * A reply to `to` out of kept octets: a header, the question and records, exactly as long as `wire`. Copied and changed only when it is
   * written: id and question octets are those of `to`, every TTL is `ttl` seconds (-1: as kept). The caller vouches that `to` asks the
   * same question, that `layout` is that of `wire`, that its question has no upper-case letter, that there is no
   * OPT and no TSIG in it, and leaves `wire` alone from here on.
   */
  static stored(wire: Buffer, layout: Layout, to: Message, flags: number, ttl: number): Message {
    const { question } = to
    const reply = new Message(to.id, flags, wire, 0, wire.length, question, undefined)
    reply.#layout = layout
    reply.#ttl = ttl
    reply.#plain = true
    if (question !== undefined && !question.name.isFolded) reply.#spelling = question.name.wire
    return reply
  }

  /** A view on the reply to `to` that came from elsewhere. The caller vouches that it has the same id and question, in the same letters. `tail`: see there. */
  static answered(bytes: Buffer, offset: number, length: number, to: Message, tail = -1): Message {
    const message = new Message(to.id, word(bytes, offset + 2), bytes, offset, length, to.question, undefined)
    message.tail = tail
    return message
  }

  /** A reply to `to`, empty or with these records: same id, opcode and question, for queries also RD and CD; QR set (what CoreDNS's SetReply does). */
  static reply(to: Message, rcode = 0, aa = false, records?: Pick<Change, 'answers' | 'authorities' | 'additionals'>): Message {
    const kept = to.opcode === 0 ? FLAG.RD | FLAG.CD : 0x7800
    const flags = FLAG.QR | (to.flags & kept) | (rcode & 0xf) | (aa ? FLAG.AA : 0)
    const sections = records === undefined ? EMPTY : { ...EMPTY, ...records }
    return new Message(to.id, flags, undefined, 0, 0, to.question, sections)
  }

  /** A query with RD set and a question of class IN unless told otherwise. */
  static query(name: Name, type: number, change: Change = {}, cls = 1): Message {
    return new Message(0, FLAG.RD, undefined, 0, 0, { name, type, class: cls, end: 0 }, EMPTY).with(change)
  }

  /** Whether there are octets: `encode` then copies. */
  get fromOctets(): boolean {
    return this.#bytes !== undefined
  }
  /** The octets of this message as it is sent, or undefined if it was made of records. Counts from `offset`. Not to be changed. */
  get bytes(): Buffer | undefined {
    if (this.#layout !== undefined) this.#materialise()
    return this.#bytes
  }
  /** Of a message out of kept octets: what is known of these. */
  get layout(): Layout | undefined {
    return this.#layout === NO_LAYOUT ? undefined : this.#layout
  }
  /** Seconds that all records of a message out of kept octets get; -1: each has its own. */
  get ttl(): number {
    return this.#ttl
  }
  /** Made by `stored`: one question, records, nothing else, so that it can go out as it is. */
  get isPlain(): boolean {
    return this.#plain
  }
  /** What `look` makes of the octets without putting anything together: id, flags, TTLs and spelling may be older ones. undefined: there are none. */
  measure(look: (bytes: Buffer, offset: number, length: number) => number): number | undefined {
    return this.#bytes === undefined ? undefined : look(this.#bytes, this.#offset, this.length)
  }
  /** Where the message begins in `bytes`. */
  get offset(): number {
    if (this.#layout !== undefined) this.#materialise()
    return this.#offset
  }

  get opcode(): number {
    return (this.flags >> 11) & 0xf
  }
  /** The whole rcode, with the upper bits of the OPT record once the sections were decoded or the message was made from records. */
  get rcode(): number {
    const high = this.#sections?.edns?.extendedRcode ?? 0
    return (high << 4) | (this.flags & 0xf)
  }
  get qr(): boolean {
    return (this.flags & FLAG.QR) !== 0
  }
  get aa(): boolean {
    return (this.flags & FLAG.AA) !== 0
  }
  get tc(): boolean {
    return (this.flags & FLAG.TC) !== 0
  }
  get rd(): boolean {
    return (this.flags & FLAG.RD) !== 0
  }
  get ra(): boolean {
    return (this.flags & FLAG.RA) !== 0
  }
  get ad(): boolean {
    return (this.flags & FLAG.AD) !== 0
  }
  get cd(): boolean {
    return (this.flags & FLAG.CD) !== 0
  }

  /** Count field 0…3 (QD, AN, NS, AR) as it stands in the header; for messages made of records, what it will be. */
  count(section: 0 | 1 | 2 | 3): number {
    if (this.#bytes !== undefined) return word(this.#bytes, this.#offset + 4 + 2 * section)
    if (section === 0) return this.#question ? 1 : 0
    const sections = this.#decoded()
    if (section === 1) return sections.answers.length
    return section === 2 ? sections.authorities.length : sections.additionals.length + (sections.edns === undefined ? 0 : 1)
  }

  /** The first question, or undefined if QDCOUNT is 0. Throws WireError if it is malformed. */
  get question(): Question | undefined {
    if (this.#question === null) this.#question = this.#readQuestion()
    return this.#question
  }

  get answers(): readonly RR[] {
    return this.#decoded().answers
  }
  get authorities(): readonly RR[] {
    return this.#decoded().authorities
  }
  /** The additional section without OPT. */
  get additionals(): readonly RR[] {
    return this.#decoded().additionals
  }
  /** The OPT record. Found without decoding the rest where it stands alone in a message without other records, as in queries. */
  get edns(): Edns | undefined {
    return this.#decoded().edns
  }
  /** Octets behind the last record. */
  get trailing(): number {
    return this.#decoded().trailing
  }

  /** A changed copy. Sections that are not named are shared. `by` and `live` carry over. */
  with(change: Change): Message {
    const sections = this.#decoded()
    let flags = change.flags ?? this.flags
    flags = setBit(flags, FLAG.AA, change.aa)
    flags = setBit(flags, FLAG.TC, change.tc)
    flags = setBit(flags, FLAG.RD, change.rd)
    flags = setBit(flags, FLAG.RA, change.ra)
    flags = setBit(flags, FLAG.AD, change.ad)
    flags = setBit(flags, FLAG.CD, change.cd)
    let edns = 'edns' in change ? change.edns : sections.edns
    if (change.rcode !== undefined) {
      flags = (flags & ~0xf) | (change.rcode & 0xf)
      if (edns !== undefined) edns = { ...edns, extendedRcode: change.rcode >> 4 }
    }
    const copy = new Message(change.id ?? this.id, flags, undefined, 0, 0, 'question' in change ? change.question : this.question, {
      answers: change.answers ?? sections.answers,
      authorities: change.authorities ?? sections.authorities,
      additionals: change.additionals ?? sections.additionals,
      edns,
      trailing: 0,
    })
    copy.by = this.by
    copy.live = this.live
    return copy
  }

  /**
   * The same message as the answer to `to`, which asks the same question, with these flags (whole second header word). Octets are shared, and
   * nothing is decoded. With itself for `to`: a copy with other flags.
   */
  as(to: Message, flags: number): Message {
    const own = to === this
    const sections = own || this.#bytes === undefined ? this.#sections : undefined
    const copy = new Message(to.id, flags, this.#bytes, this.#offset, this.length, own ? this.#question : to.question, sections)
    if (this.#bytes !== undefined) {
      copy.#layout = this.#layout ?? NO_LAYOUT
      copy.#ttl = this.#ttl
      copy.#seed = this.#seed
      copy.#plain = this.#plain
      copy.#spelling = own ? this.#spelling : to.question?.name.wire
    }
    copy.by = this.by
    copy.live = this.live
    return copy
  }

  /**
   * The answer's addresses in an order that `seed` (any 32 bits but 0) decides, without decoding. Itself if nothing in the message could change
   * places; undefined if that takes more than swapping addresses, or the message was made of records.
   */
  shuffled(seed: number): Message | undefined {
    if (this.#bytes === undefined) return undefined
    const known = this.#layout
    const layout = known === undefined || known === NO_LAYOUT ? this.#scanned() : known
    if (layout.mixed) return undefined
    if (layout.addresses.length < 2) return this
    const copy = new Message(this.id, this.flags, this.#bytes, this.#offset, this.length, this.#question, undefined)
    copy.#layout = layout
    copy.#ttl = this.#ttl
    copy.#seed = seed
    copy.#plain = this.#plain
    copy.#spelling = this.#spelling
    copy.by = this.by
    copy.live = this.live
    return copy
  }

  /** Writes the message at `at` of `into`, at most `limit` octets (else cut record-wise, TC set). Returns its length. Throws WireError if not even the question fits. */
  encode(into: Buffer, at: number, limit: number): number {
    if (this.#bytes !== undefined && this.length <= limit) {
      if (this.length === this.#bytes.length) into.set(this.#bytes, at)
      else if (this.length > FEW) this.#bytes.copy(into, at, this.#offset, this.#offset + this.length)
      else for (let i = 0, from = this.#offset; i < this.length; i++) into[at + i] = this.#bytes[from + i]!
      if (this.#layout !== undefined) {
        into[at] = this.id >>> 8
        into[at + 1] = this.id
        into[at + 2] = this.flags >>> 8
        into[at + 3] = this.flags
        applyPatch(this.#layout, this.#ttl, this.#seed, this.#spelling, into, at)
      }
      return this.length
    }
    const sections = this.#decoded()
    return encodeMessage({ id: this.id, flags: this.flags, question: this.question, ...sections }, into, at, limit)
  }

  /** The message as a buffer of its own. */
  toBuffer(limit = 65_535): Buffer {
    return Buffer.from(scratch.subarray(0, this.encode(scratch, 0, Math.min(limit, scratch.length))))
  }

  #readQuestion(): Question | undefined {
    if (this.#bytes === undefined || this.count(0) === 0) return undefined
    return readQuestion(this.#bytes, this.#offset, this.length)
  }

  #decoded(): Sections {
    this.#sections ??= decodeSections(this.bytes!, this.#offset, this.length)
    return this.#sections
  }

  /** Makes the patch part of the octets, for whoever reads these. */
  #materialise(): void {
    const own = Buffer.allocUnsafe(this.length)
    this.encode(own, 0, this.length)
    this.#bytes = own
    this.#offset = 0
    this.#layout = undefined
    this.#ttl = -1
    this.#seed = 0
  }

  #scanned(): Layout {
    const bytes = this.#bytes!
    return layoutOf(scanMessage(bytes, this.#offset, this.length), bytes, this.#offset, this.length)
  }
}

/** As readUInt16BE, without its checks: this is done several times for each query. The caller knows that both octets are there. */
const word = (bytes: Buffer, at: number): number => (bytes[at]! << 8) | bytes[at + 1]!

const setBit = (flags: number, bit: number, on: boolean | undefined): number => (on === undefined ? flags : on ? flags | bit : flags & ~bit)

/** Octets of an OPT record without options. */
const OPT_OCTETS = 11

/** Whether an OPT record without options begins at `at`. That its 11 octets are there is for the caller to know. */
export const isBareOpt = (bytes: Buffer, at: number): boolean =>
  bytes[at] === 0 && bytes[at + 1] === 0 && bytes[at + 2] === TYPE.OPT && bytes[at + 9] === 0 && bytes[at + 10] === 0

/** Of the last such record: most clients send the same one each time. */
let lastOpt: Sections = EMPTY
let lastOptBits = -1

function bareOpt(bytes: Buffer, at: number): Sections {
  const bits = word(bytes, at + 3) * 0x1_0000_0000 + word(bytes, at + 5) * 0x1_0000 + word(bytes, at + 7)
  if (bits !== lastOptBits) {
    lastOpt = { ...EMPTY, edns: decodeOpt(bytes, at + 1, at + OPT_OCTETS, 0) }
    lastOptBits = bits
  }
  return lastOpt
}

function decodeSections(bytes: Buffer, offset: number, length: number): Sections {
  const end = offset + length
  const counts = [0, 1, 2, 3].map((i) => bytes.readUInt16BE(offset + 4 + 2 * i)) as [number, number, number, number]
  // A question takes at least 5 octets and a record 11: what cannot fit is refused before anything is made.
  if (counts[0] * 5 + (counts[1] + counts[2] + counts[3]) * 11 > length - 12)
    throw new WireError('COUNT', 'counts exceed the length of the message')
  let at = offset + 12
  for (let i = 0; i < counts[0]; i++) {
    at = Name.skip(bytes, at, offset, end) + 4
    if (at > end) throw new WireError('SHORT', 'question cut off')
  }
  let edns: Edns | undefined
  const section = (count: number, additional: boolean): RR[] => {
    const records: RR[] = []
    for (let i = 0; i < count; i++) {
      const name = Name.read(bytes, at, offset, end)
      at = Name.lastEnd
      if (at + 10 > end) throw new WireError('SHORT', 'record cut off')
      const type = bytes.readUInt16BE(at)
      const size = bytes.readUInt16BE(at + 8)
      const data = at + 10
      if (data + size > end) throw new WireError('SHORT', 'record data cut off')
      if (additional && type === TYPE.OPT) {
        if (edns !== undefined || !name.isRoot) throw new WireError('RDATA', 'more than one OPT record, or one not at the root')
        edns = decodeOpt(bytes, at, data, size)
      } else {
        const cls = bytes.readUInt16BE(at + 2)
        const ttl = bytes.readUInt32BE(at + 4)
        records.push({ name, type, class: cls, ttl, data: decodeRdata(type, cls, bytes, data, size, offset, end) })
      }
      at = data + size
    }
    return records
  }
  const answers = section(counts[1], false)
  const authorities = section(counts[2], false)
  const additionals = section(counts[3], true)
  return { answers, authorities, additionals, edns, trailing: end - at }
}

function decodeOpt(bytes: Buffer, at: number, data: number, size: number): Edns {
  const options: EdnsOption[] = []
  for (let i = data; i < data + size; ) {
    if (i + 4 > data + size) throw new WireError('RDATA', 'EDNS option cut off')
    const length = bytes.readUInt16BE(i + 2)
    if (i + 4 + length > data + size) throw new WireError('RDATA', 'EDNS option cut off')
    options.push({ code: bytes.readUInt16BE(i), data: Buffer.from(bytes.subarray(i + 4, i + 4 + length)) })
    i += 4 + length
  }
  const flags = bytes.readUInt16BE(at + 6)
  return {
    size: bytes.readUInt16BE(at + 2),
    extendedRcode: bytes[at + 4]!,
    version: bytes[at + 5]!,
    dnssecOk: (flags & 0x8000) !== 0,
    z: flags & 0x7fff,
    options,
  }
}
