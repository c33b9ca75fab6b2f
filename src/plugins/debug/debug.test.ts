import { expect, it } from 'vitest'
import { setUp } from '../testing.js'
import debug from './index.js'

it('turns debugging on for the block', () => {
  expect(setUp(debug, 'debug').context.block.debug).toBe(true)
})

it.each([
  ['debug off', "plugin/debug: Corefile:2 - Error during parsing: Wrong argument count or unexpected line ending after 'off'"],
  ['debug {\n foo\n}', "unknown property 'foo'"],
])('refuses %j', (text, error) => {
  expect(() => setUp(debug, text)).toThrow(error)
})
