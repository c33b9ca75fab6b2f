import { expect, test } from 'vitest'
import { fullLength, Message, Name, OPTION, parseRecord, TYPE } from '../../src/dns/index.js'
import { query } from '../../src/plugins/testing.js'
import { inspect, messageFor, recordsOf } from './reply.js'

const option = (code: number, size: number) => ({ code, data: Buffer.alloc(size, 7) })
const reply = (...options: { code: number; data: Buffer }[]): Buffer =>
  Message.reply(Message.query(Name.parse('www.example.org.'), TYPE.A, { id: 1 }))
    .with({ edns: { size: 1232, extendedRcode: 0, version: 0, dnssecOk: true, z: 0, options } })
    .toBuffer()

test("an upstream's cookie, padding and keepalive are taken out of its reply, other options are not", () => {
  const padded = reply(
    option(OPTION.COOKIE, 24),
    option(OPTION.EDE, 2),
    option(OPTION.KEEPALIVE, 2),
    option(OPTION.NSID, 4),
    option(OPTION.PADDING, 400),
  )
  const { bytes, size } = inspect(padded, padded.length)!
  const edns = Message.view(bytes).edns!
  expect(edns.options.map(({ code, data }) => [code, data.length])).toEqual([
    [OPTION.EDE, 2],
    [OPTION.NSID, 4],
  ])
  expect(edns).toMatchObject({ size: 1232, dnssecOk: true })
  expect([bytes.length, size]).toEqual([reply(option(OPTION.EDE, 2), option(OPTION.NSID, 4)).length, padded.length])
})

test('options that are cut short are passed on as they are', () => {
  const cut = reply(option(OPTION.NSID, 4))
  cut.writeUInt16BE(400, cut.length - 6)
  expect(inspect(Buffer.from(cut), cut.length)!.bytes).toEqual(cut)
})

test.each([
  ['addresses', ['www.example.org. 60 IN A 192.0.2.1', 'www.example.org. 60 IN A 192.0.2.2']],
  ['text', ['www.example.org. 60 IN TXT "one" "two"']],
  ['an alias', ['www.example.org. 60 IN CNAME a.example.org.', 'a.example.org. 60 IN A 192.0.2.1']],
  ['another name', ['example.org. 60 IN A 192.0.2.1']],
])('the length without compression of a reply with %s, and octets that stay', (_, records) => {
  const asked = query('WWW.example.org.', 'A', { size: 1232 })
  const octets = Message.reply(query('www.example.org.', 'A').message)
    .with({ answers: records.map((record) => parseRecord(record)), edns: asked.message.edns })
    .toBuffer()
  const received = inspect(octets, octets.length, recordsOf(asked, octets, octets.length))!
  if (records.every((record) => record.startsWith('www') && !record.includes('CNAME'))) expect(received.full).toBeGreaterThan(0)
  const message = messageFor(asked, received.kept())
  const length = fullLength(Message.view(Buffer.from(octets)))
  octets.fill(0xa5)
  expect(fullLength(message)).toBe(length)
  expect(message.answers).toHaveLength(records.length)
  expect(message.question?.name.wire.toString()).toBe(asked.name.wire.toString())
})
