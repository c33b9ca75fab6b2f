import { expect, test } from 'vitest'
import { clearColumn, newBoard, tallyOn } from './board.js'

test('threads count on one number together, each on the ones of its generation', () => {
  const board = newBoard()
  const [a, b] = [tallyOn(board, 1, 0, 0, 2), tallyOn(board, 1, 0, 1, 2)]
  const [second, later] = [tallyOn(board, 1, 1, 0, 2), tallyOn(board, 2, 0, 0, 2)]
  a.add(2)
  b.add(1)
  expect([a.total(), b.total(), second.total(), later.total()]).toEqual([3, 3, 0, 0])
  a.add(-2)
  expect(b.total()).toBe(1)
})

test('what a dead thread had under way is gone, and the one in its place begins at nothing', () => {
  const board = newBoard()
  const [a, b] = [tallyOn(board, 1, 0, 0, 2), tallyOn(board, 1, 0, 1, 2)]
  a.add(5)
  b.add(1)
  clearColumn(board, 0)
  expect(b.total()).toBe(1)
  const again = tallyOn(board, 1, 0, 0, 2)
  again.add(1)
  expect(b.total()).toBe(2)
})

test('a single thread counts alone; beyond the room of the board each takes the others to be like itself', () => {
  const board = newBoard()
  const alone = tallyOn(board, 1, 0, 0, 1)
  alone.add(4)
  expect([alone.total(), new Int32Array(board).some((cell) => cell !== 0)]).toEqual([4, false])
  const many = tallyOn(board, 1, 64, 0, 2)
  many.add(3)
  expect(many.total()).toBe(6)
})
