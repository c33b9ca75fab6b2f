import { describe, expect, test } from 'vitest'
import { Message, parseRecord } from '../../dns/index.js'
import type { Plugin } from '../contract.js'
import { directives, fakeContext, query } from '../testing.js'
import module from './index.js'

const plugin = module.setup(directives('minimal'), fakeContext('minimal')) as Plugin

interface Lines {
  rcode?: number
  answer?: string[]
  authority?: string[]
  additional?: string[]
}
const ANSWER = ['example.org. 60 IN CNAME a.example.org.', 'a.example.org. 60 IN A 10.0.0.1']
const NS = ['example.org. 60 IN NS ns.example.org.']
const SOA = ['example.org. 60 IN SOA ns. h. 1 2 3 4 5']
const GLUE = ['ns.example.org. 60 IN A 10.0.0.2']

describe.each(['records', 'octets'])('a reply made of %s', (form) => {
  test.each<[string, Lines, [number, number, number]]>([
    ['a positive answer loses the other sections', { answer: ANSWER, authority: NS, additional: GLUE }, [2, 0, 0]],
    ['what answers in the additional section alone loses it', { additional: GLUE }, [0, 0, 0]],
    ['a referral stays', { authority: NS, additional: GLUE }, [0, 1, 1]],
    ['no data stays', { authority: SOA, additional: GLUE }, [0, 1, 1]],
    ['a name error stays', { rcode: 3, authority: SOA }, [0, 1, 0]],
    ['a failure stays', { rcode: 2, answer: ANSWER, additional: GLUE }, [2, 0, 1]],
  ])('%s', async (_, { rcode = 0, answer = [], authority = [], additional = [] }, counts) => {
    const q = query('example.org.', 'A')
    const parse = (lines: string[]) => lines.map((line) => parseRecord(line))
    const made = q.reply('file', rcode, { answers: parse(answer), authorities: parse(authority), additionals: parse(additional) })
    const whole = form === 'records' ? made : Message.view(made.toBuffer())
    const reply = Message.view(((await plugin.serveDNS!(q, () => whole)) as Message).toBuffer())
    expect([reply.answers.length, reply.authorities.length, reply.additionals.length]).toEqual(counts)
    expect([reply.rcode, reply.aa, reply.trailing]).toEqual([rcode, true, 0])
    expect(reply.question?.name.toString()).toBe('example.org.')
  })
})

test('takes no arguments', () => {
  expect(() => module.setup(directives('minimal x'), fakeContext('minimal'))).toThrow('Wrong argument count')
})
