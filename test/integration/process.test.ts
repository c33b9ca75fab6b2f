/** The server as a process: banner, signals, exit codes, reload, threads that die. */
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { udp } from '../support/client.js'
import { freePorts, type Running, root, run } from '../support/process.js'

let server: Running | undefined
let port = 0
beforeAll(async () => {
  port = (await freePorts(1))[0]!
})
afterEach(async () => {
  await server?.stop()
  server = undefined
})

function cli(args: readonly string[], options: { cwd?: string; input?: string } = {}) {
  return spawnSync(process.execPath, [path.join(root, 'dist', 'cli.js'), ...args], { encoding: 'utf8', timeout: 15_000, ...options })
}

async function rcode(name: string): Promise<number> {
  const client = await udp(port)
  try {
    return (await client.ask(name, 'A')).rcode
  } finally {
    client.close()
  }
}

test('the banner names zones and version; SIGTERM ends with 0 and takes the pid file along', async () => {
  server = await run(`example.org:${port} a.org:${port} {\n whoami\n}\n`, port, { args: ['-pidfile', 'pid'] })
  await server.saw(/node\d+/)
  expect(server.output()).toMatch(
    new RegExp(`^a\\.org\\.:${port}\nexample\\.org\\.:${port}\nCairnDNS-\\d+\\.\\d+\\.\\d+\n${process.platform}/\\w+, node`),
  )
  const pidfile = path.join(server.folder, 'pid')
  expect(fs.readFileSync(pidfile, 'utf8')).toBe(`${server.pid}\n`)
  server.signal('SIGTERM')
  expect(await server.exited).toBe(0)
  expect(server.output()).toContain('[INFO] SIGTERM: Shutting down servers then terminating\n')
  expect(fs.existsSync(pidfile)).toBe(false)
})

test('-quiet prints neither', async () => {
  server = await run(`.:${port} {\n whoami\n}\n`, port, { args: ['-quiet'] })
  server.signal('SIGINT')
  expect(await server.exited).toBe(0)
  expect(server.output()).toBe('[INFO] SIGINT: Shutting down\n')
})

test('SIGINT waits for lameduck; a second one does not', async () => {
  const [health] = await freePorts(1)
  server = await run(`.:${port} {\n whoami\n health 127.0.0.1:${health} {\n  lameduck 60s\n }\n}\n`, port)
  await server.saw(/node\d+/)
  server.signal('SIGINT')
  await server.saw(/lameduck mode for 1m0s/)
  expect(await rcode('example.org.')).toBe(0)
  server.signal('SIGINT')
  expect(await server.exited).toBe(2)
  expect(server.output()).toContain('[INFO] SIGINT: Force quit\n')
})

test('SIGUSR1 reloads, keeps the old on failure, and starts no debugger', async () => {
  server = await run(`example.org:${port} {\n whoami\n}\n`, port)
  await server.saw(/node\d+/)
  fs.writeFileSync(server.corefile, `example.net:${port} {\n whoami\n}\n`)
  server.signal('SIGUSR1')
  await server.saw(/\[INFO\] SIGUSR1: Reloading\n\[INFO\] Reloading\n\[INFO\] Reloading complete\n/)
  expect(await rcode('example.net.')).toBe(0)
  expect(await rcode('example.org.')).toBe(5)
  fs.writeFileSync(server.corefile, `example.net:${port} {\n whomai\n}\n`)
  server.signal('SIGUSR1')
  await server.saw(/\[ERROR\] Restart failed: .*Corefile:2 - Error during parsing: Unknown directive 'whomai'.*\n\[ERROR\] SIGUSR1: /)
  expect(await rcode('example.net.')).toBe(0)
  expect(server.output()).not.toMatch(/debugger/i)
})

test('a serving thread that crashes is replaced and serves again', async () => {
  const crash = `export default { name: 'crash', apiVersion: 1, setup: () => ({ name: 'crash', serveDNS(query, next) {
    if (query.name.toString() === 'crash.') setTimeout(() => { throw new Error('on purpose') })
    return next(query) } }) }`
  const files = { 'crash.mjs': crash, 'table.cfg': 'crash:./crash.mjs\nwhoami:whoami\n' }
  server = await run(`.:${port} {\n crash\n whoami\n}\n`, port, { args: ['-plugin-cfg', 'table.cfg'], files })
  await server.saw(/node\d+/)
  await rcode('crash.')
  await server.saw(/\[ERROR\] Serving thread 0 ended: on purpose\. Starting another in 100 ms\n\[INFO\] Serving thread 0 is back/)
  expect(await rcode('example.org.')).toBe(0)
})

describe('a start that cannot be', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairndns-start-'))
  const corefile = (text: string): string => {
    const file = path.join(folder, 'Corefile')
    fs.writeFileSync(file, text)
    return file
  }
  test.each([
    ['a missing file', () => ['-conf', 'nowhere'], 1, /^loading Corefile via flag: open nowhere: no such file or directory\n$/],
    [
      'a broken one',
      () => ['-conf', corefile('.:0 {\n whomai\n}\n')],
      1,
      /^.*Corefile:2 - Error during parsing: Unknown directive 'whomai'[^\n]*\n$/,
    ],
    ['an extra word', () => ['word'], 1, /^extra command line arguments: \[word\]\n$/],
    ['an unknown flag', () => ['-bogus'], 2, /^flag provided but not defined: -bogus\nUsage of cairndns:\n/],
  ])('%s is one line and an exit code', (_title, args, code, stderr) => {
    const result = cli(args(), { cwd: folder })
    expect(result.stderr).toMatch(stderr)
    expect(result.status).toBe(code)
  })
  test('a taken port', async () => {
    const other = net.createServer().listen(0)
    await new Promise((resolve) => other.once('listening', resolve))
    const { port: taken } = other.address() as net.AddressInfo
    const result = cli(['-conf', corefile(`.:${taken} {\n whoami\n}\n`)])
    other.close()
    expect(result.stderr).toMatch(new RegExp(`^listen tcp [^\n]*:${taken}: bind: address already in use\n$`))
    expect(result.status).toBe(1)
  })
})

test('-version and -plugins print and end', () => {
  expect(cli(['-version']).stdout).toMatch(/^CairnDNS-\d.*\n.*node/)
  const lines = cli(['-plugins']).stdout.trim().split('\n')
  expect(lines).toEqual([...lines].sort())
  expect(lines).toContain('cloud_ndots')
})

test('-conf stdin reads the Corefile from standard input', () => {
  expect(cli(['-conf', 'stdin'], { input: '.:53 {\n whomai\n}\n' }).stderr).toMatch(/^stdin:2 - Error/)
})

test('check and query, from the command line', async () => {
  server = await run(`.:${port} {\n whoami\n}\n`, port)
  const good = cli(['check', server.corefile, '--json'])
  expect(JSON.parse(good.stdout)).toMatchObject({ ok: true, files: [{ ok: true, blocks: [{ keys: [`.:${port}`] }] }] })
  const bad = cli(['check', '-'], { input: '.:53 {\n whomai\n}\n' })
  expect([bad.status, bad.stdout]).toEqual([1, expect.stringMatching(/^-: stdin:2 - Error/)])
  const asked = cli(['query', `@127.0.0.1:${port}`, 'example.org', 'A', '+tcp'])
  expect(asked.stdout).toContain('status: NOERROR')
  expect(asked.status).toBe(0)
})
