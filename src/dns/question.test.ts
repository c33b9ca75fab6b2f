import { describe, expect, test } from 'vitest'
import { Message } from './message.js'
import { Name } from './name.js'
import { Kept, type Question } from './question.js'

/** A query for `name` as it comes in. */
function arrived(name: string, type = 1, cls = 1): Question {
  const bytes = Message.query(Name.parse(name), type, { id: 7 }, cls).toBuffer()
  return Message.received(bytes, 0, bytes.length).question!
}

describe('a question that comes often', () => {
  test('is the same object from its third time on', () => {
    const [first, second, third] = [arrived('often.example.org.'), arrived('often.example.org.'), arrived('often.example.org.')]
    expect(first.kept).toBeUndefined()
    expect(second.kept).toBeInstanceOf(Kept)
    expect(third).toBe(second)
    expect([third.name.toString(), third.type, third.class, third.end]).toEqual(['often.example.org.', 1, 1, 12 + 19 + 4])
  })

  test('is another one by type, by class, and by a name that only begins or ends alike', () => {
    const asked = (): Question[] => [
      arrived('a.alike.example.'),
      arrived('a.alike.example.', 28),
      arrived('a.alike.example.', 1, 3),
      arrived('b.alike.example.'),
      arrived('a.alike.exampl.'),
      arrived('alike.example.'),
    ]
    asked()
    const once = asked()
    expect(new Set(once).size).toBe(6)
    expect(asked().map(({ name, type, class: cls }) => `${name} ${type} ${cls}`)).toEqual(
      once.map(({ name, type, class: cls }) => `${name} ${type} ${cls}`),
    )
  })

  test('in other letters has the same key, and keeps its letters', () => {
    for (let i = 0; i < 3; i++) arrived('mixed.example.org.')
    const mixed = arrived('MiXed.exAmple.ORG.')
    expect(mixed.name.toString()).toBe('MiXed.exAmple.ORG.')
    expect(mixed.name.equals(Name.parse('mixed.example.org.'))).toBe(true)
    expect(mixed.kept).toBeUndefined()
    for (let i = 0; i < 3; i++) arrived('Only.Upper.Example.')
    expect(arrived('only.upper.example.').name.toString()).toBe('only.upper.example.')
    expect(arrived('oNLY.upper.example.').name.toString()).toBe('oNLY.upper.example.')
  })

  test('leaves octets that are no letters alone', () => {
    for (let i = 0; i < 3; i++) {
      expect(arrived('\\192\\224\\064\\091\\096\\123.example.').name.toString()).toBe('\\192\\224\\@[`{.example.')
      expect(arrived('\\224\\192\\064\\091\\096\\123.example.').name.toString()).toBe('\\224\\192\\@[`{.example.')
    }
  })

  test('10,000 names: each is its own', () => {
    for (let round = 0; round < 4; round++)
      for (let i = 0; i < 10_000; i++)
        if (arrived(`service-${i}.ns.svc.`).name.foldedLabel(0) !== `service-${i}`) expect.unreachable(`${i}`)
  })

  test.each(['.', `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}.`, `${'a'.repeat(60)}.${'b'.repeat(63)}.abc.`])(
    'whatever its length (%#)',
    (name) => {
      for (let i = 0; i < 3; i++) {
        const { name: read, end } = arrived(name)
        expect(read.toString()).toBe(name)
        expect(end).toBe(12 + read.wire.length + 4)
      }
    },
  )
})

test('two owners have room beside what owners left who are gone', () => {
  const [gone, a, b] = [{}, {}, {}]
  const kept = new Kept()
  kept.set(gone, 0)
  for (let i = 1; i < 3; i++) {
    if (kept.get(a) === undefined) kept.set(a, i)
    if (kept.get(b) === undefined) kept.set(b, i)
  }
  expect([kept.get(a), kept.get(b)]).toEqual([1, 1])
})

test('what is kept is told apart by its owner, two owners at once', () => {
  const [a, b, c] = [{}, {}, {}]
  const kept = new Kept()
  expect(kept.get(a)).toBeUndefined()
  kept.set(a, 1)
  kept.set(b, 2)
  kept.set(a, 3)
  expect([kept.get(a), kept.get(b), kept.get(c)]).toEqual([3, 2, undefined])
  kept.set(c, 4)
  kept.set(c, 5)
  expect([kept.get(a), kept.get(b), kept.get(c)]).toEqual([undefined, 2, 5])
})

describe('a query as it came in', () => {
  const octets = (opt: string, count = 1) =>
    Buffer.from(`beef0120000100000000000${count}${'076578616d706c65036f72670000010001'}${opt}`, 'hex')

  test.each([
    ['without records', octets('', 0), undefined],
    ['with a plain OPT record', octets('0000290400000080000000'), [1024, 0, 0, true, 0]],
    ['with another', octets('00002904d0000000000000'), [1232, 0, 0, false, 0]],
    ['with the first one again', octets('0000290400000080000000'), [1024, 0, 0, true, 0]],
    ['of another version', octets('0000290400010300010000'), [1024, 1, 3, false, 1]],
  ])('%s is known whole', (_, bytes, expected) => {
    const message = Message.received(bytes, 0, bytes.length)
    const { edns } = message
    expect(message.full).toBe(bytes.length)
    expect(edns && [edns.size, edns.extendedRcode, edns.version, edns.dnssecOk, edns.z]).toEqual(expected)
    expect([message.answers, message.authorities, message.additionals, message.trailing]).toEqual([[], [], [], 0])
  })

  test.each([
    ['options', octets('00002904d000000000000c000a00080011223344556677')],
    ['octets behind it', octets('00', 0)],
    ['a record that is no OPT', octets('0000010001000000000000')],
  ])('with %s is decoded when it is looked at', (_, bytes) => {
    expect(Message.received(bytes, 0, bytes.length).full).toBe(-1)
  })
})
