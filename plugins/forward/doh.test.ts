import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { Message, parseRecord } from '../../src/dns/index.js'
import { query } from '../../src/plugins/testing.js'
import { CA, CERT, KEY } from '../../test/fakes/certificate.js'
import { type Started, start } from '../../test/support/forward.js'

const ca = join(mkdtempSync(join(tmpdir(), 'forward-')), 'ca.pem')
writeFileSync(ca, CA)

interface Request {
  readonly method: string
  readonly path: string
  readonly id: number
}

/** A DoH server that can answer with any status and end its sessions. */
class DohServer {
  readonly requests: Request[] = []
  sessions = 0
  status = 200
  readonly #open = new Set<ServerHttp2Session>()
  readonly #server: Http2SecureServer = createSecureServer({ cert: CERT, key: KEY })
  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }
  async listen(): Promise<void> {
    this.#server.on('session', (session) => {
      this.sessions++
      this.#open.add(session)
      session.on('close', () => this.#open.delete(session))
    })
    this.#server.on('stream', (stream, headers) => {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const path = String(headers[':path'])
        const body = headers[':method'] === 'GET' ? Buffer.from(path.split('dns=')[1]!, 'base64url') : Buffer.concat(chunks)
        const asked = Message.view(body)
        this.requests.push({ method: String(headers[':method']), path: path.split('?')[0]!, id: asked.id })
        stream.respond({ ':status': this.status, 'content-type': 'application/dns-message' })
        stream.end(
          Message.reply(asked)
            .with({ answers: [parseRecord(`${asked.question!.name} 60 IN A 192.0.2.1`)] })
            .toBuffer(),
        )
      })
    })
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }
  goAway(): void {
    for (const session of this.#open) session.close()
  }
  async stop(): Promise<void> {
    for (const session of this.#open) session.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

const open: { stop(): unknown }[] = []
afterEach(async () => {
  for (const thing of open.splice(0).reverse()) await thing.stop()
})
async function doh(options = ''): Promise<{ server: DohServer; started: Started }> {
  const server = new DohServer()
  await server.listen()
  open.push(server)
  const started = await start(`forward . https://127.0.0.1:${server.port} {\n tls ${ca}\n tls_servername dns.example\n ${options}\n}`)
  open.push(started)
  return { server, started }
}
const www = () => query('www.example.org.', 'A', { id: 4711 })

describe('an HTTPS upstream', () => {
  it('is asked by POST with id 0, many questions over one session', async () => {
    const { server, started } = await doh()
    const answers = await Promise.all(Array.from({ length: 10 }, () => started.ask(www())))
    expect(answers.map((answer) => [answer.id, answer.count(1)])).toEqual(Array(10).fill([4711, 1]))
    expect(server.requests[0]).toEqual({ method: 'POST', path: '/dns-query', id: 0 })
    expect(server.sessions).toBe(1)
  })

  it('is asked by GET with doh_method GET', async () => {
    const { server, started } = await doh('doh_method GET')
    expect((await started.ask(www())).count(1)).toBe(1)
    expect(server.requests[0]).toEqual({ method: 'GET', path: '/dns-query', id: 0 })
  })

  it('that ends its session is asked over a new one', async () => {
    const { server, started } = await doh()
    await started.ask(www())
    server.goAway()
    expect((await started.ask(www())).count(1)).toBe(1)
    expect((await started.ask(www())).count(1)).toBe(1)
    expect(server.sessions).toBe(2)
  })

  it('that answers with another status has failed', async () => {
    const { server, started } = await doh('max_fails 0')
    server.status = 503
    await expect(started.ask(www())).rejects.toThrow('unexpected HTTP status 503')
  })

  it('with a certificate of another name is not asked', async () => {
    const { server } = await doh()
    const other = await start(`forward . https://127.0.0.1:${server.port} {\n tls ${ca}\n tls_servername other.example\n max_fails 0\n}`)
    open.push(other)
    await expect(other.ask(www())).rejects.toThrow(/other\.example/)
    expect(server.requests).toEqual([])
  })
})
