import { expect, it } from 'vitest'
import { compilePattern } from './pattern.js'
import { formatDuration, questionClass, questionType } from './words.js'

it.each([
  [0, '0s'],
  [300, '300ms'],
  [1500, '1.5s'],
  [60_000, '1m0s'],
  [5_400_000, '1h30m0s'],
  [-2000, '-2s'],
  [0.0025, '2.5µs'],
])('prints %d ms as Go does: %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text)
})

it('compiles RE2 and words its errors as Go does', () => {
  expect(compilePattern('(?P<x>a)(?i)B$').test('zab')).toBe(true)
  expect(() => compilePattern('())')).toThrow('error parsing regexp: unexpected ): `())`')
  expect(() => compilePattern('a'.repeat(10_001))).toThrow('regex pattern too long: 10001 > 10000')
})

it('takes linear time where a backtracking engine would not end', () => {
  expect(compilePattern('(a+)+$').test(`${'a'.repeat(20_000)}b`)).toBe(false)
})

it('names types and classes of questions as log lines of CoreDNS do', () => {
  expect([0, 1, 255, 65_280].map(questionType)).toEqual(['None', 'A', 'ANY', 'TYPE65280'])
  expect([1, 3, 254, 255].map(questionClass)).toEqual(['IN', 'CH', 'NONE', 'CLASS255'])
})
