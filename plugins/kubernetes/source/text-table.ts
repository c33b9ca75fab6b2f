/**
 * Texts by key, outside of V8's heap: the records of a large cluster live for hours, and as strings in a Map they cost twice their octets
 * and make the collector keep 32 MiB of young generation for what only passes through. They lie one behind the other in chunks; a chunk that
 * is half dead is moved on.
 */

/** No such entry. */
export const NONE = -1

const CHUNK = 256 * 1024
/** Of a text: octets of its place, its entry, octets of its key, octets of the text itself. */
const HEADER = 16
const FIRST_ENTRIES = 64

interface Chunk {
  readonly bytes: Buffer
  /** Octets in use, and those of them that no other place has replaced. */
  end: number
  live: number
}

/** Entries are numbers from 0 on; one stays what it is until it is removed. */
export class TextTable {
  /** Heads of the hash chains; a power of two of them. */
  #heads = new Int32Array(FIRST_ENTRIES).fill(NONE)
  #hashes = new Int32Array(FIRST_ENTRIES)
  /** The next entry of the chain, or of the free ones. */
  #nexts = new Int32Array(FIRST_ENTRIES)
  /** NONE for a free entry. */
  #chunkOf = new Int32Array(FIRST_ENTRIES)
  #offsets = new Int32Array(FIRST_ENTRIES)
  #marks = new Int32Array(FIRST_ENTRIES)
  #high = 0
  #free = NONE
  readonly #chunks: (Chunk | undefined)[] = []
  /** The chunk that is being filled. */
  #filling = NONE
  #scratch = Buffer.allocUnsafeSlow(4096)
  #size = 0

  get size(): number {
    return this.#size
  }
  /** Octets of all chunks, dead ones included. */
  get octets(): number {
    return this.#chunks.reduce((sum, chunk) => sum + (chunk?.bytes.length ?? 0), 0)
  }

  find(key: string): number {
    const hash = hashOf(key)
    const length = this.#encode(key)
    for (let entry = this.#heads[hash & (this.#heads.length - 1)]!; entry !== NONE; entry = this.#nexts[entry]!)
      if (this.#hashes[entry] === hash && this.#isKey(entry, length)) return entry
    return NONE
  }

  /** Of a key that is not in the table. */
  add(key: string, text: string, mark: number): number {
    const entry = this.#newEntry()
    const hash = hashOf(key)
    const head = hash & (this.#heads.length - 1)
    this.#hashes[entry] = hash
    this.#nexts[entry] = this.#heads[head]!
    this.#heads[head] = entry
    this.#marks[entry] = mark
    this.#write(entry, key, text)
    this.#size++
    return entry
  }

  replace(entry: number, text: string): void {
    const { bytes } = this.#chunk(entry)
    const at = this.#offsets[entry]!
    const start = this.#textAt(entry)
    const length = Buffer.byteLength(text)
    const place = bytes.readUInt32LE(at)
    const needed = start + length - at
    // Most changes take away what comes back later: its place is kept for it.
    if (needed <= place && needed * 2 >= place) {
      bytes.write(text, start)
      bytes.writeUInt32LE(length, at + 12)
      return
    }
    const key = this.key(entry)
    this.#forget(entry)
    this.#write(entry, key, text)
  }

  remove(entry: number): void {
    const head = this.#hashes[entry]! & (this.#heads.length - 1)
    if (this.#heads[head] === entry) this.#heads[head] = this.#nexts[entry]!
    else {
      let before = this.#heads[head]!
      while (this.#nexts[before] !== entry) before = this.#nexts[before]!
      this.#nexts[before] = this.#nexts[entry]!
    }
    this.#forget(entry)
    this.#chunkOf[entry] = NONE
    this.#nexts[entry] = this.#free
    this.#free = entry
    this.#size--
  }

  key(entry: number): string {
    const at = this.#offsets[entry]!
    const { bytes } = this.#chunk(entry)
    return bytes.toString('utf8', at + HEADER, at + HEADER + bytes.readUInt32LE(at + 8))
  }
  text(entry: number): string {
    const { bytes } = this.#chunk(entry)
    return bytes.toString('utf8', this.#textAt(entry), this.#endOf(entry))
  }
  /** Whether this is the entry's text, which is not made a string for it. */
  holds(entry: number, text: string): boolean {
    const length = this.#encode(text)
    return this.#chunk(entry).bytes.compare(this.#scratch, 0, length, this.#textAt(entry), this.#endOf(entry)) === 0
  }

  mark(entry: number): number {
    return this.#marks[entry]!
  }
  setMark(entry: number, mark: number): void {
    this.#marks[entry] = mark
  }

  /** All entries. What is added or removed meanwhile is among them or not. */
  *entries(): Iterable<number> {
    for (let entry = 0; entry < this.#high; entry++) if (this.#chunkOf[entry] !== NONE) yield entry
  }

  #chunk(entry: number): Chunk {
    return this.#chunks[this.#chunkOf[entry]!]!
  }
  #textAt(entry: number): number {
    const at = this.#offsets[entry]!
    return at + HEADER + this.#chunk(entry).bytes.readUInt32LE(at + 8)
  }
  #endOf(entry: number): number {
    return this.#textAt(entry) + this.#chunk(entry).bytes.readUInt32LE(this.#offsets[entry]! + 12)
  }

  /** Puts the text's octets at the start of the scratch area; returns how many. */
  #encode(text: string): number {
    // A UTF-16 unit becomes three octets at most.
    if (text.length * 3 > this.#scratch.length) this.#scratch = Buffer.allocUnsafeSlow(text.length * 3 * 2)
    return this.#scratch.write(text)
  }

  /** Whether the first octets of the scratch area are the entry's key. */
  #isKey(entry: number, length: number): boolean {
    const { bytes } = this.#chunk(entry)
    const at = this.#offsets[entry]! + HEADER
    return bytes.readUInt32LE(at - 8) === length && bytes.compare(this.#scratch, 0, length, at, at + length) === 0
  }

  #write(entry: number, key: string, text: string): void {
    const keyLength = Buffer.byteLength(key)
    const textLength = Buffer.byteLength(text)
    const length = HEADER + keyLength + textLength
    const chunk = this.#place(entry, length)
    const { bytes, end } = chunk
    bytes.writeUInt32LE(length, end)
    bytes.writeUInt32LE(entry, end + 4)
    bytes.writeUInt32LE(keyLength, end + 8)
    bytes.writeUInt32LE(textLength, end + 12)
    bytes.write(key, end + HEADER)
    bytes.write(text, end + HEADER + keyLength)
    chunk.end += length
  }

  /** Gives the entry a place of so many octets at the end of the returned chunk. */
  #place(entry: number, length: number): Chunk {
    let chunk = this.#filling === NONE ? undefined : this.#chunks[this.#filling]
    if (chunk === undefined || chunk.end + length > chunk.bytes.length) {
      chunk = { bytes: Buffer.allocUnsafeSlow(Math.max(CHUNK, length)), end: 0, live: 0 }
      const gap = this.#chunks.indexOf(undefined)
      const before = this.#filling
      this.#filling = gap < 0 ? this.#chunks.length : gap
      this.#chunks[this.#filling] = chunk
      // What died in it while it was being filled.
      if (before !== NONE) this.#tidy(before)
      // Tidying may have begun a chunk of its own.
      return this.#place(entry, length)
    }
    this.#chunkOf[entry] = this.#filling
    this.#offsets[entry] = chunk.end
    chunk.live += length
    return chunk
  }

  /** The entry's octets are dead. */
  #forget(entry: number): void {
    const at = this.#chunkOf[entry]!
    const chunk = this.#chunks[at]!
    chunk.live -= chunk.bytes.readUInt32LE(this.#offsets[entry]!)
    this.#offsets[entry] = NONE
    if (at !== this.#filling) this.#tidy(at)
  }

  /** Moves what lives in a chunk, if that is less than half of it, and lets the chunk go. */
  #tidy(index: number): void {
    const chunk = this.#chunks[index]
    if (chunk === undefined || chunk.live * 2 > chunk.bytes.length) return
    for (let at = 0; at < chunk.end; ) {
      const length = chunk.bytes.readUInt32LE(at)
      const entry = chunk.bytes.readUInt32LE(at + 4)
      if (this.#chunkOf[entry] === index && this.#offsets[entry] === at) {
        const target = this.#place(entry, length)
        chunk.bytes.copy(target.bytes, target.end, at, at + length)
        target.end += length
      }
      at += length
    }
    this.#chunks[index] = undefined
  }

  #newEntry(): number {
    const entry = this.#free
    if (entry !== NONE) {
      this.#free = this.#nexts[entry]!
      return entry
    }
    if (this.#high === this.#hashes.length) this.#grow()
    return this.#high++
  }

  #grow(): void {
    const length = this.#hashes.length * 2
    this.#hashes = grown(this.#hashes, length)
    this.#nexts = grown(this.#nexts, length)
    this.#chunkOf = grown(this.#chunkOf, length)
    this.#offsets = grown(this.#offsets, length)
    this.#marks = grown(this.#marks, length)
    // No free entry here, so every one of them is in a chain.
    this.#heads = new Int32Array(length).fill(NONE)
    for (let entry = 0; entry < this.#high; entry++) {
      const head = this.#hashes[entry]! & (length - 1)
      this.#nexts[entry] = this.#heads[head]!
      this.#heads[head] = entry
    }
  }
}

function grown(array: Int32Array<ArrayBuffer>, length: number): Int32Array<ArrayBuffer> {
  const copy = new Int32Array(length)
  copy.set(array)
  return copy
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (hash ^ (hash >>> 15)) | 0
}
