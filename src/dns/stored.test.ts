import { describe, expect, test } from 'vitest'
import { FLAG, layoutOf, Message, Name, parseRecord, scanMessage, TYPE } from './index.js'

const query = Message.query(Name.parse('www.example.org.'), TYPE.A, { id: 7 })
const wire = Message.reply(query)
  .with({
    answers: ['www.example.org. 300 IN CNAME a.example.org.', ...[1, 2, 3, 4].map((i) => `a.example.org. 60 IN A 10.0.0.${i}`)].map(
      (line) => parseRecord(line),
    ),
    additionals: [parseRecord('x.example.org. 5 IN TXT "x"')],
  })
  .toBuffer()
const scan = scanMessage(wire, 0, wire.length)
const layout = layoutOf(scan, wire, 0, wire.length)
const asked = Message.query(Name.parse('wWw.eXample.org.'), TYPE.A, { id: 4711 })
const flags = FLAG.QR | FLAG.RD | FLAG.AA
const addresses = (message: Message): string[] => message.answers.flatMap((rr) => (rr.data.kind === 'A' ? [rr.data.address] : []))

describe('a reply out of kept octets', () => {
  const reply = Message.stored(wire, layout, asked, flags, 42)

  test('takes id, flags, spelling and TTLs of the moment when it is written', () => {
    const back = Message.view(reply.toBuffer())
    expect([back.id, back.flags]).toEqual([4711, flags])
    expect(back.question?.name.toString()).toBe('wWw.eXample.org.')
    expect(back.answers[0]?.name.toString()).toBe('wWw.eXample.org.')
    expect([...back.answers, ...back.additionals].map((rr) => rr.ttl)).toEqual([42, 42, 42, 42, 42, 42])
    expect(addresses(back)).toEqual(['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4'])
  })

  test('shows the same to a plugin that reads records or octets, and leaves what is kept alone', () => {
    const before = Buffer.from(wire)
    expect(reply.answers[0]?.ttl).toBe(42)
    expect(reply.bytes?.subarray(reply.offset, reply.offset + reply.length)).toEqual(reply.toBuffer())
    expect(reply.count(1)).toBe(5)
    expect(wire).toEqual(before)
  })

  test('is cut record by record where the client takes less', () => {
    const back = Message.view(Message.stored(wire, layout, asked, flags, 42).toBuffer(80))
    expect(back.tc).toBe(true)
    expect(back.id).toBe(4711)
    expect(back.answers.every((rr) => rr.ttl === 42)).toBe(true)
  })

  test('is shuffled on the octets, the same way each time it is written', () => {
    const shuffled = Message.stored(wire, layout, asked, flags, 42).shuffled(99)
    expect(shuffled).toBeDefined()
    const once = Message.view(shuffled!.toBuffer())
    expect(Message.view(shuffled!.toBuffer()).answers).toEqual(once.answers)
    expect(once.answers[0]?.type).toBe(TYPE.CNAME)
    expect(addresses(once).sort()).toEqual(['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4'])
    expect(once.answers[1]?.ttl).toBe(42)
  })

  test('gives each address the first place equally often', () => {
    const first = new Map<string, number>()
    let seed = 1
    for (let i = 0; i < 8000; i++) {
      seed = (Math.imul(seed, 1664525) + 1013904223) | 0
      const address = addresses(
        Message.view(
          Message.stored(wire, layout, asked, flags, 42)
            .shuffled(seed || 1)!
            .toBuffer(),
        ),
      )[0]!
      first.set(address, (first.get(address) ?? 0) + 1)
    }
    for (const times of first.values()) expect(Math.abs(times - 2000)).toBeLessThan(200)
  })
})

test('a query gets other flags without being decoded or touched', () => {
  const bytes = Buffer.concat([Buffer.alloc(100), query.toBuffer()])
  const view = Message.view(bytes, 100)
  const marked = view.as(view, view.flags | FLAG.AD)
  expect(marked.ad).toBe(true)
  expect(view.ad).toBe(false)
  expect(Message.view(marked.toBuffer()).ad).toBe(true)
  expect(marked.bytes?.readUInt16BE(marked.offset + 2)).toBe(marked.flags)
  expect(marked.edns).toBeUndefined()
})

test('one message answers two clients, each with its id and spelling', () => {
  const other = Message.view(Message.view(wire).as(asked, flags).toBuffer())
  expect([other.id, other.question?.name.toString()]).toEqual([4711, 'wWw.eXample.org.'])
})

describe('addresses are not swapped blindly', () => {
  const shuffledOf = (lines: string[], additionals: string[] = []): Message | undefined => {
    const message = Message.reply(query).with({
      answers: lines.map((l) => parseRecord(l)),
      additionals: additionals.map((l) => parseRecord(l)),
    })
    return Message.view(message.toBuffer()).shuffled(5)
  }
  test.each([
    ['two owners', ['a. 1 IN A 10.0.0.1', 'b. 1 IN A 10.0.0.2'], []],
    ['two types', ['a. 1 IN A 10.0.0.1', 'a. 1 IN AAAA ::1'], []],
    ['something behind them', ['a. 1 IN A 10.0.0.1', 'a. 1 IN A 10.0.0.2', 'a. 1 IN TXT "x"'], []],
    ['mail exchangers', ['a. 1 IN MX 1 b.', 'a. 1 IN MX 2 c.'], []],
    ['addresses in the additional section', ['a. 1 IN SRV 1 1 1 b.'], ['b. 1 IN A 10.0.0.1', 'b. 1 IN A 10.0.0.2']],
  ])('%s: the records are needed', (_, lines, additionals) => {
    expect(shuffledOf(lines, additionals)).toBeUndefined()
  })
  test('nothing to shuffle: the same message', () => {
    const view = Message.view(
      Message.reply(query)
        .with({ answers: [parseRecord('a. 1 IN A 10.0.0.1')] })
        .toBuffer(),
    )
    expect(view.shuffled(5)).toBe(view)
  })
})
