import { expect, test } from 'vitest'
import { parseSelector } from './selector.js'

test.each([
  ['a=b', 'a=b', { a: 'b' }, { a: 'c' }],
  ['a == b', 'a=b', { a: 'b' }, {}],
  ['a!=b', 'a notin (b)', {}, { a: 'b' }],
  ['a', 'a', { a: '' }, { b: 'a' }],
  ['!a', '!a', { b: 'a' }, { a: '' }],
  ['a=', 'a=', { a: '' }, { a: 'b' }],
  ['z in (b, a),x.io/y=1', 'x.io/y=1,z in (a,b)', { z: 'a', 'x.io/y': '1' }, { z: 'a' }],
  ['a notin (b,c)', 'a notin (b,c)', {}, { a: 'c' }],
  ['toString', 'toString', { toString: 'x' }, {}],
])('%s', (text, canonical, yes, no) => {
  const selector = parseSelector(text)
  expect(selector.text).toBe(canonical)
  expect(selector.matches(yes as Record<string, string>)).toBe(true)
  expect(selector.matches(no as Record<string, string>)).toBe(false)
})

test.each(['', 'a in', 'a in (b', 'a in b', 'a b', 'a=b,', '-a=b', 'a=-b', 'a>1', 'a=b c', 'in (a)'])('refuses %j', (text) => {
  expect(() => parseSelector(text)).toThrow()
})
