/** A stub resolver for tests: many questions in flight over one UDP socket, or one TCP or TLS connection. Nothing is ever asked twice. */
import dgram from 'node:dgram'
import net from 'node:net'
import tls from 'node:tls'
import { Message, Name, typeNumber } from '../../src/dns/index.js'

export interface Ask {
  readonly size?: number
  readonly dnssecOk?: boolean
  readonly ms?: number
}

export interface Client {
  /** Resolves with the reply; rejects after `ms` (default 5,000) without one, or when the connection is cut. */
  ask(name: string, type?: string, options?: Ask): Promise<Message>
  /** Octets as they are, no reply expected. */
  raw(octets: Uint8Array): void
  close(): void
  /** Set when the other side ended the connection. */
  readonly cut: boolean
}

interface Waiting {
  readonly query: Message
  readonly resolve: (message: Message) => void
  readonly reject: (error: Error) => void
  readonly timer: NodeJS.Timeout
}

function client(
  send: (octets: Uint8Array) => void,
  close: () => void,
): { client: Client & { cut: boolean }; receive: (octets: Buffer) => void; fail: (error: Error) => void } {
  const waiting = new Map<number, Waiting>()
  let id = Math.floor(Math.random() * 65_536)
  const self = {
    cut: false,
    ask(name: string, type = 'A', options: Ask = {}): Promise<Message> {
      id = (id + 1) & 0xffff
      const mine = id
      const edns =
        options.size === undefined && options.dnssecOk === undefined
          ? undefined
          : { size: options.size ?? 1232, extendedRcode: 0, version: 0, dnssecOk: options.dnssecOk ?? false, z: 0, options: [] }
      const query = Message.query(Name.parse(name), typeNumber(type)!, { id: mine, edns })
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(mine)
          reject(new Error(`no answer to ${name} ${type}`))
        }, options.ms ?? 5000)
        waiting.set(mine, { query, resolve, reject, timer })
        send(query.toBuffer())
      })
    },
    raw: send,
    close,
  }
  return {
    client: self,
    receive(octets) {
      const message = Message.view(octets)
      const entry = waiting.get(message.id)
      if (entry === undefined || !answers(message, entry.query)) return
      waiting.delete(message.id)
      clearTimeout(entry.timer)
      entry.resolve(message)
    },
    fail(error) {
      self.cut = true
      for (const entry of waiting.values()) {
        clearTimeout(entry.timer)
        entry.reject(error)
      }
      waiting.clear()
    },
  }
}

/** Octets sent raw may have had the same id by chance: a reply to those has another question. */
function answers({ question: given }: Message, { question: asked }: Message): boolean {
  return given !== undefined && given.type === asked!.type && given.class === asked!.class && given.name.equals(asked!.name)
}

export async function udp(port: number, address = '127.0.0.1'): Promise<Client> {
  const socket = dgram.createSocket(net.isIPv6(address) ? 'udp6' : 'udp4')
  await new Promise<void>((resolve) => socket.bind(0, resolve))
  const made = client(
    (octets) => socket.send(octets, port, address),
    () => socket.close(),
  )
  socket.on('message', (octets) => {
    if (octets.length >= 12) made.receive(octets)
  })
  return made.client
}

export async function tcp(port: number, secure = false): Promise<Client> {
  const socket = await new Promise<net.Socket>((resolve, reject) => {
    const opened: net.Socket = secure
      ? tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => resolve(opened))
      : net.connect(port, '127.0.0.1', () => resolve(opened))
    opened.once('error', reject)
  })
  const made = client(
    (octets) => {
      const head = Buffer.alloc(2)
      head.writeUInt16BE(octets.length)
      socket.write(Buffer.concat([head, octets]))
    },
    () => socket.destroy(),
  )
  let pending = Buffer.alloc(0)
  socket.on('data', (chunk) => {
    pending = Buffer.concat([pending, chunk])
    while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
      const end = 2 + pending.readUInt16BE(0)
      made.receive(pending.subarray(2, end))
      pending = pending.subarray(end)
    }
  })
  socket.on('close', () => made.fail(new Error('the connection was cut')))
  socket.on('error', () => undefined)
  return made.client
}
