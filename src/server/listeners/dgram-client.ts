/** Connected UDP sockets by node:dgram, for plugins that ask other servers. Connecting takes a turn there: what is sent before it is kept. */
import { createSocket, type Socket } from 'node:dgram'
import type { ConnectDatagram, DatagramOptions, DatagramSocket } from '../../plugins/datagrams.js'
import { familyOf, joinHostPort } from './addresses.js'

class DgramClient implements DatagramSocket {
  readonly #options: DatagramOptions
  #socket: Socket | undefined
  /** What came before the socket was connected; undefined from then on. */
  #kept: Buffer[] | undefined = []
  #closed = false
  /** Some failures come while it is being made; who made it shall know it before it hears of them. */
  #opening = true

  constructor(options: DatagramOptions) {
    this.#options = options
    try {
      this.#open()
    } catch (error) {
      this.#failed(error as NodeJS.ErrnoException)
    }
    this.#opening = false
  }

  #open(): void {
    const { host, port, source, onMessage } = this.#options
    const family = familyOf(host)
    // The address is one already: without this, dgram asks the resolver's thread pool about it.
    const lookup = (name: string, _: unknown, done: (error: null, address: string, family: number) => void): void =>
      done(null, name, family)
    const socket = createSocket({ type: family === 6 ? 'udp6' : 'udp4', lookup })
    this.#socket = socket
    socket.unref()
    socket.on('error', (error) => this.#failed(error))
    socket.on('message', (data) => {
      if (!this.#closed) onMessage(data, data.length)
    })
    const connected = (error?: Error): void => (error === undefined ? this.#flush() : this.#failed(error))
    const connect = (): void => {
      if (!this.#closed) socket.connect(port, host, connected)
    }
    if (source === undefined) connect()
    else socket.bind({ address: source, port: 0 }, connect)
  }

  get local(): string {
    if (this.#closed || this.#kept !== undefined || this.#socket === undefined) return ''
    const { address, port } = this.#socket.address()
    return joinHostPort(address, port)
  }

  room(): undefined {
    return undefined
  }

  send(data: Buffer, offset: number, length: number): void {
    if (this.#closed) return
    // A datagram may wait in libuv's queue, so it needs octets of its own.
    const octets = Buffer.from(data.subarray(offset, offset + length))
    if (this.#kept === undefined) this.#write(octets)
    else this.#kept.push(octets)
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#kept = undefined
    this.#socket?.close()
  }

  #flush(): void {
    const kept = this.#kept ?? []
    this.#kept = undefined
    for (const octets of kept) this.#write(octets)
  }

  /** The kernel tells of an earlier datagram that was refused when the next one is sent, and Node tells that to nobody but a callback. */
  #write(octets: Buffer): void {
    if (!this.#closed) this.#socket?.send(octets, this.#sent)
  }

  readonly #sent = (error: Error | null): void => {
    if (error !== null) this.#failed(error)
  }

  #failed(error: NodeJS.ErrnoException): void {
    if (this.#opening) setImmediate(() => this.#failed(error))
    else if (!this.#closed) this.#options.onError(error, this.#kept === undefined)
  }
}

export const connectDgram: ConnectDatagram = (options) => new DgramClient(options)
