import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Edns, Message, Name, OPTION, parseRecord, type RR, TYPE, WireError } from '../../src/dns/index.js'
import { directives, fakeContext } from '../../src/plugins/testing.js'
import { capture, captureAny } from './capture.js'
import { parseOptions } from './options.js'
import { seePlain } from './plain.js'

const context = fakeContext('cache')
const options = parseOptions(directives('cache 3600'), context)
const query = (name: string, type: number): Message => {
  const message = Message.query(Name.parse(name), type, { id: 7 })
  return Message.received(message.toBuffer(), 0, message.toBuffer().length)
}
const opt = (extra: Partial<Edns> = {}): Edns => ({
  size: 1232,
  extendedRcode: 0,
  version: 0,
  dnssecOk: false,
  z: 0,
  options: [],
  ...extra,
})

/** The same reply inside a larger buffer, as it comes from a socket. */
function within(message: Message): Message {
  const bytes = message.toBuffer()
  return Message.view(Buffer.concat([Buffer.alloc(33, 0xa5), bytes, Buffer.alloc(9, 0xa5)]), 33, bytes.length)
}

const ADDRESSES = ['www.example.org. 300 IN A 192.0.2.1', 'www.example.org. 300 IN A 192.0.2.2', 'www.example.org. 20 IN A 192.0.2.3']
const SOA = 'example.org. 900 IN SOA ns.example.org. mail.example.org. 1 2 3 4 60'
const OTHERS = [
  ...ADDRESSES,
  SOA,
  'WWW.example.org. 300 IN A 192.0.2.4',
  'other.example.org. 300 IN A 192.0.2.5',
  'www.example.org. 300 IN AAAA 2001:db8::1',
  'www.example.org. 300 IN AAAA 2001:db8::2',
  'www.example.org. 300 IN CNAME other.example.org.',
  'example.org. 900 IN NS ns.example.org.',
]
const records = (lines: readonly string[], maxLength: number) =>
  fc.array(fc.constantFrom(...lines), { maxLength }).map((chosen) => chosen.map((line): RR => parseRecord(line)))
const reply = fc.record({
  type: fc.constantFrom(TYPE.A, TYPE.A, TYPE.AAAA, TYPE.MX, TYPE.AXFR),
  answers: fc.oneof(records(ADDRESSES, 4), records(OTHERS, 4)),
  authorities: fc.oneof(records([SOA], 1), records(OTHERS, 1), fc.constant([])),
  additionals: fc.oneof(records(OTHERS, 1), fc.constant([]), fc.constant([])),
  edns: fc.constantFrom(
    undefined,
    undefined,
    opt(),
    opt({ dnssecOk: true }),
    opt({ extendedRcode: 1 }),
    opt({ options: [{ code: OPTION.ECS, data: Buffer.from([0, 1, 24, 24, 192, 0, 2]) }] }),
  ),
  flags: fc.constantFrom(0x8180, 0x8180, 0x8183, 0x85a0, 0x8182, 0x8380, 0x0100, 0xa180),
})

test('what is plain comes to the same as by the general way', () => {
  let plain = 0
  fc.assert(
    fc.property(reply, ({ type, ...rest }) => {
      const asked = query('www.example.org.', type)
      const message = within(Message.reply(asked).with(rest))
      if (seePlain(message, asked.question!) !== undefined) plain++
      expect(capture(message, asked.question!, options, 0)).toEqual(captureAny(message, asked.question!, options, 0))
    }),
    { numRuns: 4000 },
  )
  expect(plain).toBeGreaterThan(50)
})

test('octets that were tampered with come to the same, or are refused by both', () => {
  const asked = query('www.example.org.', TYPE.A)
  const lines = ['www.example.org. 300 IN A 192.0.2.1', 'www.example.org. 300 IN A 192.0.2.2']
  const good = Message.reply(asked)
    .with({ flags: 0x8180, answers: lines.map((line) => parseRecord(line)), edns: opt() })
    .toBuffer()
  const outcome = (way: typeof capture, message: Message): unknown => {
    try {
      return way(message, asked.question!, options, 0)
    } catch (error) {
      if (error instanceof WireError) return 'refused'
      throw error
    }
  }
  fc.assert(
    fc.property(fc.nat(good.length - 1), fc.nat(255), fc.integer({ min: 12, max: good.length }), (at, octet, length) => {
      const bytes = Buffer.from(good)
      bytes[at] = octet
      const message = Message.view(bytes, 0, at % 3 === 0 ? length : bytes.length)
      expect(outcome(capture, message)).toEqual(outcome(captureAny, message))
    }),
    { numRuns: 4000 },
  )
})
