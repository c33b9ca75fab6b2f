/** The server as a process with several serving threads: who answers, what dies, what a reload and a second server do. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { connect } from 'node:tls'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Message } from '../../src/dns/index.js'
import { CA, CERT, KEY } from '../fakes/certificate.js'
import { type Client, tcp, udp } from '../support/client.js'
import { freePorts, type Running, root, run, until } from '../support/process.js'
import { metricSum, outcomes, shout, threadFiles } from '../support/threads.js'

let server: Running
let port = 0
let metricsPort = 0
beforeEach(async () => {
  ;[port, metricsPort] = (await freePorts(2)) as [number, number]
})
afterEach(() => server.stop())

const corefile = (word: string, sockets: string): string =>
  `.:${port} {\n ${sockets}\n kill\n prometheus 127.0.0.1:${metricsPort}\n thread ${word}\n}\n`

async function start(text: string, args: readonly string[] = [], files: Readonly<Record<string, string>> = {}): Promise<void> {
  server = await run(text, port, { args: ['-plugin-cfg', 'table.cfg', ...args], files: { ...threadFiles, ...files } })
  await server.saw(/node\d+/)
}

async function reload(text: string, outcome: RegExp): Promise<void> {
  const before = server.output().length
  fs.writeFileSync(server.corefile, text)
  server.signal('SIGUSR1')
  await until(
    () => outcome.test(server.output().slice(before)),
    10_000,
    () => `no ${outcome} in ${server.output()}`,
  )
}

const words = (message: Message): string => {
  const data = message.answers[0]?.data
  return data?.kind === 'TXT' ? data.strings.map(String).join(' ') : `rcode ${message.rcode}`
}

const answers = (connect: (port: number) => Promise<Client>, count?: number): Promise<string[]> =>
  outcomes(() => connect(port), 'a.', 'TXT', words, count)

const requests = (): Promise<number> => metricSum(metricsPort, 'coredns_dns_requests_total')

test('two threads share what comes by UDP and TCP, and are counted as one', async () => {
  await start(corefile('w', 'multisocket 2'))
  expect(await answers(udp)).toEqual(['w 0 2', 'w 1 2'])
  expect(await answers(tcp)).toEqual(['w 0 2', 'w 1 2'])
  expect(await requests()).toBe(48)
  server.signal('SIGTERM')
  expect(await server.exited).toBe(0)
})

test('a second server on the same port does not start, whatever the number of threads', async () => {
  await start(corefile('w', 'multisocket 2'))
  const other = path.join(server.folder, 'Other')
  fs.writeFileSync(other, `.:${port} {\n whoami\n}\n`)
  for (const threads of ['1', '2']) {
    const second = spawnSync(process.execPath, [path.join(root, 'dist', 'cli.js'), '-conf', other, '-threads', threads], {
      cwd: server.folder,
      encoding: 'utf8',
      timeout: 10_000,
    })
    expect(second.stderr).toMatch(new RegExp(`^listen tcp :${port}: bind: address already in use\n$`))
    expect(second.status).toBe(1)
  }
})

test('a thread that dies: the other answers on, the new one comes beside it, and no count is lost', async () => {
  await start(corefile('w', ''), ['-threads', '2'])
  expect(await answers(udp)).toEqual(['w 0 2', 'w 1 2'])
  await shout(port, 'die.')
  await server.saw(/\[ERROR\] Serving thread \d ended/)
  expect(await answers(udp)).toHaveLength(1)
  await server.saw(/\[INFO\] Serving thread \d is back/)
  expect(await answers(udp)).toEqual(['w 0 2', 'w 1 2'])
  expect(await requests()).toBe(72)
})

test('a thread that hangs is replaced, and a reload goes through afterwards', async () => {
  await start(corefile('w', 'multisocket 2'))
  await shout(port, 'hang.')
  await server.saw(/\[ERROR\] Serving thread \d has given no sign of life for 5 s[\s\S]*is back/, 15_000)
  await reload(corefile('x', 'multisocket 2'), /Reloading complete/)
  expect(await answers(udp)).toEqual(['x 0 2', 'x 1 2'])
})

test('a reload is that of all threads, or of none', async () => {
  await start(corefile('w', 'multisocket 2'))
  await reload(corefile('x fails', 'multisocket 2'), /Restart failed: thread 1 does not like it/)
  expect(await answers(udp)).toEqual(['w 0 2', 'w 1 2'])
  await reload(corefile('x dies', 'multisocket 2'), /Restart failed: serving thread ended/)
  await server.saw(/Serving thread 1 is back/)
  expect(await answers(udp)).toEqual(['w 0 2', 'w 1 2'])
  await reload(corefile('y', 'multisocket 2'), /Reloading complete/)
  expect(await answers(udp)).toEqual(['y 0 2', 'y 1 2'])
})

test('reloads of two threads lose no query', async () => {
  await start(corefile('w0', 'multisocket 2'))
  const clients = await Promise.all(Array.from({ length: 8 }, () => udp(port)))
  clients.push(...(await Promise.all(Array.from({ length: 4 }, () => tcp(port)))))
  let going = true
  const seen = new Set<string>()
  const asking = clients.map(async (client) => {
    while (going) seen.add(words(await client.ask('a.', 'TXT')).slice(0, 4))
    client.close()
  })
  for (let i = 1; i <= 5; i++) await reload(corefile(`w${i}`, 'multisocket 2'), /Reloading complete/)
  going = false
  await Promise.all(asking)
  for (const word of ['w1', 'w5']) for (const thread of [0, 1]) expect([...seen]).toContain(`${word} ${thread}`)
})

test('a reload takes new addresses for all threads, or none if somebody is there', async () => {
  await start(corefile('w', 'multisocket 2'))
  const [next] = (await freePorts(1)) as [number]
  const moved = corefile('x', 'multisocket 2').replace(`.:${port}`, `.:${next}`)
  const foreign = net.createServer().listen(next)
  await once(foreign, 'listening')
  await reload(moved, new RegExp(`Restart failed: listen tcp :${next}: bind: address already in use`))
  expect(await answers(udp)).toEqual(['w 0 2', 'w 1 2'])
  foreign.close()
  await once(foreign, 'close')
  await reload(moved, /Reloading complete/)
  for (const connect of [udp, tcp]) expect(await outcomes(() => connect(next), 'a.', 'TXT', words)).toEqual(['x 0 2', 'x 1 2'])
  await expect(tcp(port)).rejects.toThrow('ECONNREFUSED')
})

test('by TLS, too, and a session goes on in either thread', async () => {
  const options = { port, host: '127.0.0.1', servername: 'localhost', ca: CA }
  const secure = { 'cert.pem': CERT, 'key.pem': KEY }
  await start(`tls://.:${port} {\n multisocket 2\n tls cert.pem key.pem\n thread w\n}\n`, [], secure)
  const first = connect(options)
  const session = await new Promise<Buffer>((resolve) => first.once('session', resolve).resume())
  const again = await Promise.all(
    Array.from({ length: 12 }, async () => {
      const socket = connect({ ...options, session })
      await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject))
      const reused = socket.isSessionReused()
      socket.destroy()
      return reused
    }),
  )
  first.destroy()
  expect(again).not.toContain(false)
  expect(await answers((at) => tcp(at, true))).toEqual(['w 0 2', 'w 1 2'])
})

test('a reload changes the number of threads, and loses no query on the way up', async () => {
  await start(corefile('w', ''))
  expect(await answers(udp)).toEqual(['w 0 1'])
  let going = true
  let asked = 0
  const asking = (async () => {
    const client = await udp(port)
    for (; going; asked++) await client.ask('a.', 'TXT')
    client.close()
  })()
  await reload(corefile('x', 'multisocket 3'), /Reloading complete/)
  going = false
  await asking
  expect(asked).toBeGreaterThan(0)
  expect(await answers(tcp, 48)).toEqual(['x 0 3', 'x 1 3', 'x 2 3'])
  await reload(corefile('y', ''), /Reloading complete/)
  await until(
    async () => (await answers(udp)).join() === 'y 0 1',
    10_000,
    () => 'threads beyond the first still answer',
  )
  expect(await requests()).toBeGreaterThan(72)
  // Nobody else may come to the port now.
  await reload(corefile('z', 'multisocket 2'), /Reloading complete/)
  expect(await answers(udp)).toEqual(['z 0 2', 'z 1 2'])
})
