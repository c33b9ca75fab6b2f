import { expect, it } from 'vitest'
import { FakeClock } from '../../../src/plugins/testing.js'
import { Limiter } from './limiter.js'

const forever = new AbortController().signal

it('lets a burst through at once and the rest at the rate', async () => {
  const clock = new FakeClock()
  const limiter = new Limiter({ qps: 2, burst: 3, maxInflight: 0 }, clock)
  let entered = 0
  for (let i = 0; i < 5; i++) void limiter.enter(forever).then(() => entered++)
  const settled = () => new Promise((resolve) => setImmediate(resolve)).then(() => entered)
  expect(await settled()).toBe(3)
  clock.advance(499)
  expect(await settled()).toBe(3)
  clock.advance(1)
  expect(await settled()).toBe(4)
  clock.advance(500)
  expect(await settled()).toBe(5)
})

it('lets so many in at once, and the next when one leaves or gives up', async () => {
  const limiter = new Limiter({ qps: 0, burst: 0, maxInflight: 1 }, new FakeClock())
  const leave = await limiter.enter(forever)
  const gone = new AbortController()
  const second = limiter.enter(gone.signal)
  let third = false
  const waiting = limiter.enter(forever).then(() => {
    third = true
  })
  gone.abort()
  await expect(second).rejects.toThrow()
  expect(third).toBe(false)
  leave()
  leave()
  await waiting
})
