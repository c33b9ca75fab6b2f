/**
 * From an address to the items that hold it: a chained hash over typed arrays, 16 octets an entry, where a Map of short strings takes 70
 * (with ten endpoints a service, that would be most of the index). Different addresses may share a hash: the caller looks whether an
 * item really holds the address.
 */

/** What can stand in a table; `slot` belongs to the table, -1 while it is in none. */
export interface Slotted {
  slot: number
}

const NONE = -1

export class AddressTable<T extends Slotted> {
  #items: (T | undefined)[] = []
  #freeSlots: number[] = []
  /** Heads of the chains; a power of two of them. */
  #heads = new Int32Array(16).fill(NONE)
  /** Per entry: hash of the address, slot of the item, next entry of the chain (or of the free ones). */
  #hashes = new Int32Array(16)
  #slots = new Int32Array(16)
  #nexts = new Int32Array(16)
  #free = NONE
  #size = 0
  #used = 0

  /** Entries, that is pairs of address and item. */
  get size(): number {
    return this.#used
  }

  add(octets: string, item: T): void {
    if (item.slot === NONE) {
      item.slot = this.#freeSlots.pop() ?? this.#items.length
      this.#items[item.slot] = item
    }
    const hash = hashOf(octets)
    const entry = this.#entry()
    const head = hash & (this.#heads.length - 1)
    this.#hashes[entry] = hash
    this.#slots[entry] = item.slot
    this.#nexts[entry] = this.#heads[head]!
    this.#heads[head] = entry
    this.#used++
  }

  /** Takes one entry of this pair away. */
  remove(octets: string, item: T): void {
    const hash = hashOf(octets)
    const head = hash & (this.#heads.length - 1)
    let before = NONE
    for (let entry = this.#heads[head]!; entry !== NONE; entry = this.#nexts[entry]!) {
      if (this.#hashes[entry] !== hash || this.#slots[entry] !== item.slot) {
        before = entry
        continue
      }
      if (before === NONE) this.#heads[head] = this.#nexts[entry]!
      else this.#nexts[before] = this.#nexts[entry]!
      this.#nexts[entry] = this.#free
      this.#free = entry
      this.#used--
      return
    }
  }

  /** Gives the item's slot back; its entries must be gone. */
  release(item: T): void {
    if (item.slot === NONE) return
    this.#items[item.slot] = undefined
    this.#freeSlots.push(item.slot)
    item.slot = NONE
  }

  /** Every item that may hold the address, once. */
  find(octets: string): T[] {
    const hash = hashOf(octets)
    const found: T[] = []
    for (let entry = this.#heads[hash & (this.#heads.length - 1)]!; entry !== NONE; entry = this.#nexts[entry]!) {
      if (this.#hashes[entry] !== hash) continue
      const item = this.#items[this.#slots[entry]!]
      if (item !== undefined && !found.includes(item)) found.push(item)
    }
    return found
  }

  #entry(): number {
    const entry = this.#free
    if (entry !== NONE) {
      this.#free = this.#nexts[entry]!
      return entry
    }
    if (this.#size === this.#hashes.length) this.#grow()
    return this.#size++
  }

  #grow(): void {
    const length = this.#hashes.length * 2
    this.#hashes = grown(this.#hashes, length)
    this.#slots = grown(this.#slots, length)
    this.#nexts = grown(this.#nexts, length)
    // No free entry here, so every one of them is in a chain.
    const heads = new Int32Array(length).fill(NONE)
    for (let entry = 0; entry < this.#size; entry++) {
      const head = this.#hashes[entry]! & (length - 1)
      this.#nexts[entry] = heads[head]!
      heads[head] = entry
    }
    this.#heads = heads
  }
}

function grown(array: Int32Array<ArrayBuffer>, length: number): Int32Array<ArrayBuffer> {
  const copy = new Int32Array(length)
  copy.set(array)
  return copy
}

/** FNV-1a, then mixed once more: pod addresses differ in their last octets only. */
function hashOf(octets: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < octets.length; i++) hash = Math.imul(hash ^ octets.charCodeAt(i), 0x01000193)
  hash ^= hash >>> 15
  return Math.imul(hash, 0x2c1b3c6d) | 0
}
