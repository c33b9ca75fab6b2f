/** UDP by node:dgram: one socket per address, so that the source of a reply is the address that was asked. */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import type { Peer } from '../../plugins/contract.js'
import { familyOf, plainAddress } from './addresses.js'
import type { DatagramPort, OpenDatagramPort, Origin, PacketHandler } from './ports.js'
import type { Sharing, Taken } from './sharing.js'

/** Asked of the kernel, which gives what net.core.rmem_max allows. */
const RECEIVE_BUFFER = 1 << 20

/** Addresses are numeric already; the default look-up would cost a tick per datagram. */
const lookup = (address: string, ...rest: unknown[]): void => {
  const done = rest[rest.length - 1] as (error: null, address: string, family: number) => void
  done(null, address, familyOf(address))
}

class DgramPort implements DatagramPort {
  readonly address: string
  readonly port: number
  handler: PacketHandler
  readonly #socket: Socket
  readonly #plain: string
  readonly #share: (on: boolean) => Promise<void>
  #closed = false

  constructor(socket: Socket, address: string, port: number, handler: PacketHandler, share: (on: boolean) => Promise<void>) {
    this.#socket = socket
    this.address = address
    this.port = port
    this.handler = handler
    this.#plain = plainAddress(address)
    this.#share = share
    socket.on('message', (data, remote) => {
      // Nobody can be answered at port 0, and trying throws.
      if (remote.port !== 0) this.handler(data, data.length, new DgramOrigin(this, remote, this.#plain))
    })
  }

  send(data: Buffer, offset: number, length: number, remote: RemoteInfo): void {
    // A datagram may wait in libuv's queue, so it needs octets of its own. No callback: a lost reply is the client's time-out either way.
    if (!this.#closed) this.#socket.send(Buffer.from(data.subarray(offset, offset + length)), remote.port, remote.address)
  }

  share(on: boolean): Promise<void> {
    return this.#share(on)
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#socket.close()
  }
}

/** The peer and the way back to it, in one object: one allocation per datagram. */
class DgramOrigin implements Origin, Peer {
  readonly proto = 'udp'
  readonly address: string
  readonly port: number
  readonly family: 4 | 6
  readonly localAddress: string
  readonly localPort: number
  readonly #port: DgramPort
  readonly #remote: RemoteInfo

  constructor(port: DgramPort, remote: RemoteInfo, localAddress: string) {
    this.#port = port
    this.#remote = remote
    this.family = remote.family === 'IPv6' ? 6 : 4
    this.address = this.family === 6 ? plainAddress(remote.address) : remote.address
    this.port = remote.port
    this.localAddress = localAddress
    this.localPort = port.port
  }

  get peer(): Peer {
    return this
  }
  retain(): void {}
  room(): undefined {
    return undefined
  }
  send(data: Buffer, offset: number, length: number): boolean {
    this.#port.send(data, offset, length, this.#remote)
    return true
  }
  end(): void {}
  drained(): undefined {
    return undefined
  }
}

export const dgramPorts =
  (sharing: Sharing): OpenDatagramPort =>
  async (address, port, claim, handler, onError) =>
    open(await sharing.bind('udp', address, port, claim), address, port, handler, onError, sharing)

function open(
  taken: Taken,
  address: string,
  port: number,
  handler: PacketHandler,
  onError: (error: Error) => void,
  sharing: Sharing,
): Promise<DatagramPort> {
  const options = { lookup, ...('reusePort' in taken && taken.reusePort ? { reusePort: true } : {}) }
  const socket = createSocket(familyOf(address) === 6 ? { type: 'udp6', ipv6Only: true, ...options } : { type: 'udp4', ...options })
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void => {
      socket.close()
      reject(error)
    }
    socket.once('error', fail)
    socket.bind('fd' in taken ? { fd: taken.fd } : { address, port, exclusive: true }, () => {
      socket.off('error', fail)
      socket.on('error', onError)
      try {
        socket.setRecvBufferSize(RECEIVE_BUFFER)
      } catch (error) {
        onError(error as Error)
      }
      resolve(new DgramPort(socket, address, socket.address().port, handler, (on) => sharing.set(taken, socket, on)))
    })
  })
}
