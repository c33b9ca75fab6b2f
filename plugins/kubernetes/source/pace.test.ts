import { expect, it } from 'vitest'
import { FakeClock } from '../../../src/plugins/testing.js'
import { Pace } from './pace.js'

const turn = () => new Promise((resolve) => setImmediate(resolve))

function paced() {
  const clock = new FakeClock()
  const sent: number[] = []
  const pace = new Pace(() => sent.push(clock.monotonic()), clock)
  return { clock, sent, pace }
}

it('hands on in the same turn, once for all that was read in it', async () => {
  const { sent, pace } = paced()
  pace.ask()
  pace.ask()
  expect(sent).toHaveLength(0)
  await turn()
  expect(sent).toHaveLength(1)
})

it('keeps 2 ms between two messages while more comes', async () => {
  const { clock, sent, pace } = paced()
  pace.ask()
  await turn()
  clock.advance(0.5)
  pace.ask()
  clock.advance(1)
  pace.ask()
  await turn()
  expect(sent).toHaveLength(1)
  clock.advance(0.5)
  expect(sent).toHaveLength(2)
  clock.advance(2)
  pace.ask()
  await turn()
  expect(sent).toHaveLength(3)
})

it('hands on at once when told, and nothing any more when it is over', async () => {
  const { clock, sent, pace } = paced()
  pace.ask()
  pace.now()
  await turn()
  expect(sent).toHaveLength(1)
  pace.ask()
  pace.cancel()
  clock.advance(10)
  await turn()
  expect(sent).toHaveLength(1)
})
