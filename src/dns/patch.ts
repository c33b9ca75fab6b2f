/** Changing a copy of kept octets in the place where it goes out: TTLs, the client's spelling of its name, the order of addresses. */
import type { Layout } from './scan.js'

/**
 * `ttl`: seconds that every record gets; -1 leaves them as they stand. `seed` decides the order of the addresses; 0 leaves it. `name`: octets
 * that stand at the question's, of the same length; undefined leaves those.
 */
export function applyPatch(layout: Layout, ttl: number, seed: number, name: Buffer | undefined, into: Buffer, at: number): void {
  if (name !== undefined) into.set(name, at + 12)
  if (ttl >= 0) {
    const { ttls } = layout
    for (let i = 0; i < ttls.length; i++) {
      const to = at + ttls[i]!
      into[to] = ttl >>> 24
      into[to + 1] = ttl >>> 16
      into[to + 2] = ttl >>> 8
      into[to + 3] = ttl
    }
  }
  if (seed !== 0) shuffleOctets(into, at, layout, seed)
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
