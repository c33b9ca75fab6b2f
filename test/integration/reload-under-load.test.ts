/**
 * 50 reloads of the example Corefile, one in three broken, its upstream replaced and a `tls://` block coming and going, while a client asks
 * 2,000 questions a second: none is lost, none fails, no connection is cut.
 */
import { type ChildProcess, fork } from 'node:child_process'
import fs from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePorts, type Running, root, run, until } from '../support/process.js'

const RELOADS = 50
const PER_SECOND = 2000
const UPSTREAM_MS = 300
/** What the client saw. */
interface Tally {
  readonly asked: number
  /** What the rate came to: less than asked for where the machine has no time. */
  readonly perSecond: number
  readonly forwarded: number
  readonly answered: number
  /** Milliseconds. */
  readonly slowest: number
  readonly bad: readonly string[]
  readonly cut: readonly string[]
}

let server: Running
let upstreams: ChildProcess[] = []
let ports: readonly number[]
const example = fs.readFileSync(`${root}/examples/Corefile`, 'utf8')

/** Answers every question after 300 ms, in a process of its own. */
function slowUpstream(port: number): Promise<ChildProcess> {
  const child = fork(`${root}/test/support/slow-upstream.mjs`, [String(port), String(UPSTREAM_MS)], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  return new Promise((resolve) => child.stdout!.once('data', () => resolve(child)))
}

const tlsBlock = (port: number, zone: string, line = ''): string => `
tls://${zone}:${port} {
    tls ${root}/test/support/tls/cert.pem ${root}/test/support/tls/key.pem
    kubernetes cluster.local {
        manifests ${root}/examples/cluster
    }
    forward . 127.0.0.1:${ports[2]}
    ${line}
}
`
const BROKEN = ['forwrad . 1.1.1.1', 'tls no-such-cert.pem no-such-key.pem', 'forward']

/** The example as the n-th reload finds it. The block of the kept DoT connection stays, another comes and goes. */
function corefile(n: number): string {
  const upstream = ports[2 + (n % 2)]
  const text = example
    .replaceAll(':1053', `:${ports[0]}`)
    .replace('/etc/resolv.conf', `127.0.0.1:${upstream}`)
    .replace('examples/cluster', `${root}/examples/cluster`)
    .replace('health {', `health 127.0.0.1:${ports[5]} {`)
    .replace('ready\n', `ready 127.0.0.1:${ports[6]}\n`)
    .replace('prometheus :9153', `prometheus 127.0.0.1:${ports[7]}`)
  const coming = n % 4 < 2 ? tlsBlock(ports[4]!, 'corp.mycloud.io') : ''
  return (
    text + tlsBlock(ports[1]!, '.') + coming + (n % 3 === 2 ? tlsBlock(ports[8]!, 'broken', BROKEN[Math.floor(n / 3) % BROKEN.length]) : '')
  )
}

beforeAll(async () => {
  ports = await freePorts(9)
  upstreams = await Promise.all([slowUpstream(ports[2]!), slowUpstream(ports[3]!)])
  server = await run(corefile(0), ports[0]!)
}, 30_000)
afterAll(async () => {
  for (const upstream of upstreams) upstream.kill()
  await server?.stop()
})

/** Resolves once the client asks; what it resolves to ends that and says what the client saw. */
async function startLoad(): Promise<() => Promise<Tally>> {
  const options = JSON.stringify({ port: ports[0], dotPort: ports[1], perSecond: PER_SECOND })
  const client = fork(`${root}/test/support/load-client.mjs`, [options])
  const next = (): Promise<unknown> =>
    new Promise((resolve, reject) => {
      client.once('message', resolve)
      client.once('exit', (code) => reject(new Error(`the client ended with code ${code}`)))
    })
  await next()
  const tally = next()
  // Looked at when the reloads are through.
  tally.catch(() => undefined)
  return () => {
    if (client.connected) client.send('stop')
    return tally as Promise<Tally>
  }
}

/** Datagrams to the server that the kernel had no room for: the server, or the whole machine, had no time to read them. */
function dropped(): number {
  const local = new RegExp(`^\\s*\\d+: \\w+:${ports[0]!.toString(16).toUpperCase().padStart(4, '0')} .* (\\d+)\\s*$`, 'gm')
  return [...fs.readFileSync('/proc/net/udp', 'utf8').matchAll(local)].reduce((sum, match) => sum + Number(match[1]), 0)
}

test(`${RELOADS} reloads under ${PER_SECOND} queries a second lose nothing`, { timeout: 180_000 }, async () => {
  const stop = await startLoad()
  const count = (pattern: RegExp): number => server.output().match(pattern)?.length ?? 0
  const failed = (): number => count(/Restart failed|Corefile changed but reload failed/g)
  const outcomes = (): number => count(/Reloading complete/g) + failed()
  for (let n = 1; n <= RELOADS; n++) {
    const before = outcomes()
    fs.writeFileSync(server.corefile, corefile(n))
    server.signal('SIGUSR1')
    await until(
      () => outcomes() > before,
      10_000,
      () => `reload ${n} had no outcome:\n${server.output()}`,
    )
  }
  const tally = await stop()
  const broken = Math.floor((RELOADS + 1) / 3)
  expect(
    tally.bad.slice(0, 10),
    `${tally.bad.length} of ${tally.asked} failed at ${tally.perSecond} a second; ${dropped()} datagrams found no room\n${server.output().slice(-2000)}`,
  ).toEqual([])
  expect(tally.cut).toEqual([])
  expect(tally.answered).toBe(tally.asked)
  expect(tally.forwarded).toBeGreaterThan(tally.asked / 3 - 2)
  // The `reload` plugin looks at the file too, and may be first.
  expect(count(/Reloading complete/g)).toBeGreaterThanOrEqual(RELOADS - broken)
  expect(failed()).toBeGreaterThanOrEqual(broken)
})
