import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { directives, FakeClock, type FakeContext, fakeContext, setUp } from '../testing.js'
import health from './index.js'

describe('set-up', () => {
  it.each([
    ['health', undefined],
    ['health localhost:8091', undefined],
    ['health localhost:8092 {\n lameduck 1s\n}', undefined],
    ['health bla', 'plugin/health: address bla: missing port in address'],
    ['health [::1', "plugin/health: address [::1: missing ']' in address"],
    ['health bla bla', "Corefile:2 - Error during parsing: Wrong argument count or unexpected line ending after 'bla'"],
    ['health :99999', 'listen tcp: address 99999: invalid port'],
    ['health :8080 {\n lameduck a\n}', 'plugin/health: unable to parse lameduck duration value: \'a\' : time: invalid duration "a"'],
    ['health :8080 {\n lamedudk 4\n}', "unknown property 'lamedudk'"],
  ])('%j', (text, error) => {
    if (error === undefined) expect(setUp(health, text).plugin).toBeNull()
    else expect(() => setUp(health, text)).toThrow(error)
  })
})

const open: http.Server[] = []
afterEach(() => {
  for (const server of open.splice(0)) server.close()
})

/** The control half on a real endpoint. */
async function serve(text: (port: number) => string, over: Partial<FakeContext> = {}) {
  const server = http.createServer((request, response) => void handler?.(request, response))
  open.push(server)
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  const clock = new FakeClock()
  const context = fakeContext('health', { clock, ...over })
  const part = health.control!(directives(text(port)), context)!
  const handler = context.endpoints.get(`127.0.0.1:${port}/health`)
  return { part, context, clock, url: `http://127.0.0.1:${port}/health` }
}

describe('the endpoint', () => {
  it('says OK, and 503 once a serving thread hangs', async () => {
    let healthy = true
    const process = { ...fakeContext('health').process, healthy: () => healthy }
    const { url } = await serve((port) => `health 127.0.0.1:${port}`, { process })
    const good = await fetch(url)
    expect([good.status, await good.text()]).toEqual([200, 'OK'])
    healthy = false
    expect((await fetch(url)).status).toBe(503)
  })

  it('is asked once a second, and the time that took is counted', async () => {
    const { part, context, clock } = await serve((port) => `health 127.0.0.1:${port}`)
    await part.onStartup!()
    for (let n = 1; n <= 2; n++) {
      clock.advance(1000)
      await vi.waitFor(() => expect(context.metrics.values.get('coredns_health_request_duration_seconds_count{}')).toBe(n))
    }
    expect(context.metrics.values.get('coredns_health_request_failures_total{}')).toBe(0)
    await part.onShutdown!('exit')
  })

  it('counts and logs a check that fails', async () => {
    const { part, context, clock } = await serve((port) => `health 127.0.0.1:${port}`)
    await new Promise((done) => open[0]!.close(done))
    await part.onStartup!()
    clock.advance(1000)
    await vi.waitFor(() => expect(context.metrics.values.get('coredns_health_request_failures_total{}')).toBe(1))
    expect(context.log.lines[0]).toMatch(
      /^\[WARNING\] plugin\/health: Local health request to "http:\/\/127.0.0.1:\d+\/health" failed: .*ECONNREFUSED/,
    )
    await part.onShutdown!('exit')
  })

  it('delays the final shutdown by lameduck, and says so', async () => {
    const { part, context, clock } = await serve((port) => `health 127.0.0.1:${port} {\n lameduck 1500ms\n}`)
    let over = false
    const done = Promise.resolve(part.onFinalShutdown!()).then(() => (over = true))
    expect(context.log.lines).toEqual(['[INFO] plugin/health: Going into lameduck mode for 1.5s'])
    clock.advance(1499)
    await Promise.resolve()
    expect(over).toBe(false)
    clock.advance(1)
    await done
  })
})
