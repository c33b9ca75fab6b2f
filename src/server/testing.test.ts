import { afterEach, expect, test } from 'vitest'
import { startServer, type TestServer } from './testing.js'

let server: TestServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

test('a Corefile in, answers out, over UDP and TCP', async () => {
  server = await startServer({ corefile: 'example.org:0 {\n whoami\n log\n}\n' })
  expect(server.listening).toEqual([`example.org.:${server.port}`])
  for (const proto of ['udp', 'tcp'] as const) {
    const reply = await server.query('www.example.org', 'A', { proto })
    expect(reply.rcode).toBe(0)
    expect(reply.additionals.length).toBe(2)
  }
  expect((await server.query('example.com')).rcode).toBe(5)
})

test('a key without a port is given a free one', async () => {
  server = await startServer({ corefile: 'example.org {\n whoami\n}\n' })
  expect((await server.query('www.example.org')).rcode).toBe(0)
})

test('a reload serves the new zones, and a broken one leaves the old', async () => {
  server = await startServer({ corefile: 'example.org:0 {\n whoami\n}\n' })
  const { port } = server
  expect(await server.reload(`example.org:${port} example.net:${port} {\n whoami\n}\n`)).toBeUndefined()
  expect((await server.query('example.net', 'A', { port })).rcode).toBe(0)
  const failure = await server.reload(`example.org:${port} {\n whomai\n}\n`)
  expect(failure?.message).toContain("Corefile:2 - Error during parsing: Unknown directive 'whomai'")
  expect((await server.query('example.net', 'A', { port })).rcode).toBe(0)
  expect(server.logs).toEqual(
    expect.arrayContaining([
      '[INFO] Reloading',
      '[INFO] Reloading complete',
      expect.stringMatching(/^\[ERROR\] Restart failed: Corefile:2/),
    ]),
  )
  expect(await server.metrics()).toContain('coredns_reload_failed_total 1')
})

test('a Corefile without any block, met by a reload, leaves the old one too', async () => {
  server = await startServer({ corefile: 'example.org:0 {\n whoami\n}\n' })
  expect((await server.reload('# being written\n'))?.message).toBe('Corefile: no server block in it')
  expect((await server.query('example.org')).rcode).toBe(0)
})

test("a test's own plugin is served", async () => {
  server = await startServer({
    corefile: 'example.org:0 {\n refuse\n whoami\n}\n',
    plugins: {
      refuse: { name: 'refuse', apiVersion: 1, setup: () => ({ name: 'refuse', serveDNS: (query) => query.reply('refuse', 5) }) },
    },
  })
  expect((await server.query('example.org')).rcode).toBe(5)
})

test('errors of a start are what the command line prints', async () => {
  await expect(startServer({ corefile: '.:0 {\n dnssec\n}\n' })).rejects.toThrow(
    "Corefile:2 - Error during parsing: directive 'dnssec' is known to CoreDNS but not built yet",
  )
  await expect(startServer({ corefile: '.:0 {\n health {\n lameduck x\n }\n}\n' })).rejects.toThrow('plugin/health')
})

test('metrics are the same with several serving threads', async () => {
  const corefile = '. {\n prometheus localhost:0\n hosts {\n 192.0.2.1 a.example.\n }\n cache\n forward . 127.0.0.1:1\n}'
  const series = async (threads: number) => {
    const server = await startServer({ corefile, threads })
    for (let i = 0; i < 8; i++) await server.query('a.example.')
    const text = await server.metrics()
    await server.close()
    const lines = text.split('\n').filter((line) => /^(# TYPE )?(coredns|cairndns)_/.test(line) && !line.includes('_seconds'))
    // What was bound differs.
    return lines.map((line) => line.replace(/:\d+"/g, ':N"'))
  }
  const one = await series(1)
  expect(one.length).toBeGreaterThan(50)
  expect(await series(2)).toEqual(one)
})
