/**
 * `npm run bench [-- NAME] [OPTION…]`: runs test/bench/NAME.bench.ts (speed, if no name is given), a module whose default export takes the
 * options and returns when all is measured. `list` names them. Helper processes of a bench are modules of the same shape, started by
 * `run.mjs FILE [OPTION…]`.
 */
import { existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { runnerImport } from 'vite'

const folder = import.meta.dirname
const [first = 'speed', ...rest] = process.argv.slice(2)
const [name, options] = first.startsWith('-') ? ['speed', [first, ...rest]] : [first, rest]
const file = [`${name}.bench.ts`, name].map((entry) => path.join(folder, entry)).find((entry) => entry.endsWith('.ts') && existsSync(entry))
if (file === undefined) {
  const benches = readdirSync(folder).flatMap((entry) => (entry.endsWith('.bench.ts') ? [entry.replace('.bench.ts', '')] : []))
  const text = `usage: npm run bench [-- NAME] [OPTION…]\nNAME: ${benches.join(', ')} (default: speed)\nWhat they measure and their options: docs/benchmark.md`
  if (name === 'list' || name === 'help') console.log(text)
  else console.error(text)
  process.exit(name === 'list' || name === 'help' ? 0 : 2)
}
const { module } = await runnerImport(file, { configFile: false, root: path.resolve(folder, '..', '..'), logLevel: 'error' })
await module.default(options)
