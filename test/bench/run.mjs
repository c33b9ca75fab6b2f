/**
 * `npm run bench -- NAME [OPTION…]`: runs test/bench/NAME.bench.ts, a module whose default export takes the options and returns when all is
 * measured. Helper processes of a bench are modules of the same shape, started by `run.mjs FILE [OPTION…]`.
 */
import { existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { runnerImport } from 'vite'

const folder = import.meta.dirname
const [name = '', ...options] = process.argv.slice(2)
const file = [`${name}.bench.ts`, name].map((entry) => path.join(folder, entry)).find((entry) => entry.endsWith('.ts') && existsSync(entry))
if (file === undefined) {
  const benches = readdirSync(folder).flatMap((entry) => (entry.endsWith('.bench.ts') ? [entry.replace('.bench.ts', '')] : []))
  console.error(`usage: npm run bench -- NAME [OPTION…]\nNAME: ${benches.join(', ')}`)
  process.exit(2)
}
const { module } = await runnerImport(file, { configFile: false, root: path.resolve(folder, '..', '..'), logLevel: 'error' })
await module.default(options)
