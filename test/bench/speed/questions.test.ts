import { describe, expect, test } from 'vitest'
import { Message, Name, TYPE } from '../../../src/dns/index.js'
import { Packets, STRIDE } from './client.js'
import { questionsOf, WORKLOADS, wire } from './questions.js'
import { respond } from './upstream.js'

describe.each(WORKLOADS)('questions of %s', (workload) => {
  const set = questionsOf(workload)
  test('are messages that the generator has room for, in an order that names each of them', () => {
    expect(set.order.length).toBeGreaterThanOrEqual(set.questions.length)
    for (const { wire: octets } of set.questions) {
      expect(octets.length).toBeLessThanOrEqual(STRIDE)
      expect(Message.view(octets).question?.name.toString().endsWith('.')).toBe(true)
    }
    expect(new Set(set.order).size).toBe(set.questions.length)
    expect(new Packets(set).lengths.length).toBe(set.questions.length)
  })
  test('are the same in every run', () => {
    expect(questionsOf(workload).questions.slice(0, 50)).toEqual(set.questions.slice(0, 50))
  })
})

test('the mix has three in ten names of the search list, a quarter with a cookie, some in mixed case', () => {
  const { questions } = questionsOf('mix')
  const share = (is: (q: (typeof questions)[number]) => boolean): number => questions.filter(is).length / questions.length
  expect(share(({ rcode }) => rcode === 3)).toBeCloseTo(0.3, 1)
  expect(share(({ wire: octets }) => octets[11] === 1)).toBeCloseTo(0.25, 2)
  expect(share(({ wire: octets }) => /[A-Z]/.test(octets.toString('latin1', 12)))).toBeGreaterThan(0.1)
})

describe('the upstream', () => {
  const ask = (name: string, type: number, cookie = false): Message => {
    const query = wire(name, type, { cookie })
    const out = new Uint8Array(1280)
    return Message.view(Buffer.from(out.subarray(0, respond(query, 0, query.length, out, 0))))
  }
  test.each([
    ['www.corp.example.', TYPE.A, 0, 1],
    ['www.corp.example.', TYPE.AAAA, 0, 1],
    ['www.corp.example.', TYPE.TXT, 0, 0],
    ['a.nx.example.', TYPE.A, 3, 0],
  ])('answers %s type %i with rcode %i and %i records', (name, type, rcode, answers) => {
    const reply = ask(name, type)
    expect(reply.qr).toBe(true)
    expect(reply.rcode).toBe(rcode)
    expect(reply.answers.length).toBe(answers)
    expect(reply.authorities.length).toBe(1 - answers)
    expect(reply.question?.name.equals(Name.parse(name))).toBe(true)
  })
  test('has an OPT for one', () => {
    expect(ask('www.corp.example.', TYPE.A, true).edns).toBeDefined()
    expect(ask('www.corp.example.', TYPE.A).edns).toBeUndefined()
  })
  test('answers nothing to what is no message', () => {
    expect(respond(Buffer.alloc(17, 0xff), 0, 17, new Uint8Array(100), 0)).toBe(0)
    expect(respond(Buffer.alloc(5), 0, 5, new Uint8Array(100), 0)).toBe(0)
  })
})
