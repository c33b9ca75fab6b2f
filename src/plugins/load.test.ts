import { expect, test } from 'vitest'
import { loadModule, mayControl, pluginTable } from './load.js'

test('the control thread loads the built-in plugins that have a part there, and no others', async () => {
  const built = pluginTable().filter(({ specifier }) => specifier !== undefined)
  const controlled: string[] = []
  for (const entry of built) {
    const module = await loadModule(entry)
    if (module.control !== undefined || module.loadControl !== undefined) controlled.push(entry.directive)
  }
  expect(built.filter(mayControl).map(({ directive }) => directive)).toEqual(controlled)
})

test('of a plugin of somebody else, and of one that is not built, nobody knows', () => {
  expect(mayControl({ directive: 'cache', specifier: 'file:///cache.js', builtin: false })).toBe(true)
  expect(mayControl({ directive: 'dnssec', specifier: undefined, builtin: true })).toBe(true)
})
