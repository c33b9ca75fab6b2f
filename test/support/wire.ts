/** A DNS client for tests: whole octets in and out, over UDP and TCP, with time-outs. */
import { createSocket } from 'node:dgram'
import { connect, type Socket } from 'node:net'
import { type Change, Message, Name, typeNumber } from '../../src/dns/index.js'

export const ask = (name: string, type = 'A', change: Change = {}, cls = 1): Buffer =>
  Message.query(Name.parse(name), typeNumber(type)!, { id: 4711, ...change }, cls).toBuffer()

export const opt = (size = 1232, over: Partial<NonNullable<Change['edns']>> = {}): NonNullable<Change['edns']> => ({
  size,
  extendedRcode: 0,
  version: 0,
  dnssecOk: false,
  z: 0,
  options: [],
  ...over,
})

/** One datagram there and one back; undefined: none came. The socket is connected, so a reply from another address does not count. */
export function udp(port: number, query: Buffer, host = '127.0.0.1', ms = 1000): Promise<Buffer | undefined> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
  return new Promise((resolve) => {
    const done = (reply: Buffer | undefined): void => {
      clearTimeout(timer)
      socket.close()
      resolve(reply)
    }
    const timer = setTimeout(() => done(undefined), ms)
    socket.on('error', () => done(undefined))
    socket.on('message', done)
    socket.connect(port, host, () => socket.send(query))
  })
}

/** A TCP (or TLS) connection that is written to by hand. */
export class TcpClient {
  readonly socket: Socket
  readonly replies: Buffer[] = []
  closed = false
  #rest = Buffer.alloc(0)
  #wake: (() => void)[] = []

  constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', (chunk: Buffer) => {
      this.#rest = Buffer.concat([this.#rest, chunk])
      while (this.#rest.length >= 2 && this.#rest.length >= 2 + this.#rest.readUInt16BE(0)) {
        const end = 2 + this.#rest.readUInt16BE(0)
        this.replies.push(this.#rest.subarray(2, end))
        this.#rest = this.#rest.subarray(end)
      }
      this.#signal()
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.closed = true
      this.#signal()
    })
    socket.on('end', () => {
      this.closed = true
      this.#signal()
    })
  }

  static async open(port: number, host = '127.0.0.1'): Promise<TcpClient> {
    const socket = connect({ port, host, allowHalfOpen: true })
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
    return new TcpClient(socket)
  }

  send(...queries: Buffer[]): void {
    this.socket.write(Buffer.concat(queries.map(frame)))
  }

  /** Until so many replies are there; rejects when the connection ends or time is up. */
  async until(count: number, ms = 2000): Promise<Buffer[]> {
    const end = Date.now() + ms
    while (this.replies.length < count) {
      if (this.closed) throw new Error(`closed after ${this.replies.length} replies`)
      if (Date.now() > end) throw new Error(`${this.replies.length} of ${count} replies`)
      await this.#change(end - Date.now())
    }
    return this.replies
  }

  async ended(ms = 2000): Promise<void> {
    const end = Date.now() + ms
    while (!this.closed) {
      if (Date.now() > end) throw new Error('still open')
      await this.#change(end - Date.now())
    }
  }

  #signal(): void {
    for (const wake of this.#wake.splice(0)) wake()
  }

  #change(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.max(1, ms))
      this.#wake.push(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  }
}

export function frame(message: Buffer): Buffer {
  const out = Buffer.alloc(2 + message.length)
  out.writeUInt16BE(message.length)
  message.copy(out, 2)
  return out
}

export async function tcp(port: number, query: Buffer, host = '127.0.0.1'): Promise<Buffer | undefined> {
  const client = await TcpClient.open(port, host)
  try {
    client.send(query)
    return (await client.until(1))[0]
  } finally {
    client.socket.destroy()
  }
}
