/** 50 reloads, one in three broken, while clients ask 2,000 questions a second: none is lost, none fails, no connection is cut. */
import { type ChildProcess, fork } from 'node:child_process'
import fs from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { rcodeName } from '../../src/dns/index.js'
import { type Client, tcp, udp } from '../support/client.js'
import { freePorts, type Running, root, run, until } from '../support/process.js'

const RELOADS = 50
const PER_SECOND = 2000
/** Of a client: on a busy machine late is not lost. */
const PATIENCE_MS = 15_000
/** Three times what the slow upstream keeps waiting. More at once, on a busy machine, and the kernel drops what its buffers can't hold. */
const MOST_OPEN = 600
let server: Running
let upstream: ChildProcess
let ports: readonly number[]

/** Answers every question after 300 ms, in a process of its own. */
function slowUpstream(port: number): Promise<ChildProcess> {
  const child = fork(`${root}/test/support/slow-upstream.mjs`, [String(port), '300'], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  return new Promise((resolve) => child.stdout!.once('data', () => resolve(child)))
}

const corefile = (n: number): string => `.:${ports[0]} {
    errors
    health 127.0.0.1:${ports[2]} {
        lameduck 1s
    }
    ready 127.0.0.1:${ports[3]}
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        manifests ${root}/examples/cluster
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl ${n % 2 === 0 ? 30 : 29}
    }
    prometheus 127.0.0.1:${ports[4]}
    forward . 127.0.0.1:${ports[5]} {
        max_concurrent 5000
        max_fails ${n % 2 === 0 ? 2 : 3}
    }
    cache ${n % 2 === 0 ? 30 : 20}
    reload
    loadbalance
    ${n % 3 === 2 ? 'forwrad . 1.1.1.1' : ''}
}
tls://.:${ports[1]} {
    tls ${root}/test/support/tls/cert.pem ${root}/test/support/tls/key.pem
    kubernetes cluster.local {
        manifests ${root}/examples/cluster
    }
}
`

beforeAll(async () => {
  ports = await freePorts(6)
  upstream = await slowUpstream(ports[5]!)
  server = await run(corefile(0), ports[0]!)
}, 30_000)
afterAll(async () => {
  upstream?.kill()
  await server?.stop()
})

interface Tally {
  asked: number
  readonly bad: string[]
}

/** Asks at a steady rate until told to stop; a third goes to the slow upstream. Returns a function that stops and waits for the last answers. */
function load(clients: readonly Client[], dot: Client, tally: Tally): () => Promise<void> {
  const open = new Set<Promise<void>>()
  let n = 0
  const ask = (): void => {
    n++
    const forwarded = n % 3 === 0
    const client = n % 50 === 0 && !forwarded ? dot : clients[n % clients.length]!
    const name = forwarded ? `n${n}.example.` : 'manual-trigger.ci-system.svc.cluster.local.'
    tally.asked++
    const one = client
      .ask(name, 'A', { ms: PATIENCE_MS })
      .then((reply) => {
        if (reply.rcode !== 0 || reply.answers.length !== 1) tally.bad.push(`${name} ${rcodeName(reply.rcode)}`)
      })
      .catch((error: Error) => void tally.bad.push(`${name} ${error.message}`))
      .finally(() => open.delete(one))
    open.add(one)
  }
  let due = performance.now()
  const timer = setInterval(() => {
    // Where the machine holds us up, what was not asked is not made up for: a burst would measure the burst.
    due = Math.max(due, performance.now() - 20)
    for (; due <= performance.now() && open.size < MOST_OPEN; due += 1000 / PER_SECOND) ask()
  }, 2)
  return async () => {
    clearInterval(timer)
    await Promise.all(open)
  }
}

test(`${RELOADS} reloads under ${PER_SECOND} queries a second lose nothing`, { timeout: 180_000 }, async () => {
  const clients = [...(await Promise.all([1, 2, 3, 4].map(() => udp(ports[0]!)))), await tcp(ports[0]!), await tcp(ports[0]!)]
  const dot = await tcp(ports[1]!, true)
  const tally: Tally = { asked: 0, bad: [] }
  const stop = load(clients, dot, tally)
  const count = (pattern: RegExp): number => server.output().match(pattern)?.length ?? 0
  for (let n = 1; n <= RELOADS; n++) {
    const outcomes = (): number => count(/Reloading complete/g) + count(/Restart failed|Corefile changed but reload failed/g)
    const before = outcomes()
    fs.writeFileSync(server.corefile, corefile(n))
    server.signal('SIGUSR1')
    await until(
      () => outcomes() > before,
      10_000,
      () => `reload ${n} had no outcome:\n${server.output()}`,
    )
  }
  await stop()
  const broken = Math.floor((RELOADS + 1) / 3)
  expect(tally.bad.slice(0, 10), `${tally.bad.length} of ${tally.asked} failed\n${server.output().slice(-2000)}`).toEqual([])
  expect(tally.asked).toBeGreaterThan(RELOADS)
  expect(count(/Reloading complete/g)).toBe(RELOADS - broken)
  expect([...clients, dot].map((client) => client.cut)).toEqual(clients.concat(dot).map(() => false))
  for (const client of [...clients, dot]) client.close()
})
