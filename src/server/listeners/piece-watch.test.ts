import { expect, test } from 'vitest'
import { FakeClock } from '../../plugins/testing.js'
import type { Segments } from '../native/segments.js'
import { PieceWatch } from './piece-watch.js'

function begin(): { clock: FakeClock; segments: Segments; second: (sent: number, pieces: number, heard: number) => boolean } {
  const clock = new FakeClock(0)
  const segments = { usable: true, refused: false, pieces: 0 } as Segments
  const watch = new PieceWatch(clock, segments)
  const second = (sent: number, pieces: number, heard: number): boolean => {
    // The first one only begins the look.
    segments.pieces++
    watch.left()
    segments.pieces += pieces
    watch.sent += sent
    watch.heard += heard
    watch.left()
    clock.advance(1000)
    return segments.usable
  }
  return { clock, segments, second }
}

test('questions leave in pieces as long as they are answered', () => {
  const { second } = begin()
  expect([second(1000, 900, 990), second(1000, 100, 960), second(20, 20, 0), second(0, 0, 0)]).toEqual([true, true, true, true])
})

test('while those in pieces get lost, all leave one by one for a minute', () => {
  const { clock, segments, second } = begin()
  expect(second(1000, 200, 850)).toBe(false)
  clock.advance(59_000)
  expect(segments.usable).toBe(false)
  clock.advance(1001)
  expect(segments.usable).toBe(true)
})

test('what the kernel has refused is not tried again', () => {
  const { clock, segments, second } = begin()
  segments.refused = true
  second(1000, 900, 0)
  clock.advance(61_000)
  expect(segments.usable).toBe(false)
})
