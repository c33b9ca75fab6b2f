import { request as plainRequest } from 'node:http'
import { type ClientHttp2Session, connect as http2Connect } from 'node:http2'
import { request as httpsRequest } from 'node:https'
import { connect as plainConnect } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { CA, CERT, KEY } from '../../../test/fakes/certificate.js'
import { answering, module, portOf, ServingHarness } from '../../../test/support/serving.js'
import { ask, TcpClient } from '../../../test/support/wire.js'
import { Message, parseRecord } from '../../dns/index.js'

const echo = answering('echo', (query) => query.reply('echo', 0, { answers: [parseRecord(`${query.name} 42 IN TXT "${query.proto}"`)] }))
const tls = module('tls', (uses, ctx) => {
  const clientAuth = (uses[0]!.args[0]?.text ?? 'nocert') as 'nocert'
  ctx.block.tls = { cert: CERT, key: KEY, ca: CA, clientAuth }
  return null
})
const few = module('few', (_uses, ctx) => {
  ctx.block.httpsMaxConnections = 1
  return null
})
const short = module('short', (_uses, ctx) => {
  ctx.block.timeouts.read = 1000
  return null
})
let server: ServingHarness

beforeEach(() => {
  server = new ServingHarness({ tls, few, short, echo })
})
afterEach(() => server.stop())

async function dot(port: number, options: object = {}): Promise<TcpClient> {
  const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ca: CA, ...options })
  await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject))
  return new TcpClient(socket)
}

interface Answer {
  readonly status: number
  readonly headers: Record<string, unknown>
  readonly body: Buffer
}

function http(options: object, body?: Buffer, secure = true): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const make = secure ? httpsRequest : plainRequest
    const request = make({ host: '127.0.0.1', servername: 'localhost', ca: CA, agent: false, ...options }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) }))
    })
    request.on('error', reject)
    request.end(body)
  })
}

function http2(session: ClientHttp2Session, headers: Record<string, string>, body?: Buffer): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stream = session.request(headers)
    const chunks: Buffer[] = []
    let answer: Record<string, unknown> = {}
    stream.on('response', (found) => {
      answer = found
    })
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('end', () => resolve({ status: Number(answer[':status']), headers: answer, body: Buffer.concat(chunks) }))
    stream.on('error', reject)
    stream.end(body)
  })
}

const query = ask('a.')
const get = `/dns-query?dns=${query.toString('base64url')}`
const proto = (reply: Buffer): string => {
  const data = Message.view(reply).answers[0]?.data
  return data?.kind === 'TXT' ? String(data.strings[0]) : 'none'
}

describe('DNS over TLS', () => {
  test('answers pipelined queries, and a connection outlives a reload with other certificates', async () => {
    const port = await server.load('tls://.:0 {\n tls\n echo\n}')
    const client = await dot(port)
    client.send(query, ask('b.'))
    expect((await client.until(2)).map(proto)).toEqual(['tls', 'tls'])
    await server.load('tls://.:0 {\n tls request\n echo\n}')
    client.send(ask('c.'))
    expect((await client.until(3)).length).toBe(3)
    client.socket.destroy()
  })

  test('wants a certificate where the block says so', async () => {
    const port = await server.load('tls://.:0 {\n tls require_and_verify\n echo\n}')
    const without = await dot(port).catch(() => undefined)
    without?.send(query)
    await without?.ended()
    expect(without?.replies ?? []).toEqual([])
    const client = await dot(port, { cert: CERT, key: KEY })
    client.send(query)
    expect((await client.until(1)).length).toBe(1)
    client.socket.destroy()
  })
})

describe('DNS over HTTPS', () => {
  test('takes GET and POST over HTTP/1.1', async () => {
    const port = await server.load('https://.:0 {\n tls\n echo\n}')
    for (const answer of [await http({ port, path: get }), await http({ port, path: '/dns-query', method: 'POST' }, query)]) {
      expect(answer.status).toBe(200)
      expect(answer.headers).toMatchObject({ 'content-type': 'application/dns-message', 'cache-control': 'max-age=42' })
      expect(Message.view(answer.body).id).toBe(4711)
      expect(proto(answer.body)).toBe('https')
    }
    expect(server.metrics.values.get('coredns_dns_https_responses_total{server="https://:0",status="200"}')).toBe(2)
  })

  test('takes both over HTTP/2, many at once', async () => {
    const port = await server.load('https://.:0 {\n tls\n echo\n}')
    const session = http2Connect(`https://127.0.0.1:${port}`, { ca: CA, servername: 'localhost' })
    const answers = await Promise.all([
      ...Array.from({ length: 20 }, () => http2(session, { ':path': get })),
      http2(session, { ':path': '/dns-query', ':method': 'POST' }, query),
    ])
    for (const { status, body } of answers) expect([status, proto(body)]).toEqual([200, 'https'])
    session.destroy()
  })

  test('is plain HTTP where there is no tls', async () => {
    const port = await server.load('https://.:0 {\n echo\n}')
    expect(proto((await http({ port, path: get }, undefined, false)).body)).toBe('https')
  })

  test.each([
    ['another path', { path: '/' }, undefined, 404, '\n'],
    ['another method', { path: '/dns-query', method: 'PUT' }, query, 400, 'invalid request\n'],
    ['no message', { path: '/dns-query' }, undefined, 400, 'invalid request\n'],
    ['two messages', { path: `${get}&dns=AAAA` }, undefined, 400, 'invalid request\n'],
    ['padding', { path: `${get}==` }, undefined, 400, 'invalid request\n'],
    ['a reply', { path: '/dns-query', method: 'POST' }, Message.reply(Message.view(query)).toBuffer(), 400, 'invalid request\n'],
    ['garbage', { path: '/dns-query', method: 'POST' }, Buffer.from('hello there, this is no message'), 400, 'invalid request\n'],
    ['too much', { path: '/dns-query', method: 'POST' }, Buffer.alloc(70_000), 400, 'invalid request\n'],
  ])('%s is refused', async (_, options, body, status, text) => {
    const port = await server.load('https://.:0 {\n tls\n echo\n}')
    const answer = await http({ port, ...options }, body)
    expect([answer.status, answer.body.toString(), answer.headers['x-content-type-options']]).toEqual([status, text, 'nosniff'])
  })

  test('lets a connection wait until one of the allowed ones ends', async () => {
    const port = await server.load('https://.:0 {\n tls\n few\n echo\n}')
    const first = connect({ port, host: '127.0.0.1', servername: 'localhost', ca: CA })
    await new Promise((resolve) => first.once('secureConnect', resolve))
    let answered = false
    const second = http({ port, path: get }).then((answer) => {
      answered = true
      return answer
    })
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(answered).toBe(false)
    first.destroy()
    expect((await second).status).toBe(200)
  })
})

test.each(['tls', 'https'])('a session from before %s asked for certificates is not taken up again', async (transport) => {
  const port = await server.load(`${transport}://.:0 {\n tls\n echo\n}`)
  const shake = async (session?: Buffer): Promise<TLSSocket> => {
    const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ca: CA, ...(session === undefined ? {} : { session }) })
    await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject))
    return socket
  }
  const first = await shake()
  const session = await new Promise<Buffer>((resolve) => first.once('session', resolve).resume())
  const second = await shake(session)
  await server.load(`${transport}://.:0 {\n tls require_and_verify\n echo\n}`)
  const third = await shake(session)
  expect([second.isSessionReused(), third.isSessionReused()]).toEqual([true, false])
  for (const socket of [first, second, third]) socket.destroy()
})

test('one block serves several transports', async () => {
  const lines = await server.prepare('.:0 tls://.:0 https://.:0 {\n tls\n echo\n}')
  expect(lines.map((line) => line.replace(/\d+$/, 'N'))).toEqual(['.:N', 'tls://.:N', 'https://.:N'])
  const client = await dot(portOf(lines[1]!))
  client.send(query)
  expect((await client.until(1)).map(proto)).toEqual(['tls'])
  client.socket.destroy()
  await server.abort()
})

test('a DoT connection that never shakes hands is cut, also one that the client has given up', { timeout: 15_000 }, async () => {
  const port = await server.load('tls://.:0 {\n tls\n short\n echo\n}')
  const ended = (half: boolean): Promise<void> =>
    new Promise((resolve) => {
      const socket = plainConnect({ port, host: '127.0.0.1', allowHalfOpen: true })
      socket.resume()
      socket.once('close', () => resolve())
      socket.once('end', () => socket.end())
      socket.on('error', () => undefined)
      if (half) socket.end()
    })
  await Promise.all([ended(false), ended(true)])
})
