import { expect, test } from 'vitest'
import { CLASS, Message, Name, TYPE, WireError } from './index.js'

const records = Array.from({ length: 4 }, (_, i) => ({
  name: Name.parse('kubernetes.default.svc.cluster.local.'),
  type: TYPE.A,
  class: CLASS.IN,
  ttl: 30,
  data: { kind: 'A' as const, address: `10.0.0.${i}` },
}))

test('a reply survives the wire, compressed', () => {
  const query = Message.query(Name.parse('Kubernetes.default.svc.cluster.local.'), TYPE.A, { id: 77 })
  const reply = Message.reply(query).with({ answers: records, aa: true })
  const bytes = reply.toBuffer()
  expect(bytes.length).toBe(129) // the owner differs from the question in one letter, so its first label is written out
  const back = Message.view(bytes)
  expect(back.id).toBe(77)
  expect(back.aa && back.qr && back.rd).toBe(true)
  expect(back.question?.name.toString()).toBe('Kubernetes.default.svc.cluster.local.')
  expect(back.answers.map((rr) => rr.data)).toEqual(records.map((rr) => rr.data))
})

test('truncation cuts whole records and sets TC, and keeps OPT', () => {
  const query = Message.query(Name.parse('a.example.'), TYPE.A)
  const many = Array.from({ length: 100 }, () => records[0]!)
  const edns = { size: 1232, extendedRcode: 0, version: 0, dnssecOk: false, z: 0, options: [] }
  const back = Message.view(Message.reply(query).with({ answers: many, edns }).toBuffer(512))
  expect(back.length).toBeLessThanOrEqual(512)
  expect(back.tc).toBe(true)
  expect(back.edns?.size).toBe(1232)
  expect(back.answers.length).toBeGreaterThan(20)
})

test('12 octets that claim 65,535 records are refused before anything is made', () => {
  const bytes = Buffer.from('000001000001ffffffffffff', 'hex')
  expect(() => Message.view(bytes).answers).toThrow(WireError)
})

test('labels are octets: a dot inside one survives', () => {
  const name = Name.parse('a\\.b\\255.Example.')
  expect(name.labelCount).toBe(2)
  expect(name.toString()).toBe('a\\.b\\255.Example.')
  expect(Name.parse('x.a\\.b\\255.EXAMPLE.').isUnder(name)).toBe(true)
  expect(Name.parse('yexample.').isUnder(Name.parse('example.'))).toBe(false)
})
