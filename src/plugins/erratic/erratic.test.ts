import { describe, expect, it } from 'vitest'
import { formatRecord, Message } from '../../dns/index.js'
import { DROP, type MessageStream, type Plugin, type Reply } from '../contract.js'
import { FakeClock, query, setUp } from '../testing.js'
import erratic from './index.js'

it.each([
  ['erratic', undefined],
  ['erratic {\n drop\n}', undefined],
  ['erratic {\n drop 2\n delay 3 1ms\n truncate\n large\n}', undefined],
  ['erratic {\n drop a\n}', 'plugin/erratic: strconv.ParseInt: parsing "a": invalid syntax'],
  ['erratic {\n drop -1\n}', 'plugin/erratic: illegal amount value given "-1"'],
  ['erratic {\n drop 1 2\n}', "Wrong argument count or unexpected line ending after '2'"],
  ['erratic {\n delay 1 2 4\n}', 'Wrong argument count'],
  ['erratic {\n delay 1 a\n}', 'plugin/erratic: time: invalid duration "a"'],
  ['erratic {\n truncate 15.a\n}', 'invalid syntax'],
  ['erratic {\n foo\n}', "unknown property 'foo'"],
])('set-up of %j', (text, error) => {
  if (error === undefined) expect(() => setUp(erratic, text)).not.toThrow()
  else expect(() => setUp(erratic, text)).toThrow(error)
})

const never = (): never => {
  throw new Error('erratic is the end of a chain')
}
const ask = (plugin: Plugin, type = 'A'): Reply | Promise<Reply> => plugin.serveDNS!(query('Example.org.', type), never)

describe('serving', () => {
  it.each([
    ['A', ['Example.org. 0 IN A 192.0.2.53']],
    ['AAAA', ['Example.org. 0 IN AAAA 2001:db8::53']],
  ])('answers %s', (type, records) => {
    const reply = ask(setUp(erratic, 'erratic {\n drop 0\n}').plugin, type) as Message
    expect(reply.answers.map((rr) => formatRecord(rr).replace(/\s+/g, ' '))).toEqual(records)
    expect(reply.aa).toBe(true)
  })

  it('leaves other types to the server, as SERVFAIL', () => {
    const reply = ask(setUp(erratic, 'erratic {\n drop 0\n}').plugin, 'TXT') as Message
    expect([reply.rcode, reply.by, reply.aa]).toEqual([2, '', false])
  })

  it.each([
    ['erratic', 'xoxoxo'],
    ['erratic {\n drop 3\n}', 'xooxoo'],
    ['erratic {\n drop 0\n}', 'oooooo'],
    ['erratic {\n truncate 2\n}', 'ttoott'],
    ['erratic {\n drop\n truncate 1\n}', 'tototo'],
  ])('%j drops (x) and cuts (t) these of six', (text, pattern) => {
    const { plugin } = setUp(erratic, text)
    const seen = Array.from({ length: 6 }, () => {
      const reply = ask(plugin)
      return reply === DROP ? 'x' : (reply as Message).tc ? 't' : 'o'
    })
    expect(seen.join('')).toBe(pattern)
  })

  it('delays', async () => {
    const clock = new FakeClock()
    const { plugin } = setUp(erratic, 'erratic {\n delay 2 50ms\n}', { clock })
    const late = ask(plugin)
    expect(late).toBeInstanceOf(Promise)
    expect(ask(plugin)).toBeInstanceOf(Message)
    clock.advance(50)
    expect(await late).toBeInstanceOf(Message)
  })

  it('sends thirty records with `large`', () => {
    expect((ask(setUp(erratic, 'erratic {\n drop 0\n large\n}').plugin) as Message).answers).toHaveLength(30)
  })

  it.each([
    ['drop 0', 6],
    ['truncate 2', 5],
  ])('transfers a zone; with %j in %d records', async (option, count) => {
    const { stream } = ask(setUp(erratic, `erratic {\n ${option}\n}`).plugin, 'AXFR') as MessageStream
    const messages: Message[] = []
    for await (const message of stream) messages.push(message)
    expect(messages.map(({ answers }) => answers.length)).toEqual([count])
  })

  it('is ready between the third and the fifth query', () => {
    const { plugin } = setUp(erratic, 'erratic {\n drop 0\n}')
    const states = Array.from({ length: 6 }, () => {
      const state = plugin.ready!()
      void ask(plugin)
      return state
    })
    expect(states).toEqual([false, false, false, true, true, false])
  })
})
