import { expect, it } from 'vitest'
import { setUp } from '../testing.js'
import https from './index.js'

it.each([
  ['https {\n}', undefined],
  ['https {\n max_connections 0\n}', 0],
  ['https {\n max_connections 100\n}', 100],
])('%j sets %j', (text, limit) => {
  expect(setUp(https, text).context.block.httpsMaxConnections).toBe(limit)
})

it.each([
  ['https a', "plugin/https: Corefile:2 - Error during parsing: Wrong argument count or unexpected line ending after 'a'"],
  ['https {\n max_connections\n}', "Wrong argument count or unexpected line ending after 'max_connections'"],
  ['https {\n max_connections a\n}', 'invalid max_connections value \'a\': strconv.Atoi: parsing "a": invalid syntax'],
  ['https {\n max_connections -1\n}', 'max_connections must be a non-negative integer: -1'],
  ['https {\n max_connections 1\n max_connections 2\n}', 'max_connections already defined for this server block'],
  ['https {\n foo\n}', "unknown property 'foo'"],
])('refuses %j', (text, error) => {
  expect(() => setUp(https, text)).toThrow(error)
})
