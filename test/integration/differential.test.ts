/**
 * CoreDNS beside us: the same Corefile, the same cluster, the same queries, and every reply compared, but for the differences that
 * docs/differences.md explains. Runs where COREDNS names a binary (1.14.7); QUERIES (3000) and SEED (1) may be set.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { Message, Name, RCODE, typeNumber } from '../../src/dns/index.js'
import { exchange } from '../../src/server/client.js'
import { startServer, type TestServer } from '../../src/server/testing.js'
import { FakeKubeApi, type KubeObject } from '../fakes/kube-api.js'
import { FakeUpstream, reply } from '../fakes/upstream.js'
import { compare, type Difference } from '../support/differences.js'
import { clusterNames, Questions } from '../support/questions.js'

const { COREDNS } = process.env
const QUERIES = Number(process.env.QUERIES ?? 3000)
const SEED = Number(process.env.SEED ?? 1)
const AT_ONCE = 8
const MANIFESTS = new URL('../../examples/cluster/', import.meta.url)

const objects = (): KubeObject[] =>
  readdirSync(MANIFESTS)
    .flatMap((file) => parseAllDocuments(readFileSync(new URL(file, MANIFESTS), 'utf8')).map((document): unknown => document.toJS()))
    .flatMap((object) => (object as { items?: KubeObject[] } | null)?.items ?? (object === null ? [] : [object as KubeObject]))

/** What a name below up.test is answered by the upstream. */
function upstreamAnswer(question: string): Parameters<typeof reply>[1] | number {
  const [name = '', type = ''] = question.split(' ')
  if (name.startsWith('fail.')) return RCODE.SERVFAIL
  if (name.startsWith('refused.')) return RCODE.REFUSED
  if (name.startsWith('nx.')) return RCODE.NXDOMAIN
  if (name.startsWith('alias.')) return [`${name} 300 IN CNAME target.up.test.`, 'target.up.test. 300 IN A 192.0.2.7']
  if (name.startsWith('many.') && type === 'A') return Array.from({ length: 60 }, (_, i) => `${name} 300 IN A 192.0.2.${i + 1}`)
  if (type === 'A') return [`${name} 300 IN A 192.0.2.5`, `${name} 300 IN A 192.0.2.6`]
  if (type === 'MX') return [`${name} 300 IN MX 10 mail.up.test.`]
  if (type === 'TXT') return [`${name} 300 IN TXT "one" "two words"`]
  return []
}

const corefile = (port: number, api: string, upstream: string): string => `
.:${port} {
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        endpoint ${api}
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    hosts {
        192.0.2.99 one.hosts.test two.hosts.test
        2001:db8::99 one.hosts.test
        fallthrough
    }
    forward . ${upstream}
    loadbalance
}
cached.test:${port} {
    errors
    cache 100
    forward . ${upstream}
}
who.test:${port} {
    whoami
    any
    chaos
}
`

interface Side {
  readonly port: number
}
let ours: TestServer
let theirs: (Side & { process: ChildProcess; output: string }) | undefined
const cleanUp: (() => unknown)[] = []

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function startCoreDNS(binary: string, text: (port: number) => string): Promise<NonNullable<typeof theirs>> {
  const folder = mkdtempSync(join(tmpdir(), 'coredns-'))
  cleanUp.push(() => rmSync(folder, { recursive: true }))
  const port = await freePort()
  writeFileSync(join(folder, 'Corefile'), text(port))
  const child = spawn(binary, ['-conf', 'Corefile'], { cwd: folder })
  const side = { port, process: child, output: '' }
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data: Buffer) => {
      side.output += data.toString()
    })
  }
  cleanUp.push(() => {
    if (child.exitCode !== null) return undefined
    const gone = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    return gone
  })
  return side
}

/** Until the cluster's own name is answered. */
async function synced(port: number): Promise<void> {
  const question = Message.query(Name.parse('dns-version.cluster.local.'), typeNumber('TXT')!, { id: 1, rd: true }).toBuffer()
  for (const end = performance.now() + 30_000; ; ) {
    const answer = await exchange(question, { host: '127.0.0.1', port, proto: 'udp', timeout: 1000 }).catch(() => undefined)
    if (answer?.rcode === RCODE.NOERROR) return
    if (performance.now() > end) throw new Error(`no cluster on port ${port} in time\n${theirs?.output}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

beforeAll(async () => {
  if (COREDNS === undefined) return
  const api = await new FakeKubeApi().start()
  cleanUp.push(() => api.stop())
  for (const object of objects()) api.put(object)
  const upstream = await FakeUpstream.start((asked) => {
    const answer = upstreamAnswer(asked.question.toLowerCase().replace(/ (\S+)$/, (type) => type.toUpperCase()))
    return typeof answer === 'number' ? reply(asked, [], { rcode: answer }) : reply(asked, answer)
  })
  cleanUp.push(() => upstream.stop())
  const text = (port: number): string => corefile(port, api.url, upstream.address)
  theirs = await startCoreDNS(COREDNS, text)
  ours = await startServer({ corefile: text(0) })
  cleanUp.push(() => ours.close())
  await Promise.all([synced(theirs.port), synced(ours.port)])
}, 60_000)

afterAll(async () => {
  for (const end of cleanUp.splice(0).reverse()) await end()
})

if (COREDNS === undefined) console.warn('SKIPPED: the comparison with CoreDNS; COREDNS names no binary to compare with')

it.skipIf(COREDNS === undefined)(
  'answers every query as CoreDNS does, but for the differences that are explained',
  async () => {
    const questions = new Questions(SEED, clusterNames(objects(), 'cluster.local.'))
    const found: Difference[] = []
    const explained = new Map<string, number>()
    const one = async (): Promise<void> => {
      const query = questions.next()
      const target = { host: '127.0.0.1', proto: query.proto, timeout: 6_000 }
      const [a, b] = await Promise.all(
        [theirs!.port, ours.port].map((port) => exchange(query.octets, { ...target, port }).catch((error: Error) => error)),
      )
      for (const difference of compare(query, a!, b!)) {
        if (difference.why === undefined) found.push(difference)
        else explained.set(difference.why, (explained.get(difference.why) ?? 0) + 1)
      }
    }
    let left = QUERIES
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        while (left-- > 0) await one()
      }),
    )
    console.info(`${QUERIES} queries, explained: ${[...explained].map(([why, n]) => `${n} × ${why}`).join('; ')}`)
    expect(found.slice(0, 20)).toEqual([])
  },
  600_000,
)
