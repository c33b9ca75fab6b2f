import { afterEach, expect, test } from 'vitest'
import { query } from '../../src/plugins/testing.js'
import { FakeUpstream, reply } from '../../test/fakes/upstream.js'
import { type Started, start } from '../../test/support/forward.js'

let upstream: FakeUpstream
let forward: Started
afterEach(async () => {
  forward.stop()
  await upstream.down()
})

test('an upstream that is late and has no other beside it gets the question and no probe', async () => {
  upstream = await FakeUpstream.start((asked) => [
    { after: 450, send: reply(asked, [`${asked.question.split(' ')[0]} 60 IN A 192.0.2.1`]) },
  ])
  forward = await start(`forward . ${upstream.address}`)
  const answer = await forward.ask(query('slow.example.', 'A'))
  expect(answer.answers).toHaveLength(1)
  expect(upstream.asked.map((asked) => asked.question)).toEqual(['slow.example. A'])
})
