/** IP addresses between text and octets. IPv6 text is RFC 5952's; v4-mapped addresses print as Go's net.IP does in AAAA ("::ffff:1.2.3.4"). */
import { isIP } from 'node:net'

export function formatAddress4(bytes: Uint8Array, offset = 0): string {
  return `${bytes[offset]}.${bytes[offset + 1]}.${bytes[offset + 2]}.${bytes[offset + 3]}`
}

export function formatAddress6(bytes: Uint8Array, offset = 0): string {
  const words: number[] = []
  for (let i = 0; i < 16; i += 2) words.push((bytes[offset + i]! << 8) | bytes[offset + i + 1]!)
  if (words[5] === 0xffff && words.slice(0, 5).every((w) => w === 0)) return `::ffff:${formatAddress4(bytes, offset + 12)}`
  let best = -1
  let bestLength = 1
  for (let i = 0; i < 8; i++) {
    let j = i
    while (j < 8 && words[j] === 0) j++
    if (j - i > bestLength) {
      best = i
      bestLength = j - i
    }
    i = Math.max(i, j - 1)
  }
  if (best < 0) return words.map((w) => w.toString(16)).join(':')
  const hex = (part: number[]): string => part.map((w) => w.toString(16)).join(':')
  return `${hex(words.slice(0, best))}::${hex(words.slice(best + bestLength))}`
}

/** Octets of a dotted quad, numbers without leading zeros. By hand: every A record that is written passes here. */
function parseAddress4(text: string): Buffer | undefined {
  if (text.length > 15) return undefined
  const octets = Buffer.allocUnsafe(4)
  let part = 0
  let value = -1
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i) - 0x30
    if (digit === -2 && value >= 0 && part < 3) {
      octets[part++] = value
      value = -1
    } else if (digit < 0 || digit > 9 || value === 0) return undefined
    else {
      value = value < 0 ? digit : value * 10 + digit
      if (value > 255) return undefined
    }
  }
  if (part !== 3 || value < 0) return undefined
  octets[3] = value
  return octets
}

/** Octets of an IPv4 (4) or IPv6 (16) address without zone; undefined if it is neither. */
export function parseAddress(text: string): Buffer | undefined {
  const four = parseAddress4(text)
  if (four !== undefined) return four
  if (isIP(text) !== 6 || text.includes('%')) return undefined
  let tail: number[] = []
  let source = text
  const dotted = source.lastIndexOf(':')
  if (source.includes('.')) {
    const four = source
      .slice(dotted + 1)
      .split('.')
      .map(Number)
    tail = [(four[0]! << 8) | four[1]!, (four[2]! << 8) | four[3]!]
    source = source.slice(0, dotted + 1)
    if (!source.endsWith('::')) source = source.slice(0, -1)
  }
  const halves = source.split('::')
  const words = (part: string | undefined): number[] => (part ? part.split(':').map((w) => Number.parseInt(w, 16)) : [])
  const head = words(halves[0])
  const rest = halves.length > 1 ? words(halves[1]) : []
  const all =
    halves.length > 1
      ? [...head, ...Array<number>(8 - head.length - rest.length - tail.length).fill(0), ...rest, ...tail]
      : [...head, ...tail]
  const octets = Buffer.alloc(16)
  for (const [i, word] of all.entries()) octets.writeUInt16BE(word, i * 2)
  return octets
}
