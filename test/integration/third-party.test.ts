/** The example package, installed as its README says, and served. */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { formatRecord } from '../../src/dns/index.js'
import { udp } from '../support/client.js'
import { freePorts, root, run } from '../support/process.js'

let folder: string
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairndns-plugin-'))
  fs.writeFileSync(path.join(folder, 'package.json'), '{"private": true}')
  execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', path.join(root, 'examples', 'plugin')], {
    cwd: folder,
    stdio: 'pipe',
  })
}, 60_000)
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

test.each([
  ['a package', 'greet:cairndns-example-plugin'],
  ['a local file', `greet:${path.join(root, 'examples', 'plugin', 'index.js')}`],
])('%s named in --plugin-cfg is set up, serves and counts', async (_, entry) => {
  const [port, metrics] = (await freePorts(2)) as [number, number]
  fs.writeFileSync(path.join(folder, 'plugins.cfg'), `${entry}\n`)
  const text = fs.readFileSync(path.join(root, 'examples', 'plugin', 'Corefile'), 'utf8').replace('1053', String(port))
  const server = await run(text.replace('whoami', `whoami\n    prometheus 127.0.0.1:${metrics}`), port, {
    cwd: folder,
    args: ['--plugin-cfg', 'plugins.cfg'],
  })
  try {
    const client = await udp(port)
    const reply = await client.ask('hello.example.org.', 'TXT')
    expect(reply.answers.map(formatRecord)).toEqual(['hello.example.org.\t30\tIN\tTXT\t"good morning"'])
    client.close()
    const text = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text()
    expect(text).toMatch(/^example_greet_answers_total\{.*\} 1$/m)
  } finally {
    await server.stop()
  }
})

test("its set-up errors carry the place and a near word, as a built-in plugin's do", async () => {
  const [port] = (await freePorts(1)) as [number]
  fs.writeFileSync(path.join(folder, 'plugins.cfg'), 'greet:cairndns-example-plugin\n')
  const refused = run(`.:${port} {\n    greet {\n        txet hello\n    }\n}\n`, port, {
    cwd: folder,
    args: ['--plugin-cfg', 'plugins.cfg'],
  })
  await expect(refused).rejects.toThrow(/plugin\/greet: .*Corefile:3 - Error during parsing: unknown property 'txet'.*did you mean 'text'/)
})
