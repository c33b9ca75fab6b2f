// `npm start`: builds if the build is missing or older than a source, then serves the example cluster.
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
process.chdir(root)

function newest(folder) {
  let time = 0
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    const file = path.join(folder, entry.name)
    if (entry.isDirectory()) time = Math.max(time, newest(file))
    else if (/\.(ts|json)$/.test(entry.name)) time = Math.max(time, fs.statSync(file).mtimeMs)
  }
  return time
}

const cli = path.join(root, 'dist', 'cli.js')
const sources = Math.max(newest('src'), newest('plugins'), fs.statSync('cli.ts').mtimeMs, fs.statSync('package.json').mtimeMs)
const stamp = path.join(root, 'dist', '.tsbuildinfo')
if (!fs.existsSync(cli) || !fs.existsSync(stamp) || fs.statSync(stamp).mtimeMs < sources) {
  const tsc = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  if (!fs.existsSync(tsc)) {
    console.error('cairndns is not installed yet: run `npm ci` first')
    process.exit(1)
  }
  console.log('Building (the first start, or sources have changed) ...')
  const built = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], { stdio: 'inherit' })
  if (built.status !== 0) process.exit(built.status ?? 1)
  fs.utimesSync(stamp, new Date(), new Date())
}
process.argv = [
  process.execPath,
  cli,
  ...(process.argv.length > 2 ? process.argv.slice(2) : ['-conf', 'examples/Corefile', '-hints', 'examples/try.txt']),
]
await import(cli)
