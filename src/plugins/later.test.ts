import { expect, test } from 'vitest'
import { Message, Name } from '../dns/index.js'
import { Later, type Reply } from './contract.js'
import { query as queryFor } from './testing.js'

class Soon extends Later {
  override resolve(reply: Reply | Promise<Reply>): void {
    super.resolve(reply)
  }
}

const query = queryFor('a.example.', 'A')
const reply = Message.reply(Message.query(Name.parse('a.example.'), 1))
const other = Message.reply(Message.query(Name.parse('b.example.'), 1))
const failure = new Error('no')

/** What a waiter is told. */
function outcome(later: Later): unknown[] {
  const told: unknown[] = []
  later.awaitedBy({ keeps: false, ready: (settled, error) => told.push(settled ?? error) })
  return told
}

test('steps run in the order of adding, each on what the one before made, and before who waits', () => {
  const later = new Soon()
  const seen: string[] = []
  for (const name of ['one', 'two', 'three'])
    later.through(
      (_, extra, settled, error) => {
        seen.push(`${extra} ${settled === reply} ${error === failure}`)
        if (extra === 'one') throw failure
        return extra === 'two' ? other : settled!
      },
      query,
      name,
    )
  const told = outcome(later)
  expect(told).toEqual([])
  later.resolve(reply)
  expect(told).toEqual([other])
  expect(seen).toEqual(['one true false', 'two false true', 'three false false'])
})

test('what is added afterwards gets the outcome at once', async () => {
  const later = new Soon()
  later.ready(undefined, failure)
  later.through((_, extra, settled) => settled ?? extra, query, other)
  expect(outcome(later)).toEqual([other])
  await expect(later).resolves.toBe(other)
})

test('it is a promise to whoever awaits it', async () => {
  const good = new Soon()
  const bad = new Soon()
  const waiting = Promise.allSettled([good, bad.then(undefined), bad.catch(() => 1), good.finally()])
  good.resolve(Promise.resolve(reply))
  bad.resolve(Promise.reject(failure))
  expect(await waiting).toEqual([
    { status: 'fulfilled', value: reply },
    { status: 'rejected', reason: failure },
    { status: 'fulfilled', value: 1 },
    { status: 'fulfilled', value: reply },
  ])
})

test('one that hangs on another is settled with it, and tells whether octets are kept', () => {
  const [inner, outer] = [new Soon(), new Soon()]
  outer.resolve(inner)
  expect(inner.keeps).toBe(true)
  const told = outcome(outer)
  expect(inner.keeps).toBe(false)
  inner.ready(reply, undefined)
  expect(told).toEqual([reply])
  void outer.then()
  expect(outer.keeps).toBe(true)
})
