import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listPlugins, loadModule, pluginTable } from './load.js'
import { builtinTable, mergeTables, parseTable } from './order.js'

const names = (rows: readonly { directive: string }[]): string[] => rows.map(({ directive }) => directive)

describe('a table', () => {
  const base = parseTable('errors:errors\nlog:log\ncache:cache\nhosts:hosts\nforward:forward\n', 'plugin.cfg', true)
  const merged = (text: string): string[] => names(mergeTables(base, parseTable(text, 'user.cfg', false)))

  test.each([
    [
      'a new directive goes ahead of the known one that follows',
      'example:@acme/x\ncache:cache',
      ['errors', 'log', 'example', 'cache', 'hosts', 'forward'],
    ],
    ['or behind the known one before', 'forward:forward\nexample:@acme/x', ['errors', 'log', 'cache', 'hosts', 'forward', 'example']],
    ['several keep their order', 'a:a\nb:b\nhosts:hosts', ['errors', 'log', 'cache', 'a', 'b', 'hosts', 'forward']],
    ['several behind a known one too', 'log:log\na:a\nb:b', ['errors', 'log', 'a', 'b', 'cache', 'hosts', 'forward']],
    ['alone it goes ahead of what answers', 'example:./x.js', ['errors', 'log', 'cache', 'example', 'hosts', 'forward']],
    ['known ones stand in its order', 'cache:cache\nerrors:errors', ['cache', 'log', 'errors', 'hosts', 'forward']],
  ])('%s', (_title, text, expected) => expect(merged(text)).toEqual(expected))

  test('another package replaces a known one', () => {
    const rows = mergeTables(base, parseTable('cache:@acme/cache', 'user.cfg', false))
    expect(rows[2]).toEqual({ directive: 'cache', package: '@acme/cache', builtin: false })
  })

  test.each([
    ['one', 'user.cfg:1 - expected directive:package'],
    ['a:b\n:c', 'user.cfg:2 - expected directive:package'],
    ['a:', 'user.cfg:1 - expected directive:package'],
    ['a:b c', 'user.cfg:1 - a directive and its package hold no blanks'],
    ['# x\na:b\n\na:c # y', "user.cfg:4 - directive 'a' is listed twice"],
  ])('refuses %j', (text, message) => expect(() => parseTable(text, 'user.cfg', false)).toThrow(message))
})

test("the shipped table has CoreDNS's order, with cloud_ndots beside autopath", () => {
  const order = names(builtinTable())
  expect(order.slice(0, 3)).toEqual(['root', 'metadata', 'geoip'])
  expect(order.indexOf('cloud_ndots')).toBe(order.indexOf('autopath') + 1)
  expect(order.indexOf('cache')).toBeLessThan(order.indexOf('kubernetes'))
})

test('every built plugin loads and has the API version', async () => {
  const built = pluginTable().filter(({ specifier }) => specifier !== undefined)
  expect(built.length).toBeGreaterThan(10)
  for (const entry of built) expect((await loadModule(entry)).apiVersion).toBe(1)
  expect(listPlugins(built).split('\n')).toEqual(names(built).sort())
})

describe('a package or file named in --plugin-cfg', () => {
  let folder: string
  const write = (file: string, text: string): void => {
    fs.mkdirSync(path.dirname(path.join(folder, file)), { recursive: true })
    fs.writeFileSync(path.join(folder, file), text)
  }
  const table = (text: string) => {
    write('user.cfg', text)
    return pluginTable('user.cfg', folder)
  }
  const module = (name: string, version = 1): string => `export default { name: '${name}', apiVersion: ${version}, setup: () => null }\n`

  beforeAll(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairndns-order-'))
    write('package.json', '{"type":"module"}')
    write('local.js', module('local'))
    write('folder/index.js', module('folder'))
    write('old.js', module('old', 7))
    write('other.js', module('somebody'))
    write('broken.js', 'throw new Error("boom")')
    write('none.js', 'export const x = 1')
    write(
      'node_modules/@acme/dns-example/package.json',
      '{"type":"module","exports":{".":{"types":"./x.d.ts","import":"./lib/main.js"},"./more":"./more.js"}}',
    )
    write('node_modules/@acme/dns-example/lib/main.js', module('example'))
    write('node_modules/@acme/dns-example/more.js', module('more'))
    write('node_modules/plain/package.json', '{"type":"module","main":"lib.js"}')
    write('node_modules/plain/lib.js', module('plain'))
  })
  afterAll(() => fs.rmSync(folder, { recursive: true }))

  test.each([
    ['local', './local.js'],
    ['folder', './folder'],
    ['example', '@acme/dns-example'],
    ['more', '@acme/dns-example/more'],
    ['plain', 'plain'],
  ])('%s is loaded from %s', async (directive, target) => {
    const entry = table(`${directive}:${target}\n`).find((e) => e.directive === directive)!
    expect((await loadModule(entry)).name).toBe(directive)
  })

  test.each([
    ['x:./absent.js', "user.cfg: plugin './absent.js' of directive 'x' is not found from"],
    ['x:@acme/absent', "user.cfg: plugin '@acme/absent' of directive 'x' is not found from"],
    ['x:github.com/acme/x', "'github.com/acme/x' (directive 'x') is a Go package"],
  ])('%s is refused when the table is read', (text, message) => expect(() => table(text)).toThrow(message))

  test.each([
    ['old:./old.js', /plugin 'old' \(.*\) is made for plugin API version 7; this server has version 1/],
    ['x:./other.js', /calls itself 'somebody'/],
    ['x:./broken.js', /loading plugin 'x' from .*: boom/],
    ['x:./none.js', /has no default export/],
  ])('%s is refused when it is loaded', async (text, message) => {
    const entry = table(text).find(({ builtin }) => !builtin)!
    await expect(loadModule(entry)).rejects.toThrow(message)
  })
})
