import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { directives, FakeLog, fakeBlock, fakeContext } from '../testing.js'
import { availableCpus } from './cpus.js'
import module from './index.js'

function setUp(text: string) {
  const block = fakeBlock()
  const warnings: string[] = []
  module.setup(
    directives(text),
    fakeContext('multisocket', { block, log: new FakeLog(''), warn: (line: string) => void warnings.push(line) }),
  )
  return { sockets: block.sockets, warnings }
}

describe('multisocket', () => {
  test.each([
    ['multisocket', availableCpus()],
    ['multisocket 1', 1],
    ['multisocket 2', 2],
    ['multisocket +3', 3],
    ['multisocket 1024', Math.min(1024, 8 * availableCpus())],
  ])('%s: %i threads', (text, threads) => {
    expect(setUp(text).sockets).toBe(threads)
  })

  test('more threads than CPUs are warned of', () => {
    expect(setUp('multisocket 1024').warnings[0]).toMatch(/^1024 serving threads for .*CPU/)
    expect(setUp('multisocket').warnings).toEqual([])
  })

  // The words are CoreDNS's.
  test.each([
    ['multisocket text', 'plugin/multisocket: invalid num sockets: strconv.Atoi: parsing "text": invalid syntax'],
    [
      'multisocket 99999999999999999999',
      'plugin/multisocket: invalid num sockets: strconv.Atoi: parsing "99999999999999999999": value out of range',
    ],
    ['multisocket 0', 'plugin/multisocket: num sockets can not be zero or negative: 0'],
    ['multisocket -1', 'plugin/multisocket: num sockets can not be zero or negative: -1'],
    ['multisocket 1025', 'plugin/multisocket: num sockets exceeds maximum (1024): 1025'],
    ['multisocket 2 2', "Wrong argument count or unexpected line ending after '2'"],
    ['multisocket 2 {\n block\n}', "Unexpected token '{', expecting argument"],
    ['multisocket 2\nmultisocket 3', "Wrong argument count or unexpected line ending after 'multisocket'"],
  ])('%j is refused', (text, message) => {
    expect(() => setUp(text)).toThrow(message)
  })
})

describe('CPUs', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairndns-cpus-'))
  afterAll(() => fs.rmSync(folder, { recursive: true }))

  test.each([
    ['no limit', '0::/\n', { 'cpu.max': 'max 100000\n' }, 8],
    ['none told', '0::/\n', {}, 8],
    ['four CPUs', '0::/\n', { 'cpu.max': '400000 100000\n' }, 4],
    ['one and a half', '0::/\n', { 'cpu.max': '150000 100000\n' }, 1],
    ['a tenth', '0::/\n', { 'cpu.max': '10000 100000\n' }, 1],
    ['more than there are', '0::/\n', { 'cpu.max': '6400000 100000\n' }, 8],
    ['the limit of a parent', '0::/a/b\n', { 'a/cpu.max': '200000 100000\n', 'a/b/cpu.max': '300000 100000\n' }, 2],
    ['a path of the host, seen from inside', '0::/../../a\n', { 'cpu.max': '300000 100000\n' }, 3],
    [
      'version 1',
      '4:memory:/x\n3:cpu,cpuacct:/x\n',
      { 'cpu,cpuacct/x/cpu.cfs_quota_us': '200000\n', 'cpu,cpuacct/x/cpu.cfs_period_us': '100000\n' },
      2,
    ],
    ['version 1 without a limit', '3:cpu,cpuacct:/\n', { 'cpu/cpu.cfs_quota_us': '-1\n', 'cpu/cpu.cfs_period_us': '100000\n' }, 8],
  ] as const)('%s', (title, self, files, cpus) => {
    const root = path.join(folder, title)
    for (const [name, text] of Object.entries(files)) {
      fs.mkdirSync(path.join(root, path.dirname(name)), { recursive: true })
      fs.writeFileSync(path.join(root, name), text)
    }
    fs.mkdirSync(root, { recursive: true })
    fs.writeFileSync(path.join(root, 'self'), self)
    expect(availableCpus(8, root, path.join(root, 'self'))).toBe(cpus)
  })
})
