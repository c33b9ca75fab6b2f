/** The whole server in its own process over either transport: every way in, every way on, reloads, the address that answers. */
import fs from 'node:fs'
import { request } from 'node:https'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { formatRecord, Message, Name, RCODE } from '../../src/dns/index.js'
import { CA, CERT, KEY } from '../fakes/certificate.js'
import { address, FakeUpstream } from '../fakes/upstream.js'
import { type Client, tcp, udp } from '../support/client.js'
import { freePorts, type Running, run, until } from '../support/process.js'

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairndns-transports-'))
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

const answersOf = async (client: Client, name: string, type = 'A'): Promise<string[]> => {
  const reply = await client.ask(name, type)
  return reply.answers.map(formatRecord).map((line) => line.split('\t').slice(3).join(' '))
}

function doh(port: number, name: string): Promise<Message> {
  const body = Message.query(Name.parse(name), 1).toBuffer()
  const headers = { 'content-type': 'application/dns-message', 'content-length': body.length }
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: '127.0.0.1', port, path: '/dns-query', method: 'POST', headers, rejectUnauthorized: false },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () => resolve(Message.view(Buffer.concat(chunks))))
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })
}

describe.each(['batch', 'dgram'])('over %s', (transport) => {
  let server: Running
  let upstream: FakeUpstream
  let secured: FakeUpstream
  let ports: number[]

  const corefile = (host: string): string => `.:${ports[0]} {
    errors
    reload 2s
    hosts {
        10.0.0.1 ${host}
        fallthrough
    }
    forward . 127.0.0.1:${upstream.port}
}
late.test:${ports[0]} {
    forward . tls://127.0.0.1:${secured.port} {
        tls ${folder}/ca.pem
        tls_servername dns.example
    }
}
tls://.:${ports[1]} https://.:${ports[2]} {
    tls ${folder}/cert.pem ${folder}/key.pem
    forward . 127.0.0.1:${upstream.port}
}
`

  beforeAll(async () => {
    ports = await freePorts(3)
    upstream = await FakeUpstream.start(address('192.0.2.7'))
    secured = await FakeUpstream.start(address('192.0.2.8'), { udp: false, tls: { cert: CERT, key: KEY } })
    fs.writeFileSync(path.join(folder, 'cert.pem'), CERT)
    fs.writeFileSync(path.join(folder, 'key.pem'), KEY)
    fs.writeFileSync(path.join(folder, 'ca.pem'), CA)
    server = await run(corefile('host.example'), ports[0]!, { args: ['-transport', transport], env: { CAIRNDNS_POISON: '1' } })
  }, 30_000)
  afterAll(async () => {
    expect(await server?.stop()).toBe(0)
    await Promise.all([upstream?.down(), secured?.down()])
  })

  test('it runs as told', () => {
    expect(server.output()).not.toContain('node:dgram')
  })

  test.each(['127.0.0.1', '127.0.0.2', '::1'])('answers at %s', async (host) => {
    const client = await udp(ports[0]!, host)
    expect(await answersOf(client, 'host.example.')).toEqual(['A 10.0.0.1'])
    client.close()
  })

  test('hundreds of queries at once wait for the upstream, each with its own octets', async () => {
    const client = await udp(ports[0]!)
    const asked = Array.from({ length: 150 }, (_, i) => `n${i}.with-a-rather-long-label-that-fills-its-slot.example.`)
    const replies = await Promise.all(asked.map((name) => client.ask(name, 'A', { size: 1232 })))
    expect(replies.map(({ question, answers }) => [String(question?.name), answers.length])).toEqual(asked.map((name) => [name, 1]))
    client.close()
  })

  test('queries of more octets than a slot are read whole', async () => {
    const client = await udp(ports[0]!)
    const options = Array.from({ length: 8 }, (_, i) => ({ code: 65_001 + i, data: Buffer.alloc(300, i) }))
    const edns = { size: 1232, extendedRcode: 0, version: 0, dnssecOk: false, z: 0, options }
    client.raw(Message.query(Name.parse('large.example.'), 1, { id: 4, edns }).toBuffer())
    await until(
      () => upstream.asked.some(({ question }) => question === 'large.example. A'),
      3000,
      () => 'not asked',
    )
    client.close()
  })

  test('streams: TCP, TLS and HTTPS, answered from hosts and from upstream', async () => {
    for (const [port, secure] of [
      [ports[0]!, false],
      [ports[1]!, true],
    ] as const) {
      const client = await tcp(port, secure)
      expect(await answersOf(client, 'far.example.')).toEqual(['A 192.0.2.7'])
      expect(await answersOf(client, 'again.example.')).toEqual(['A 192.0.2.7'])
      client.close()
    }
    expect((await doh(ports[2]!, 'web.example.')).answers.length).toBe(1)
  })

  test('asks on by TLS, which is all of Node', async () => {
    const client = await udp(ports[0]!)
    for (const name of ['a.late.test.', 'b.late.test.']) expect(await answersOf(client, name)).toEqual(['A 192.0.2.8'])
    client.close()
  })

  test('an upstream that is not there is heard of at once, and found again', async () => {
    const client = await udp(ports[0]!)
    await upstream.down()
    const before = performance.now()
    expect((await client.ask('dead.example.')).rcode).toBe(RCODE.SERVFAIL)
    expect(performance.now() - before).toBeLessThan(4000)
    await upstream.up()
    await until(
      async () => (await client.ask('alive.example.')).rcode === RCODE.NOERROR,
      5000,
      () => server.output(),
    )
    client.close()
  })

  test('a reload changes over without losing a query', async () => {
    const client = await udp(ports[0]!)
    fs.writeFileSync(server.corefile, corefile('other.example'))
    server.signal('SIGUSR1')
    await until(
      async () => (await answersOf(client, 'other.example.'))[0] === 'A 10.0.0.1',
      5000,
      () => server.output(),
    )
    client.close()
  })
})

test('nothing else than the three is a transport', async () => {
  await expect(run('.:0 {\n}\n', 1, { args: ['-transport', 'pigeon'] })).rejects.toThrow('expected auto, batch, dgram')
})
