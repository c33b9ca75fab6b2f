import { describe, expect, it } from 'vitest'
import { Message } from '../../dns/index.js'
import { lastHandler, query, setUp } from '../testing.js'
import header from './index.js'

it.each([
  ['header', 'plugin/header: Corefile:2 - Error during parsing: Wrong argument count or unexpected line ending after'],
  ['header {\n}', 'Wrong argument count or unexpected line ending after'],
  ['header {\n foo\n}', 'plugin/header: setting up rule: invalid selector=foo should be query or response'],
  ['header {\n query\n}', 'setting up rule: no flag action provided'],
  ['header {\n query foo\n}', 'setting up rule: invalid length for flags, at least one should be provided'],
  ['header {\n query foo aa\n}', 'setting up rule: unknown flag action=foo, should be set or clear'],
  ['header {\n query set ad\n}', 'setting up rule: unknown/unsupported flag=ad'],
])('refuses %j', (text, error) => {
  expect(() => setUp(header, text)).toThrow(error)
})

describe('serving', () => {
  const run = (text: string, stored = false) => {
    const end = lastHandler((q) => {
      const reply = q.reply('x', 0)
      return stored ? Message.view(reply.toBuffer()) : reply
    })
    const reply = setUp(header, text).plugin.serveDNS!(query('a.', 'A'), end.next) as Message
    return { asked: end.calls[0]!, reply }
  }

  it('changes replies, whether made of records or of octets; the last word counts', () => {
    for (const stored of [false, true]) {
      const { reply } = run('header {\n response SET RA aa\n response clear aa rd\n}', stored)
      expect([reply.aa, reply.ra, reply.rd]).toEqual([false, true, false])
      expect(Message.view(reply.toBuffer()).flags).toBe(reply.flags)
    }
  })

  it('changes queries for those behind it, who still see a client’s', () => {
    const { asked } = run('header {\n query clear rd\n}')
    expect([asked.message.rd, asked.internal]).toEqual([false, false])
  })
})
