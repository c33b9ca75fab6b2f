/** Laws of the codec on arbitrary octets: only WireError, no reading outside, decode∘encode stable. */
import dnsPacket from 'dns-packet'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatMessage, Message, Name, parseRecord, WireError } from './index.js'

const seeds = [
  Message.query(Name.parse('www.example.org.'), 1, { id: 1 }),
  Message.query(Name.parse('www.example.org.'), 28, {
    id: 2,
    edns: { size: 1232, extendedRcode: 0, version: 0, dnssecOk: true, z: 0, options: [{ code: 10, data: Buffer.alloc(8, 7) }] },
  }),
  Message.reply(Message.query(Name.parse('www.example.org.'), 1)).with({
    answers: [
      'www.example.org. 5 IN CNAME a.example.org.',
      'a.example.org. 5 IN A 10.0.0.1',
      'a.example.org. 5 IN MX 5 b.example.org.',
    ].map((l) => parseRecord(l)),
    authorities: [parseRecord('example.org. 5 IN SOA ns.example.org. h.example.org. 1 2 3 4 5')],
    additionals: [
      'x.org. IN SRV 1 2 3 b.org.',
      'x.org. IN HTTPS 1 . alpn=h2',
      'x.org. IN NAPTR 1 1 "a" "b" "c" d.org.',
      'x.org. IN TXT "a"',
    ].map((l) => parseRecord(l)),
  }),
].map((message) => message.toBuffer())

/** Mutations of real messages reach deeper than random octets do. */
const mutated = fc
  .tuple(fc.constantFrom(...seeds), fc.array(fc.tuple(fc.nat(400), fc.nat(255)), { maxLength: 8 }), fc.nat(300))
  .map(([seed, edits, cut]) => {
    const bytes = Buffer.from(seed)
    for (const [at, value] of edits) bytes[at % bytes.length] = value
    return bytes.subarray(0, Math.max(0, bytes.length - (cut > 200 ? cut - 200 : 0)))
  })
const packets = fc.oneof(
  mutated,
  fc.uint8Array({ maxLength: 600 }).map((a) => Buffer.from(a)),
)

function decode(bytes: Buffer): Message | undefined {
  try {
    const message = Message.view(bytes)
    void message.question
    void message.answers
    return message
  } catch (error) {
    expect(error).toBeInstanceOf(WireError)
    return undefined
  }
}

describe('decoding arbitrary octets', () => {
  test('throws nothing but WireError and never looks past its slice', () => {
    fc.assert(
      fc.property(packets, (bytes) => {
        const alone = decode(bytes)
        // The same octets inside a larger buffer must read the same: nothing before or behind them may matter.
        const framed = Buffer.concat([Buffer.alloc(40, 0xc0), bytes, Buffer.alloc(40, 0x01)])
        let inside: Message | undefined
        try {
          inside = Message.view(framed, 40, bytes.length)
          void inside.question
          void inside.answers
        } catch (error) {
          expect(error).toBeInstanceOf(WireError)
          inside = undefined
        }
        expect(inside === undefined ? undefined : formatMessage(inside)).toBe(alone === undefined ? undefined : formatMessage(alone))
      }),
      { numRuns: 20_000, interruptAfterTimeLimit: 8000 },
    )
  })

  test('what decodes encodes, and decodes to the same again', () => {
    fc.assert(
      fc.property(packets, (bytes) => {
        const message = decode(bytes)
        if (message === undefined || message.trailing > 0 || message.count(0) > 1) return
        let again: Buffer
        try {
          again = message.with({ id: message.id }).toBuffer()
        } catch (error) {
          expect(error).toBeInstanceOf(WireError)
          return
        }
        expect(formatMessage(Message.view(again))).toBe(formatMessage(message))
      }),
      { numRuns: 20_000, interruptAfterTimeLimit: 8000 },
    )
  })

  test('dns-packet reads what we write', () => {
    const message = dnsPacket.decode(seeds[2]!)
    expect(message.answers?.map((a) => ('data' in a ? a.data : undefined))).toEqual([
      'a.example.org',
      '10.0.0.1',
      { preference: 5, exchange: 'b.example.org' },
    ])
    expect(message.authorities?.[0]).toMatchObject({ type: 'SOA', name: 'example.org' })
  })

  test('a message of pointers to pointers is read in bounded time', () => {
    const bytes = Buffer.alloc(65_535)
    bytes.writeUInt16BE(0xffff, 6)
    for (let at = 12; at + 2 < bytes.length; at += 2) bytes.writeUInt16BE(0xc000 | Math.max(12, (at - 2) & 0x3fff), at)
    const began = performance.now()
    for (let i = 0; i < 100; i++) decode(bytes)
    expect(performance.now() - began).toBeLessThan(1000)
  })
})
