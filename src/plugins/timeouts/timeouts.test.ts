import { expect, it } from 'vitest'
import { setUp } from '../testing.js'
import timeouts from './index.js'

it('sets what it names, in milliseconds; a bare number is seconds', () => {
  const { block } = setUp(timeouts, 'timeouts {\n read 1m\n write 20\n maxtcpqueries 128\n}').context
  expect([block.timeouts, block.maxTcpQueries]).toEqual([{ read: 60_000, write: 20_000, idle: 0 }, 128])
  expect(setUp(timeouts, 'timeouts {\n maxtcpqueries -1\n}').context.block.maxTcpQueries).toBeUndefined()
})

it.each([
  ['timeouts', 'plugin/timeouts: Corefile:2 - Error during parsing: timeouts block with no timeouts specified'],
  ['timeouts 1s', "Wrong argument count or unexpected line ending after '1s'"],
  ['timeouts {\n read 10s 20s\n}', "Wrong argument count or unexpected line ending after '20s'"],
  ['timeouts {\n write snake\n}', "failed to parse duration 'snake'"],
  ['timeouts {\n idle 0s\n}', "timeout provided '0s' needs to be between 1 second and 24 hours"],
  ['timeouts {\n idle 48h\n}', "timeout provided '48h0m0s' needs to be between 1 second and 24 hours"],
  ['timeouts {\n foo 10s\n}', "unknown option: 'foo'"],
  ['timeouts {\n maxtcpqueries 0\n}', "maxtcpqueries provided '0' needs to be -1 (unlimited) or a positive integer"],
  ['timeouts {\n maxtcpqueries snake\n}', 'invalid value for maxtcpqueries \'snake\': strconv.Atoi: parsing "snake": invalid syntax'],
])('refuses %j', (text, error) => {
  expect(() => setUp(timeouts, text)).toThrow(error)
})
