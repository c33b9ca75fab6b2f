import { expect, test } from 'vitest'
import { Message, Name, OPTION, TYPE } from '../../src/dns/index.js'
import { inspect } from './reply.js'

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
