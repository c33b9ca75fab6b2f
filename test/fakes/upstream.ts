/**
 * A fake upstream: a real DNS server on loopback, UDP and TCP (or TLS) on one port, that answers what a test tells it to. It can lie,
 * truncate, be late, send garbage, close connections, vanish and come back on the same port; it remembers all that it was asked.
 */
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer as createTcpServer, isIPv6, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, TLSSocket } from 'node:tls'
import { type Change, Message, parseRecord, RCODE, type RR, typeName } from '../../src/dns/index.js'

export interface Asked {
  readonly message: Message
  /** "www.example.org. A" */
  readonly question: string
  readonly proto: 'udp' | 'tcp' | 'tls'
  readonly address: string
  readonly port: number
  /** Which TCP or TLS connection it came by, counted from 1; 0 for UDP. */
  readonly connection: number
  /** performance.now() at its arrival. */
  readonly at: number
}

/** One thing done for a query, `after` milliseconds (0) from its arrival. */
export interface Step {
  readonly after?: number
  /** A message, sent under the id it carries, or raw octets. */
  readonly send?: Message | Buffer
  /** UDP: sent from another port than the one that was asked. */
  readonly elsewhere?: boolean
  /** TCP and TLS: closes the connection. */
  readonly close?: boolean
}

/** Nothing at all is []. */
export type Answer = (asked: Asked) => Said | Promise<Said>
export type Said = Message | Buffer | readonly Step[]

export interface UpstreamOptions {
  readonly host?: string
  /** PEM: the stream side speaks TLS. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca?: string; readonly requestCert?: boolean }
  readonly udp?: boolean
  readonly tcp?: boolean
}

/** A reply with these records (lines of a zone file): `reply(asked, ['www.example.org. 60 IN A 192.0.2.1'])`. */
export function reply(asked: Asked, answers: readonly string[] = [], change: Change = {}): Message {
  const records = answers.map((line): RR => parseRecord(line))
  const edns = asked.message.edns === undefined ? undefined : { ...asked.message.edns, size: 1232, options: [] }
  return Message.reply(asked.message).with({ ra: true, answers: records, edns, ...change })
}

/** Answers every A question with one address and all else with an empty NOERROR. */
export const address =
  (ip: string): Answer =>
  (asked) =>
    reply(asked, asked.question.endsWith(' A') ? [`${asked.question.split(' ')[0]} 60 IN A ${ip}`] : [])

export const silent: Answer = () => []

export const refuse: Answer = (asked) => reply(asked, [], { rcode: RCODE.REFUSED })

export class FakeUpstream {
  /** Changed at will. */
  answer: Answer
  asked: Asked[] = []
  /** TCP or TLS connections accepted so far. */
  connections = 0
  /** TLS connections that resumed a session. */
  resumed = 0
  port = 0
  readonly host: string
  readonly #options: UpstreamOptions
  #udp: UdpSocket | undefined
  #other: UdpSocket | undefined
  #server: Server | undefined
  readonly #sockets = new Set<Socket>()
  readonly #timers = new Set<NodeJS.Timeout>()
  readonly #waiting = new Set<() => void>()

  private constructor(answer: Answer, options: UpstreamOptions) {
    this.answer = answer
    this.#options = options
    this.host = options.host ?? '127.0.0.1'
  }

  static async start(answer: Answer = address('192.0.2.1'), options: UpstreamOptions = {}): Promise<FakeUpstream> {
    const upstream = new FakeUpstream(answer, options)
    await upstream.up()
    return upstream
  }

  /** "127.0.0.1:5353" or "[::1]:5353". */
  get address(): string {
    return isIPv6(this.host) ? `[${this.host}]:${this.port}` : `${this.host}:${this.port}`
  }

  /** How often it was asked, by UDP or whatever `proto` says, for a question that begins with `question`. */
  count(question = '', proto?: Asked['proto']): number {
    return this.asked.filter((asked) => asked.question.startsWith(question) && (proto === undefined || asked.proto === proto)).length
  }

  /** Resolves once `condition` holds; looked at after each arrival, connection and close. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#waiting.delete(wake)
          resolve()
        }
        this.#waiting.add(wake)
      })
    }
  }

  /** Listens (again), on the port it had before if it had one. */
  async up(): Promise<void> {
    if (this.#server !== undefined) return
    for (let tries = 0; ; tries++) {
      try {
        await this.#listen()
        return
      } catch (error) {
        await this.down()
        if (this.port !== 0 || tries > 20) throw error
      }
    }
  }

  /** Closes everything: UDP queries get ICMP errors, connections are reset. */
  async down(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
    for (const socket of this.#sockets) {
      if (socket instanceof TLSSocket) socket.destroy()
      else socket.resetAndDestroy()
    }
    this.#sockets.clear()
    const udp = [this.#udp, this.#other].filter((socket) => socket !== undefined)
    const server = this.#server
    this.#udp = this.#other = this.#server = undefined
    for (const socket of udp) {
      socket.close()
      await once(socket, 'close')
    }
    if (server?.listening === true) await new Promise((resolve) => server.close(resolve))
  }

  async stop(): Promise<void> {
    await this.down()
  }

  /** Closes the connections that are open now; the port stays open. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async #listen(): Promise<void> {
    const { tls, tcp = true, udp = true } = this.#options
    const port = this.port
    const server = tls === undefined ? createTcpServer((socket) => this.#accept(socket, 'tcp')) : createTlsServer({ ...tls })
    server.on('secureConnection', (socket: TLSSocket) => {
      if (socket.isSessionReused()) this.resumed++
      this.#accept(socket, 'tls')
    })
    server.on('tlsClientError', () => this.#wake())
    this.#server = server
    server.listen(port, this.host)
    await once(server, 'listening')
    const bound = server.address()
    const actual = bound !== null && typeof bound === 'object' ? bound.port : 0
    if (udp) this.#udp = await this.#bind(actual)
    this.#other = await this.#bind(0)
    if (!tcp) await new Promise((resolve) => server.close(resolve))
    this.port = actual
  }

  async #bind(port: number): Promise<UdpSocket> {
    const socket = createSocket(isIPv6(this.host) ? 'udp6' : 'udp4')
    socket.on('error', () => undefined)
    socket.on('message', (data, peer) => {
      if (socket !== this.#udp) return
      this.#take(data, { proto: 'udp', address: peer.address, port: peer.port, connection: 0 }, (bytes, step) =>
        (step.elsewhere === true ? this.#other : socket)?.send(bytes, peer.port, peer.address),
      )
    })
    socket.bind(port, this.host)
    await Promise.race([once(socket, 'listening'), once(socket, 'error').then(([error]) => Promise.reject(error))])
    return socket
  }

  #accept(socket: Socket, proto: 'tcp' | 'tls'): void {
    const connection = ++this.connections
    this.#sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.#sockets.delete(socket)
      this.#wake()
    })
    const from = { proto, address: socket.remoteAddress ?? '', port: socket.remotePort ?? 0, connection }
    let rest = Buffer.alloc(0)
    socket.on('data', (data) => {
      rest = Buffer.concat([rest, data])
      while (rest.length >= 2 && rest.length >= 2 + rest.readUInt16BE(0)) {
        const size = rest.readUInt16BE(0)
        const frame = rest.subarray(2, 2 + size)
        rest = rest.subarray(2 + size)
        this.#take(frame, from, (bytes, step) => {
          if (bytes.length > 0 && socket.writable)
            socket.write(Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]))
          if (step.close === true) socket.end()
        })
      }
    })
    this.#wake()
  }

  #take(data: Buffer, from: Pick<Asked, 'proto' | 'address' | 'port' | 'connection'>, send: (bytes: Buffer, step: Step) => void): void {
    const message = Message.view(Buffer.from(data))
    const question = message.question
    const asked: Asked = {
      message,
      question: question === undefined ? '' : `${question.name} ${typeName(question.type)}`,
      ...from,
      at: performance.now(),
    }
    this.asked.push(asked)
    const answer = this.answer(asked)
    if (answer instanceof Promise) void answer.then((said) => this.#say(said, send))
    else this.#say(answer, send)
    this.#wake()
  }

  #say(answer: Said, send: (bytes: Buffer, step: Step) => void): void {
    const steps: readonly Step[] = Array.isArray(answer) ? answer : [{ send: answer as Message | Buffer }]
    for (const step of steps) {
      const bytes = step.send === undefined ? Buffer.alloc(0) : Buffer.isBuffer(step.send) ? step.send : step.send.toBuffer()
      if (step.after === undefined || step.after === 0) send(bytes, step)
      else this.#later(step.after, () => send(bytes, step))
    }
  }

  #later(ms: number, fn: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      fn()
    }, ms)
    this.#timers.add(timer)
  }

  #wake(): void {
    for (const wake of this.#waiting) wake()
  }
}
