import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import { transport } from '../../../test/support/transport.js'
import type { DatagramOptions, DatagramSocket } from '../../plugins/datagrams.js'

const open: { close(): unknown }[] = []
afterEach(() => {
  for (const thing of open.splice(0)) thing.close()
})

/** A peer that answers everything with what it got, turned round. */
async function echo(address = '127.0.0.1'): Promise<{ port: number; from: string[]; socket: Socket }> {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4')
  open.push(socket)
  const from: string[] = []
  socket.on('message', (data, remote) => {
    from.push(remote.family === 'IPv6' ? `[${remote.address}]:${remote.port}` : `${remote.address}:${remote.port}`)
    socket.send(Buffer.from(data).reverse(), remote.port, remote.address)
  })
  socket.bind(0, address)
  await once(socket, 'listening')
  return { port: socket.address().port, from, socket }
}

interface Heard {
  readonly socket: DatagramSocket
  readonly texts: string[]
  readonly errors: [code: string | undefined, connected: boolean][]
  /** Until `count` datagrams or errors came. */
  until(count: number): Promise<void>
}

function connect(port: number, over: Partial<DatagramOptions> = {}): Heard {
  const texts: string[] = []
  const errors: Heard['errors'] = []
  let look = (): void => undefined
  const socket = transport.connectDatagram({
    host: '127.0.0.1',
    port,
    source: undefined,
    onMessage: (data, length) => {
      texts.push(data.toString('latin1', 0, length))
      look()
    },
    onError: (error, connected) => {
      errors.push([error.code, connected])
      look()
    },
    ...over,
  })
  open.push(socket)
  const until = (count: number): Promise<void> =>
    new Promise((resolve) => {
      look = () => {
        if (texts.length + errors.length >= count) resolve()
      }
      look()
    })
  return { socket, texts, errors, until }
}

const send = (socket: DatagramSocket, text: string): void => {
  const data = Buffer.from(`##${text}##`)
  socket.send(data, 2, text.length)
  // The octets are the caller's own again.
  data.fill(0xa5)
}

describe('a connected socket', () => {
  it.each(['127.0.0.1', '::1'])('sends what came before it was connected to %s, and then at once', async (host) => {
    const peer = await echo(host)
    const heard = connect(peer.port, { host })
    if (transport.name === 'dgram') expect(heard.socket.local).toBe('')
    send(heard.socket, 'abc')
    send(heard.socket, 'def')
    await heard.until(2)
    expect([...heard.texts].sort()).toEqual(['cba', 'fed'])
    expect(heard.socket.local).toBe(peer.from[0])
    send(heard.socket, 'ghi')
    await heard.until(3)
    expect(heard.texts[2]).toBe('ihg')
    expect(new Set(peer.from).size).toBe(1)
  })

  it('sends from the address that was asked for', async () => {
    const peer = await echo()
    const heard = connect(peer.port, { source: '127.0.0.3' })
    send(heard.socket, 'x')
    await heard.until(1)
    expect(peer.from[0]).toMatch(/^127\.0\.0\.3:/)
  })

  // Of several datagrams the later ones take the kernel's word on the first.
  it.each([1, 2, 5])('tells of nobody listening to %i datagrams, and that it was connected', async (count) => {
    const peer = await echo()
    peer.socket.close()
    open.splice(open.indexOf(peer.socket), 1)
    const heard = connect(peer.port)
    for (let i = 0; i < count; i++) send(heard.socket, 'x')
    await heard.until(1)
    expect(heard.errors[0]).toEqual(['ECONNREFUSED', true])
  })

  it('tells of an address that it cannot send from, in a later turn', async () => {
    const heard = connect(9, { source: '192.0.2.1' })
    expect(heard.errors).toEqual([])
    await heard.until(1)
    expect(heard.errors[0]).toEqual(['EADDRNOTAVAIL', false])
  })

  it('throws nothing for what can never be a socket', async () => {
    const heard = connect(70_000)
    send(heard.socket, 'x')
    await heard.until(1)
    expect(heard.errors[0]?.[1]).toBe(false)
  })

  it('is silent once closed', async () => {
    const peer = await echo()
    const heard = connect(peer.port)
    send(heard.socket, 'x')
    heard.socket.close()
    heard.socket.close()
    send(heard.socket, 'y')
    const other = connect(peer.port)
    send(other.socket, 'z')
    await other.until(1)
    expect([heard.texts, heard.errors, peer.from.length]).toEqual([[], [], 1])
  })
})
