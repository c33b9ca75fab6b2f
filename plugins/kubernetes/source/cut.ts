/**
 * Cuts the bodies of an API server into single JSON texts while they stream in, so that never more than one object is held as text:
 * the elements of `items` in a list, the lines of a watch. Works on octets; nothing is parsed here.
 */

/** Thrown for bodies that are no JSON of the expected shape, or exceed a limit. */
export class CutError extends Error {
  readonly code = 'KUBE_BODY'
}

/**
 * The largest object taken, in octets. etcd refuses objects above 1.5 MiB by default; as JSON with escapes they grow some.
 */
export const MAX_OBJECT = 8 * 1024 * 1024
/** What may surround the items of a list. */
const MAX_FRAME = 1024 * 1024

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

/** Collects octets that may span chunks. One that lies within a chunk is not copied. */
class Pieces {
  #parts: Buffer[] = []
  #size = 0
  readonly #limit: number
  constructor(limit: number) {
    this.#limit = limit
  }
  add(piece: Buffer): void {
    this.#size += piece.length
    if (this.#size > this.#limit) throw new CutError(`more than ${this.#limit} octets for one object`)
    if (piece.length > 0) this.#parts.push(piece)
  }
  get size(): number {
    return this.#size
  }
  /** The text so far, and empties itself. */
  take(): string {
    const parts = this.#parts
    const whole = parts.length === 1 ? parts[0]! : Buffer.concat(parts, this.#size)
    this.#parts = []
    this.#size = 0
    return whole.toString('utf8')
  }
}

/**
 * A list `{"kind":…,"metadata":…,"items":[{…},{…}]}`: `onItem` gets the text of each element of the top-level `items`; `end` returns the
 * rest of the document with an empty `items`. Other order of members is fine.
 */
export class ListCutter {
  readonly #onItem: (text: string) => void
  readonly #item: Pieces
  readonly #frame = new Pieces(MAX_FRAME)
  /** The last octets outside of items, to tell whether a `[` opens `items`. */
  #tail = ''
  #depth = 0
  #inString = false
  #escaped = false
  #inItems = false
  #ended = false

  constructor(onItem: (text: string) => void, maxItem = MAX_OBJECT) {
    this.#onItem = onItem
    this.#item = new Pieces(maxItem)
  }

  write(chunk: Buffer): void {
    // Where the current run (item or frame) began in this chunk. Between items nothing is kept.
    let from = this.#inItems && this.#depth === 2 ? -1 : 0
    let i = 0
    while (i < chunk.length) {
      if (this.#inString) {
        i = this.#skipString(chunk, i)
        continue
      }
      const octet = chunk[i++]!
      if (octet === QUOTE) this.#inString = true
      else if (octet === OPEN_BRACE || octet === OPEN_BRACKET) {
        if (this.#inItems && this.#depth === 2) from = i - 1
        this.#depth++
        if (octet === OPEN_BRACKET && this.#depth === 2 && !this.#inItems && this.#opensItems(chunk, from, i - 1)) {
          this.#keepFrame(chunk.subarray(from, i))
          this.#inItems = true
          from = -1
        }
      } else if (octet === CLOSE_BRACE || octet === CLOSE_BRACKET) {
        this.#depth--
        if (this.#depth < 0) throw new CutError('unbalanced brackets in a list')
        if (this.#inItems && this.#depth === 2) {
          this.#item.add(chunk.subarray(from, i))
          from = -1
          this.#onItem(this.#item.take())
        } else if (this.#inItems && this.#depth === 1) {
          this.#inItems = false
          from = i - 1
        } else if (this.#depth === 0) this.#ended = true
      }
    }
    if (from < 0) return
    if (this.#inItems) this.#item.add(chunk.subarray(from))
    else this.#keepFrame(chunk.subarray(from))
  }

  /** The document around the items. Throws CutError if the body is not whole. */
  end(): string {
    if (!this.#ended || this.#depth !== 0 || this.#inString) throw new CutError('the list ended in the middle')
    return this.#frame.take()
  }

  #skipString(chunk: Buffer, start: number): number {
    let i = start
    if (this.#escaped) {
      this.#escaped = false
      i++
    }
    while (i < chunk.length) {
      const octet = chunk[i++]!
      if (octet === QUOTE) {
        this.#inString = false
        return i
      }
      if (octet === BACKSLASH) {
        if (i === chunk.length) this.#escaped = true
        i++
      }
    }
    return chunk.length
  }

  #opensItems(chunk: Buffer, from: number, to: number): boolean {
    const before = chunk.toString('latin1', Math.max(from, to - 64), to)
    return /"items"\s*:\s*$/.test(this.#tail + before)
  }

  #keepFrame(piece: Buffer): void {
    // A copy: the frame is kept until the end of the body, which may be many chunks away.
    this.#frame.add(Buffer.from(piece))
    this.#tail = (this.#tail + piece.toString('latin1', Math.max(0, piece.length - 64))).slice(-64)
  }
}

/** Lines of a watch. Empty ones are left out; a line without its end at the end of the stream is no event. */
export class LineCutter {
  readonly #onLine: (text: string) => void
  readonly #line: Pieces

  constructor(onLine: (text: string) => void, maxLine = MAX_OBJECT) {
    this.#onLine = onLine
    this.#line = new Pieces(maxLine)
  }

  write(chunk: Buffer): void {
    let from = 0
    for (;;) {
      const to = chunk.indexOf(0x0a, from)
      if (to < 0) break
      this.#line.add(chunk.subarray(from, to))
      from = to + 1
      if (this.#line.size === 0) continue
      const text = this.#line.take()
      if (text !== '\r') this.#onLine(text)
    }
    if (from < chunk.length) this.#line.add(chunk.subarray(from))
  }
}
