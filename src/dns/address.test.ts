import { isIPv4 } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatAddress4, parseAddress } from './address.js'

test('a dotted quad is one exactly where node:net says so, and prints as it was', () => {
  const near = fc
    .array(fc.constantFrom('0', '1', '9', '25', '255', '256', '00', '01', '.', '', '-', ' ', 'a'), { maxLength: 9 })
    .map((parts) => parts.join(''))
  fc.assert(
    fc.property(fc.oneof(near, fc.ipV4(), fc.string({ maxLength: 16 })), (text) => {
      const octets = parseAddress(text)
      expect(octets?.length === 4).toBe(isIPv4(text))
      if (octets?.length === 4) expect(formatAddress4(octets)).toBe(text)
    }),
    { numRuns: 5000 },
  )
})
