import { expect, test } from 'vitest'
import { ownTask, waited } from './starved.js'

test.skipIf(process.platform !== 'linux')('a thread knows its number, under which the kernel tells how long it waited', () => {
  const task = ownTask()
  expect(task).toBeGreaterThan(0)
  const before = waited(task)
  expect(before).toBeGreaterThan(0)
  expect(waited(task)).toBeGreaterThanOrEqual(before)
})

test('of threads that nobody knows nothing is told', () => {
  expect(waited(undefined)).toBe(0)
  expect(waited(2 ** 31 - 1)).toBe(0)
})
