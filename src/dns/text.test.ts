import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatRecord, Message, parseRecord, rdataOctets, typeNumber, WireError } from './index.js'

const RECORDS = [
  'example.org.\t300\tIN\tA\t192.0.2.1',
  'example.org.\t300\tIN\tAAAA\t2001:db8::1',
  'example.org.\t300\tIN\tAAAA\t::ffff:1.2.3.4',
  'www.example.org.\t300\tIN\tCNAME\texample.org.',
  'example.org.\t300\tIN\tSOA\tns.example.org. host.example.org. 1 7200 1800 86400 5',
  'example.org.\t300\tIN\tMX\t10 mail.example.org.',
  'example.org.\t300\tIN\tTXT\t"v=spf1 -all" "a\\"b\\\\c\\200"',
  '_http._tcp.example.org.\t300\tIN\tSRV\t0 100 80 www.example.org.',
  'example.org.\t300\tIN\tCAA\t0 issue "ca.example.net; policy=ev"',
  'example.org.\t300\tIN\tHTTPS\t1 . alpn="h2,h3" port="8443" ipv4hint="192.0.2.1,192.0.2.2" ipv6hint="2001:db8::1"',
  'example.org.\t300\tIN\tSVCB\t0 svc.example.org.',
  'example.org.\t300\tIN\tDS\t60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118',
  'example.org.\t300\tIN\tDNSKEY\t257 3 13 mdsswUyr3DPW132mOi8V9xESWE8jTo0dxCjjnopKl+GqJxpVXckHAeF+KkxLbxILfDLUT0rAK9iUzy1L53eKGQ==',
  'example.org.\t300\tIN\tRRSIG\tA 13 2 300 20380101000000 20240101000000 12345 example.org. AAECAwQF',
  'example.org.\t300\tIN\tNSEC\tb.example.org. A MX RRSIG NSEC TYPE1234',
  'example.org.\t300\tIN\tNSEC3\t1 1 12 AABBCCDD 2T7B4G4VSA5SMI47K61MV5BV1A22BOJR A RRSIG',
  'example.org.\t300\tIN\tNSEC3PARAM\t1 0 0 -',
  'example.org.\t300\tIN\tNAPTR\t100 10 "u" "E2U+sip" "!^.*$!sip:a@example.org!" .',
  '_443._tcp.example.org.\t300\tIN\tTLSA\t3 1 1 0123456789ABCDEF',
  'example.org.\t300\tIN\tSSHFP\t4 2 0123456789ABCDEF',
  'example.org.\t300\tIN\tHINFO\t"PC" "Linux"',
  'example.org.\t300\tIN\tRP\tmbox.example.org. txt.example.org.',
  'example.org.\t300\tIN\tURI\t10 1 "https://example.org/"',
  'example.org.\t300\tIN\tCERT\t1 2 3 AAECAw==',
  'example.org.\t300\tIN\tEUI48\t00-00-5e-00-53-2a',
  'example.org.\t300\tIN\tTYPE65280\t\\# 4 0A000001',
  'a\\.b\\200.example.org.\t300\tCH\tTXT\t"x"',
]

describe('presentation format', () => {
  test.each(RECORDS)('%s reads and prints the same', (line) => {
    const record = parseRecord(line)
    expect(formatRecord(record)).toBe(line)
    const back = Message.view(
      Message.reply(Message.query(record.name, record.type))
        .with({ answers: [record] })
        .toBuffer(),
    ).answers[0]!
    expect(formatRecord(back)).toBe(line)
  })

  test('RFC 3597 form of a known type is that type', () => {
    expect(formatRecord(parseRecord('x. 5 IN A \\# 4 0A000001'))).toBe('x.\t5\tIN\tA\t10.0.0.1')
    expect(formatRecord(parseRecord('x. CLASS1 5 TYPE1 10.0.0.1'))).toBe('x.\t5\tIN\tA\t10.0.0.1')
  })

  test.each([
    'x. 5 IN A 1.2.3',
    'x. IN',
    'x. IN A 1.2.3.4 5',
    'x. IN NOPE 1',
    'x. IN TXT "open',
    'x. IN DS 1 2 3 ABC',
    'x. IN HTTPS 1 . port=70000',
    `${'a'.repeat(64)}. IN A 1.2.3.4`,
    'x. IN A \\# 3 0A000001',
    '',
    'x. IN MX mail.',
  ])('%s is refused with an error of our own', (line) => {
    expect(() => parseRecord(line)).toThrow(WireError)
  })

  test('text never makes the reader throw anything else', () => {
    fc.assert(
      fc.property(fc.constantFrom(...RECORDS), fc.nat(80), fc.string({ maxLength: 4 }), (line, at, junk) => {
        try {
          parseRecord(line.slice(0, at) + junk + line.slice(at + 1))
        } catch (error) {
          expect(error).toBeInstanceOf(WireError)
        }
      }),
      { numRuns: 3000 },
    )
  })
})

describe('octets that break their type', () => {
  test.each(['HTTPS', 'DS', 'RRSIG', 'NSEC', 'NAPTR', 'SSHFP', 'HINFO', 'CAA', 'NSEC3', 'URI'])(
    '%s data of three octets prints in generic form',
    (type) => {
      const octets = Buffer.from([0xff, 0xff, 0xff])
      const line = formatRecord({
        name: parseRecord('x. IN A 1.2.3.4').name,
        type: typeNumber(type)!,
        class: 1,
        ttl: 1,
        data: { kind: 'OPAQUE', octets },
      })
      if (!line.includes('\\# 3 FFFFFF')) expect(rdataOctets(typeNumber(type)!, parseRecord(line).data)).toEqual(octets)
    },
  )
})
