/** Changing a copy of kept octets in the place where it goes out: TTLs, the client's spelling of its name, the order of addresses. */
import type { Layout } from './scan.js'

export interface Patch {
  readonly layout: Layout
  /** Seconds that every record gets; -1 leaves them as they stand. */
  readonly ttl: number
  /** Decides the order of the addresses; 0 leaves it. */
  readonly seed: number
  /** Octets of the name that stand at the question's; undefined leaves them. Same length as what they replace. */
  readonly name: Buffer | undefined
}

export function applyPatch(patch: Patch, into: Buffer, at: number): void {
  if (patch.name !== undefined) into.set(patch.name, at + 12)
  if (patch.ttl >= 0) for (const offset of patch.layout.ttls) into.writeUInt32BE(patch.ttl, at + offset)
  if (patch.seed !== 0) shuffleOctets(into, at, patch.layout, patch.seed)
}

/** Fisher and Yates with Marsaglia's xorshift32: the same seed gives the same order, however often the message is written. */
function shuffleOctets(into: Buffer, at: number, layout: Layout, seed: number): void {
  const { addresses, addressSize } = layout
  let state = seed
  for (let i = addresses.length - 1; i > 0; i--) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    const j = (state >>> 0) % (i + 1)
    if (i !== j) swap(into, at + addresses[i]!, at + addresses[j]!, addressSize)
  }
}

function swap(into: Buffer, a: number, b: number, size: number): void {
  for (let i = 0; i < size; i++) {
    const octet = into[a + i]!
    into[a + i] = into[b + i]!
    into[b + i] = octet
  }
}
