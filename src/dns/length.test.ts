import { describe, expect, it } from 'vitest'
import { fullLength, Message, Name, parseRecord } from './index.js'

const records = [
  'www.example.org. 30 IN A 192.0.2.1',
  'www.example.org. 30 IN AAAA 2001:db8::1',
  'example.org. 30 IN NS ns.example.org.',
  'example.org. 30 IN SOA ns.example.org. host.example.org. 1 2 3 4 5',
  'example.org. 30 IN MX 10 mail.example.org.',
  '_http._tcp.example.org. 30 IN SRV 0 0 80 www.example.org.',
  'example.org. 30 IN TXT "one" "two"',
  'example.org. 30 IN CAA 0 issue "ca.example.org"',
]

const message = (lines: readonly string[]): Message =>
  Message.reply(Message.query(Name.parse('www.example.org.'), 1)).with({
    answers: lines.map((line) => parseRecord(line)),
    edns: { size: 1232, extendedRcode: 0, version: 0, dnssecOk: false, z: 0, options: [{ code: 10, data: Buffer.alloc(8) }] },
  })

describe('fullLength', () => {
  it.each(records)('is the same from records and from compressed octets: %s', (line) => {
    const made = message([line, line])
    const wire = made.toBuffer()
    expect(wire.length).toBeLessThan(fullLength(made))
    expect(fullLength(Message.view(wire))).toBe(fullLength(made))
  })

  it('counts names in full', () => {
    // 12 header, 17 + 4 question, twice (17 + 10 + 4), OPT of 11 + 12
    expect(fullLength(message([records[0]!, records[0]!]))).toBe(12 + 21 + 62 + 23)
  })

  it('refuses a pointer loop and a record that is cut off', () => {
    const wire = message(records).toBuffer()
    expect(() => fullLength(Message.view(wire.subarray(0, wire.length - 3)))).toThrow(/cut off|past the end/)
    const loop = Buffer.from(wire)
    loop.writeUInt16BE(0xc00c, 12)
    expect(() => fullLength(Message.view(loop))).toThrow('backwards')
  })
})
