/**
 * Domain names as octets (RFC 1035 §3.1, RFC 4343). The client's spelling is kept in the wire form; the folded key is
 * what look-ups use. Folding is by hand, ASCII only: toLowerCase would map 0xC0 to 0xE0 and let two names meet.
 */
import { WireError } from './errors.js'

const MAX_NAME = 255
const MAX_LABEL = 63
/** A name of 255 octets has at most 127 labels; more hops than that cannot make a legal name. */
const MAX_HOPS = 127

/** Wire octets of the name that was read last; copied out before the next is read. */
const scratch = Buffer.alloc(MAX_NAME + 1)
const folded = Buffer.alloc(MAX_NAME + 1)

/** Where `readName` left off, in the message: the octet after the name (after the first pointer, if there was one). */
let endOfName = 0

export class Name {
  static readonly root: Name = new Name('', Buffer.from([0]))

  /** Folded wire octets as Latin-1 text, root label left off. Equal names have equal keys. */
  readonly key: string
  /** undefined: as the key has it, and not made yet. */
  #wire: Buffer | undefined
  #text: string | undefined
  #spelling: string | undefined
  /** Known to have no upper-case letter. */
  readonly isFolded: boolean

  private constructor(key: string, wire: Buffer | undefined, isFolded = wire === undefined) {
    this.key = key
    this.#wire = wire
    this.isFolded = isFolded
  }

  /** Uncompressed wire form with the root label, in the spelling it came in. Not to be changed. */
  get wire(): Buffer {
    this.#wire ??= Buffer.from(`${this.key}\0`, 'latin1')
    return this.#wire
  }

  /** Reads presentation form (RFC 1035 §5.1 escapes); a missing final dot is added. Throws WireError. */
  static parse(text: string): Name {
    if (text === '.' || text === '') {
      if (text === '') throw new WireError('TEXT', 'empty name')
      return Name.root
    }
    return fromOctets(parseText(text))
  }

  /** As `parse`, but undefined for what is not a name. */
  static tryParse(text: string): Name | undefined {
    try {
      return Name.parse(text)
    } catch (error) {
      if (error instanceof WireError) return undefined
      throw error
    }
  }

  /** Reads a possibly compressed name at `offset` of a message that spans start…end of `bytes`. Throws WireError. `Name.lastEnd` is the octet behind it. */
  static read(bytes: Buffer, offset: number, start: number, end: number): Name {
    const length = readName(bytes, offset, start, end)
    if (length === 1) return Name.root
    return new Name(folded.toString('latin1', 0, length - 1), Buffer.from(scratch.subarray(0, length)))
  }

  /** The octet behind the name that `Name.read` or `Name.skip` looked at last. */
  static get lastEnd(): number {
    return endOfName
  }

  /** Checks a name as `read` does, without making one. Returns the octet behind it. */
  static skip(bytes: Buffer, offset: number, start: number, end: number): number {
    readName(bytes, offset, start, end)
    return endOfName
  }

  /** From raw labels (octets), without the root. Throws WireError if one is empty or too long, or the whole is. */
  static fromLabels(labels: readonly Buffer[]): Name {
    if (labels.length === 0) return Name.root
    const parts: Buffer[] = []
    for (const label of labels) {
      if (label.length === 0 || label.length > MAX_LABEL) throw new WireError('LABEL', `label of ${label.length} octets`)
      parts.push(Buffer.from([label.length]), label)
    }
    parts.push(Buffer.from([0]))
    return fromOctets(Buffer.concat(parts))
  }

  /** From a key (already folded wire octets as Latin-1, root left off). The caller vouches for its form. */
  static fromKey(key: string): Name {
    return key === '' ? Name.root : new Name(key, undefined)
  }

  /** This name in another spelling: `wire` has the same octets but for the case of letters. */
  spelledAs(wire: Buffer): Name {
    return this.key === '' ? this : new Name(this.key, wire)
  }

  /** For names that live long: the same one, with octets of its own instead of a share of a slab that they would keep alive. */
  kept(): Name {
    if (this.key === '') return this
    const wire = Buffer.allocUnsafeSlow(this.key.length + 1)
    wire.write(this.key, 0, 'latin1')
    wire[this.key.length] = 0
    return new Name(this.key, wire, true)
  }

  /** As `key`, but in the spelling it came in: what compression compares, so that no letter changes its case on the way. */
  get spelling(): string {
    if (this.#spelling === undefined) {
      const wire = this.#wire
      this.#spelling = wire === undefined ? this.key : wire.toString('latin1', 0, wire.length - 1)
    }
    return this.#spelling
  }

  /** Number of labels, root not counted. */
  get labelCount(): number {
    let count = 0
    for (let at = 0; at < this.key.length; at += this.key.charCodeAt(at) + 1) count++
    return count
  }

  get isRoot(): boolean {
    return this.key === ''
  }

  equals(other: Name): boolean {
    return this.key === other.key
  }

  /** True if this name is `zone` or below it, by whole labels. */
  isUnder(zone: Name): boolean {
    if (zone.key.length === 0) return true
    const rest = this.key.length - zone.key.length
    if (rest < 0 || !this.key.endsWith(zone.key)) return false
    let at = 0
    while (at < rest) at += this.key.charCodeAt(at) + 1
    return at === rest
  }

  /** The name without its first `count` labels (root if there are fewer). */
  strip(count: number): Name {
    let at = 0
    for (let i = 0; i < count && at < this.key.length; i++) at += this.key.charCodeAt(at) + 1
    if (at === 0) return this
    return at >= this.key.length ? Name.root : new Name(this.key.slice(at), this.#wire?.subarray(at))
  }

  /** The labels before `zone`, as a name of their own: a.b.example.org relative to example.org is a.b. The caller knows that this name is under it. */
  before(zone: Name): Name {
    const rest = this.key.length - zone.key.length
    if (rest <= 0) return Name.root
    const wire = this.#wire === undefined ? undefined : Buffer.concat([this.#wire.subarray(0, rest), Name.root.wire])
    return new Name(this.key.slice(0, rest), wire)
  }

  /** This name (taken as relative) with `zone` behind it. Throws WireError past 255 octets. */
  append(zone: Name): Name {
    const key = this.key + zone.key
    if (key.length + 1 > MAX_NAME) throw new WireError('NAME', `name of ${key.length + 1} octets`)
    if (this.#wire === undefined && zone.#wire === undefined) return Name.fromKey(key)
    return new Name(key, Buffer.concat([this.wire.subarray(0, this.key.length), zone.wire]))
  }

  /** Label `index` in the client's spelling, as Latin-1 text without escapes; '' past the end. */
  label(index: number): string {
    let at = 0
    for (let i = 0; i < index && at < this.wire.length - 1; i++) at += this.wire[at]! + 1
    return this.wire.toString('latin1', at + 1, at + 1 + this.wire[at]!)
  }

  /** Folded label `index` as Latin-1 text; '' past the end. */
  foldedLabel(index: number): string {
    let at = 0
    for (let i = 0; i < index && at < this.key.length; i++) at += this.key.charCodeAt(at) + 1
    return at >= this.key.length ? '' : this.key.slice(at + 1, at + 1 + this.key.charCodeAt(at))
  }

  /** "example.org." with escapes, in the spelling it came in. */
  toString(): string {
    this.#text ??= print(this.wire)
    return this.#text
  }

  /** As toString, folded. */
  toLowerCase(): string {
    if (this.isFolded) return this.toString()
    return print(Buffer.from(`${this.key}\0`, 'latin1'))
  }
}

function fromOctets(wire: Buffer): Name {
  return Name.read(wire, 0, 0, wire.length)
}

/** Fills `scratch` and `folded`; returns the length with the root label. */
function readName(bytes: Buffer, offset: number, start: number, end: number): number {
  let at = offset
  let limit = offset
  let out = 0
  let hops = 0
  let jumped = false
  for (;;) {
    if (at >= end) throw new WireError('SHORT', 'name runs past the end of the message')
    const size = bytes[at]!
    if (size === 0) {
      if (!jumped) endOfName = at + 1
      scratch[out] = 0
      return out + 1
    }
    if (size > MAX_LABEL) {
      if (size < 0xc0) throw new WireError('LABEL', `label type 0x${(size & 0xc0).toString(16)}`)
      if (at + 1 >= end) throw new WireError('SHORT', 'pointer cut off')
      const target = start + (((size & 0x3f) << 8) | bytes[at + 1]!)
      // Only backwards, and each time further: a loop cannot be written that way (RFC 1035 §4.1.4 "prior occurrence").
      if (target >= limit || target < start + 12) throw new WireError('POINTER', 'pointer does not point backwards')
      if (++hops > MAX_HOPS) throw new WireError('POINTER', 'too many pointers')
      if (!jumped) endOfName = at + 2
      jumped = true
      limit = target
      at = target
      continue
    }
    if (at + 1 + size > end) throw new WireError('SHORT', 'label runs past the end of the message')
    if (out + size + 2 > MAX_NAME) throw new WireError('NAME', 'name longer than 255 octets')
    scratch[out] = size
    folded[out++] = size
    for (let i = 1; i <= size; i++) {
      const octet = bytes[at + i]!
      scratch[out] = octet
      folded[out++] = octet >= 0x41 && octet <= 0x5a ? octet | 0x20 : octet
    }
    at += size + 1
  }
}

function parseText(text: string): Buffer {
  const source = Buffer.from(text, 'utf8')
  const wire = Buffer.alloc(source.length + 2)
  let lengthAt = 0
  let out = 1
  const close = (): void => {
    const size = out - lengthAt - 1
    if (size === 0) throw new WireError('LABEL', `empty label in '${clip(text)}'`)
    if (size > MAX_LABEL) throw new WireError('LABEL', `label of ${size} octets in '${clip(text)}'`)
    wire[lengthAt] = size
    lengthAt = out++
  }
  for (let at = 0; at < source.length; at++) {
    let octet = source[at]!
    if (octet === 0x2e) {
      close()
      continue
    }
    if (octet === 0x5c) {
      octet = source[++at] ?? -1
      if (octet >= 0x30 && octet <= 0x39) {
        octet = Number(source.toString('latin1', at, at + 3))
        if (!/^\d{3}$/.test(source.toString('latin1', at, at + 3)) || octet > 255)
          throw new WireError('TEXT', `bad escape in '${clip(text)}'`)
        at += 2
      } else if (octet < 0) throw new WireError('TEXT', `bad escape in '${clip(text)}'`)
    }
    wire[out++] = octet
  }
  if (out - lengthAt > 1) close()
  wire[lengthAt] = 0
  if (lengthAt + 1 > MAX_NAME) throw new WireError('NAME', `name of ${lengthAt + 1} octets`)
  return wire.subarray(0, lengthAt + 1)
}

const clip = (text: string): string => (text.length > 80 ? `${text.slice(0, 80)}…` : text)

/** Escapes as miekg/dns and BIND print them: specials by backslash, everything outside 0x21…0x7e as \DDD. */
function print(wire: Buffer): string {
  if (wire.length === 1) return '.'
  let text = ''
  for (let at = 0; wire[at] !== 0; ) {
    const size = wire[at]!
    for (let i = 1; i <= size; i++) {
      const octet = wire[at + i]!
      if (
        octet === 0x2e ||
        octet === 0x20 ||
        octet === 0x27 ||
        octet === 0x40 ||
        octet === 0x3b ||
        octet === 0x28 ||
        octet === 0x29 ||
        octet === 0x22 ||
        octet === 0x5c
      )
        text += `\\${String.fromCharCode(octet)}`
      else if (octet < 0x21 || octet > 0x7e) text += `\\${String(octet).padStart(3, '0')}`
      else text += String.fromCharCode(octet)
    }
    text += '.'
    at += size + 1
  }
  return text
}
