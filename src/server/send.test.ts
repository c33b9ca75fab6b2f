import { describe, expect, test } from 'vitest'
import { type Edns, type EdnsOption, Message, Name, parseRecord, TYPE } from '../dns/index.js'
import { Query } from '../plugins/contract.js'
import { query as make } from '../plugins/testing.js'
import { writeReply } from './send.js'

const out = Buffer.alloc(70_000)
const edns = (over: Partial<Edns> = {}): Edns => ({ size: 4096, extendedRcode: 0, version: 0, dnssecOk: false, z: 0, options: [], ...over })
const option = (code: number, data = ''): EdnsOption => ({ code, data: Buffer.from(data, 'hex') })
const records = (count: number): string[] => Array.from({ length: count }, (_, i) => `www.example.org. 60 IN A 10.0.0.${i}`)

/** A reply with these answers, made of records or, as from an upstream, of octets. */
function reply(to: Query, lines: readonly string[], kind: 'records' | 'octets', theirs?: Edns): Message {
  const made = Message.reply(to.message).with({ answers: lines.map((line) => parseRecord(line)), ra: true, edns: theirs })
  if (kind === 'records') return made
  const question = { name: Name.parse(to.name.toLowerCase()), type: to.type, class: 1, end: 0 }
  return Message.view(made.with({ id: 99, question }).toBuffer())
}

const written = (to: Query, message: Message): Message => Message.view(Buffer.from(out.subarray(2, 2 + writeReply(to, message, out, 2))))

describe.each(['records', 'octets'] as const)('a reply of %s', (kind) => {
  test("has the client's id and spelling, and no OPT where the client sent none", () => {
    const query = make('WWW.Example.org.', 'A', { id: 77 })
    const back = written(query, reply(query, records(2), kind, edns({ options: [option(15, '0003')] })))
    expect(back.id).toBe(77)
    expect(String(back.question?.name)).toBe('WWW.Example.org.')
    expect(back.answers.length).toBe(2)
    expect(back.edns).toBeUndefined()
    expect(back.ra && back.qr).toBe(true)
  })

  test("repeats the client's OPT with the options that stand for all servers", () => {
    const query = make('www.example.org.', 'A', { size: 1400, dnssecOk: true, options: [option(10, '00'), option(8, '00011000c0a8')] })
    const back = written(query, reply(query, records(1), kind))
    expect(back.edns).toEqual(edns({ size: 1400, dnssecOk: true, options: [option(10, '00')] }))
  })

  test("keeps the OPT of the reply, with the client's size", () => {
    const query = make('www.example.org.', 'A', { size: 1400, options: [option(10, '00')] })
    const back = written(
      query,
      reply(query, records(1), kind, edns({ size: 512, dnssecOk: true, version: 1, options: [option(15, '0003')] })),
    )
    expect(back.edns).toEqual(edns({ size: 1400, dnssecOk: true, options: [option(15, '0003')] }))
    const plain = written(query, reply(query, records(1), kind, edns({ size: 512, z: 0x2aff, extendedRcode: 1 })))
    expect(plain.edns).toEqual(edns({ size: 1400, z: 0x2a00, extendedRcode: 1 }))
  })

  test('is cut record by record to what the client takes, with TC', () => {
    const query = make('www.example.org.', 'A')
    const back = written(query, reply(query, records(60), kind))
    expect(back.tc).toBe(true)
    expect(back.length).toBeLessThanOrEqual(512)
    expect(back.answers.length).toBe(Math.floor((512 - 33) / 16))
    const more = make('www.example.org.', 'A', { size: 1232 })
    expect(written(more, reply(more, records(60), kind)).answers.length).toBe(60)
    const tcp = make('www.example.org.', 'A', { proto: 'tcp' })
    expect(written(tcp, reply(tcp, records(60), kind)).tc).toBe(false)
  })

  test('fits the size that a plugin put in the place of the client’s', () => {
    const query = make('www.example.org.', 'A', { size: 4096 })
    query.lowered = 600
    const back = written(query, reply(query, records(60), kind))
    expect(back.edns?.size).toBe(600)
    expect(back.tc && back.length <= 600).toBe(true)
  })

  test('keeps TC that was set upstream', () => {
    const query = make('www.example.org.', 'A')
    expect(written(query, Message.view(reply(query, [], kind).with({ tc: true }).toBuffer())).tc).toBe(true)
  })

  test('has its own question where a plugin did not put back the one asked', () => {
    const query = make('www.example.org.', 'A')
    const other = make('other.example.org.', 'A')
    expect(String(written(query, reply(other, [], kind)).question?.name)).toBe('other.example.org.')
  })
})

test('TC is set when only additional records were cut', () => {
  const query = make('www.example.org.', 'SRV')
  const additionals = records(60).map((line) => parseRecord(line))
  const back = written(query, Message.reply(query.message).with({ answers: [], additionals }))
  expect(back.tc).toBe(true)
  expect(back.additionals.length).toBeGreaterThan(10)
})

test('octets with OPT in the middle or with TSIG are read and written anew', () => {
  const query = make('www.example.org.', 'A', { size: 1232 })
  const base = reply(query, records(1), 'octets').toBuffer()
  const opt = Buffer.from('0000290200000000000000', 'hex')
  const a = Buffer.from('c00c000100010000003c00040a000001', 'hex')
  base.writeUInt16BE(2, 10)
  const back = written(query, Message.view(Buffer.concat([base, opt, a])))
  expect(back.additionals.length).toBe(1)
  expect(back.edns?.size).toBe(1232)
})

test('octets that are no message cannot be written', () => {
  const query = make('www.example.org.', 'A')
  const base = reply(query, records(1), 'octets').toBuffer()
  base.writeUInt16BE(3, 6)
  expect(() => written(query, Message.view(base))).toThrow()
})

test('an rcode above 15 needs a client with EDNS', () => {
  const query = make('www.example.org.', 'A')
  const message = Message.reply(query.message).with({ edns: edns({ extendedRcode: 1 }) })
  expect(() => written(query, message)).toThrow('rcode 16')
  const able = new Query(query.message.with({ edns: edns() }), query.arrival)
  expect(written(able, message).edns?.extendedRcode).toBe(1)
  expect(TYPE.OPT).toBe(41)
})
