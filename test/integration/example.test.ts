/** What the README promises: the example Corefile with its cluster, name by name. Only ports and the upstream are changed. */
import fs from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { formatRecord, rcodeName } from '../../src/dns/index.js'
import { type Client, tcp, udp } from '../support/client.js'
import { freePorts, type Running, root, run } from '../support/process.js'

let server: Running
let client: Client
let stream: Client
let ports: readonly number[]

beforeAll(async () => {
  ports = await freePorts(5)
  const [dns, health, ready, metrics, upstream] = ports as [number, number, number, number, number]
  const text = fs
    .readFileSync(`${root}/examples/Corefile`, 'utf8')
    .replaceAll(':1053', `:${dns}`)
    .replace('health {', `health 127.0.0.1:${health} {`)
    .replace('lameduck 5s', 'lameduck 100ms')
    .replace(/^ {4}ready$/m, `    ready 127.0.0.1:${ready}`)
    .replace('prometheus :9153', `prometheus 127.0.0.1:${metrics}`)
    .replace('/etc/resolv.conf', `127.0.0.1:${upstream}`)
  server = await run(text, dns, { cwd: root })
  client = await udp(dns)
  stream = await tcp(dns)
}, 30_000)
afterAll(async () => {
  client?.close()
  stream?.close()
  await server?.stop()
})

const SOA = 'cluster.local.\t30\tIN\tSOA\tns.dns.cluster.local. hostmaster.cluster.local. SERIAL 7200 1800 86400 30'

interface Case {
  readonly ask: string
  readonly rcode?: string
  readonly answer?: readonly string[]
  readonly authority?: readonly string[]
  readonly additional?: readonly string[]
}
const CASES: readonly Case[] = [
  { ask: 'manual-trigger.ci-system.svc.cluster.local. A', answer: ['30 A 192.168.134.249'] },
  { ask: 'Manual-Trigger.CI-system.svc.Cluster.Local. A', answer: ['30 A 192.168.134.249'] },
  { ask: 'manual-trigger.ci-system.svc.cluster.local. AAAA', authority: [SOA] },
  { ask: 'db.shop.svc.cluster.local. A', answer: ['30 A 10.10.1.20', '30 A 10.10.2.21', '30 A 10.10.3.22'] },
  { ask: 'db-1.db.shop.svc.cluster.local. A', answer: ['30 A 10.10.2.21'] },
  { ask: 'web.shop.svc.cluster.local. AAAA', answer: ['30 AAAA fd00:168::7'] },
  {
    ask: '_http._tcp.web.shop.svc.cluster.local. SRV',
    // Two addresses share the weight, as in CoreDNS.
    answer: ['30 SRV 0 50 80 web.shop.svc.cluster.local.'],
    additional: ['web.shop.svc.cluster.local.\t30\tIN\tA\t192.168.140.7', 'web.shop.svc.cluster.local.\t30\tIN\tAAAA\tfd00:168::7'],
  },
  {
    ask: '_postgres._tcp.db.shop.svc.cluster.local. SRV',
    answer: [
      '30 SRV 0 33 5432 db-0.db.shop.svc.cluster.local.',
      '30 SRV 0 33 5432 db-1.db.shop.svc.cluster.local.',
      '30 SRV 0 33 5432 db-2.db.shop.svc.cluster.local.',
    ],
    additional: [
      'db-0.db.shop.svc.cluster.local.\t30\tIN\tA\t10.10.1.20',
      'db-1.db.shop.svc.cluster.local.\t30\tIN\tA\t10.10.2.21',
      'db-2.db.shop.svc.cluster.local.\t30\tIN\tA\t10.10.3.22',
    ],
  },
  { ask: '249.134.168.192.in-addr.arpa. PTR', answer: ['30 PTR manual-trigger.ci-system.svc.cluster.local.'] },
  { ask: '21.2.10.10.in-addr.arpa. PTR', answer: ['30 PTR db-1.db.shop.svc.cluster.local.'] },
  { ask: '10-10-3-17.ci-system.pod.cluster.local. A', answer: ['30 A 10.10.3.17'] },
  { ask: 'git.ci-system.svc.cluster.local. A', answer: ['30 CNAME github.corp.mycloud.io.', 'github.corp.mycloud.io. 30 A 10.20.0.10'] },
  { ask: 'nothing.shop.svc.cluster.local. A', rcode: 'NXDOMAIN', authority: [SOA] },
  { ask: 'shop.svc.cluster.local. A', authority: [SOA] },
  { ask: 'dns-version.cluster.local. TXT', answer: ['30 TXT "1.1.0"'] },
  { ask: 'cluster.local. SOA', answer: [SOA] },
  { ask: 'github.corp.mycloud.io. A', answer: ['300 A 10.20.0.10'] },
  {
    ask: 'github.corp.mycloud.io.ci-system.svc.001.mycloud.io. A',
    answer: ['30 CNAME github.corp.mycloud.io.', 'github.corp.mycloud.io. 300 A 10.20.0.10'],
  },
  {
    ask: 'github.corp.mycloud.io.ci-system.svc.cluster.local. A',
    answer: ['30 CNAME github.corp.mycloud.io.', 'github.corp.mycloud.io. 300 A 10.20.0.10'],
  },
  // `hosts` has no SOA to deny a name with: SERVFAIL, here as in CoreDNS.
  { ask: 'absent.corp.mycloud.io.ci-system.svc.cluster.local. A', rcode: 'SERVFAIL' },
]

const plain = (line: string): string => line.replace(/hostmaster\.cluster\.local\. \d+/, 'hostmaster.cluster.local. SERIAL')

describe.each(['udp', 'tcp'])('over %s', (transport) => {
  test.each(CASES)('$ask', async ({ ask, rcode = 'NOERROR', answer = [], authority = [], additional = [] }) => {
    const [name, type] = ask.split(' ') as [string, string]
    const reply = await (transport === 'udp' ? client : stream).ask(name, type, { size: 1232 })
    const expected = answer.map((line) => {
      if (line.includes('\t')) return line
      const words = line.split(' ')
      const owner = /^\d+$/.test(words[0]!) ? name : words.shift()!
      return [owner, words[0], 'IN', words[1], words.slice(2).join(' ')].join('\t')
    })
    expect(rcodeName(reply.rcode)).toBe(rcode)
    expect(reply.question!.name.toString()).toBe(name)
    expect(reply.answers.map(formatRecord).map(plain).sort()).toEqual([...expected].sort())
    expect(reply.authorities.map(formatRecord).map(plain)).toEqual(authority)
    expect(reply.additionals.map(formatRecord).sort()).toEqual([...additional].sort())
    expect(reply.edns?.size).toBe(1232)
    expect([reply.qr, reply.tc, reply.rd, reply.ad, reply.cd]).toEqual([true, false, true, false, false])
  })
})

test('health, ready and metrics answer', async () => {
  const get = async (port: number, path: string): Promise<string> => (await fetch(`http://127.0.0.1:${port}${path}`)).text()
  expect(await get(ports[1]!, '/health')).toBe('OK')
  expect(await get(ports[2]!, '/ready')).toBe('OK')
  expect(await get(ports[3]!, '/metrics')).toMatch(/^coredns_dns_requests_total\{.*type="A".*\} \d+$/m)
})

test('an absent upstream costs one answer: SERVFAIL, with a line in the log', async () => {
  expect(rcodeName((await client.ask('www.example.org.', 'A', { ms: 8000 })).rcode)).toBe('SERVFAIL')
  await server.saw(/\[ERROR\] plugin\/errors: 2 www\.example\.org\. A: /)
})
