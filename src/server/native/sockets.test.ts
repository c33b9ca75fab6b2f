import dgram from 'node:dgram'
import fs from 'node:fs'
import net from 'node:net'
import { Worker } from 'node:worker_threads'
import { describe, expect, test } from 'vitest'
import { type Libc, loadLibc } from './libc.js'
import { SendRing } from './slab.js'
import { askReceiveBuffer, closeOwned, kernelDrops, localEnd, openConnected, openSocket, ownDescriptor } from './sockets.js'

const libc: Libc | undefined = await loadLibc().catch(() => undefined)
const native = libc!

describe.skipIf(libc === undefined)('sockets of the C library', () => {
  test('share an address with SO_REUSEPORT, and only so', () => {
    const one = openSocket(native, { network: 'udp', address: '127.0.0.1', port: 0, reusePort: true })
    const two = openSocket(native, { network: 'udp', address: '127.0.0.1', port: one.port, reusePort: true })
    expect(two.port).toBe(one.port)
    const three = () => openSocket(native, { network: 'udp', address: '127.0.0.1', port: one.port })
    expect(three).toThrow(`bind EADDRINUSE 127.0.0.1:${one.port}`)
    expect(three).toThrow(expect.objectContaining({ code: 'EADDRINUSE' }))
    for (const { fd } of [one, two]) native.close(fd)
  })

  test('serve node:dgram and node:net', async () => {
    for (const address of ['127.0.0.1', '::1', '']) {
      const { fd, port } = openSocket(native, { network: 'tcp', address, port: 0, reusePort: true })
      const server = net.createServer((socket) => socket.end('hello'))
      await new Promise<void>((resolve) => server.listen({ fd }, resolve))
      const client = net.connect(port, address === '::1' ? '::1' : '127.0.0.1')
      expect(await new Promise((resolve) => client.on('data', (data) => resolve(String(data))))).toBe('hello')
      server.close()
    }
    const { fd, port } = openSocket(native, { network: 'udp', address: '::1', port: 0, reusePort: true })
    const server = dgram.createSocket('udp6')
    await new Promise<void>((resolve) => server.bind({ fd }, resolve))
    const connected = openConnected(native, '::1', port, undefined)
    expect(localEnd(native, connected).address).toBe('::1')
    native.close(connected)
    server.close()
  })

  test('keep to IPv6 where they are bound to one address of it', () => {
    const six = openSocket(native, { network: 'tcp', address: '::', port: 0 })
    const four = openSocket(native, { network: 'tcp', address: '0.0.0.0', port: six.port })
    for (const { fd } of [six, four]) native.close(fd)
  })

  test('tell how large a receive buffer the kernel gave', () => {
    const { fd } = openSocket(native, { network: 'udp', address: '127.0.0.1', port: 0 })
    expect(askReceiveBuffer(native, fd, 65_536)).toBe(65_536)
    native.close(fd)
  })

  test('tell how many datagrams the kernel dropped', () => {
    const { fd, port } = openSocket(native, { network: 'udp', address: '127.0.0.1', port: 0 })
    askReceiveBuffer(native, fd, 4096)
    expect(kernelDrops(native, fd)).toBe(0)
    const from = openConnected(native, '127.0.0.1', port, undefined)
    const ring = new SendRing(native, { size: 512, names: false })
    for (let i = 0; i < 64; i++) ring.push(512, 0)
    ring.flush(from, { failed: 0, dropped: 0 })
    expect(kernelDrops(native, fd)).toBeGreaterThan(10)
    for (const open of [fd, from]) native.close(open)
  })

  test('are closed by their owner', () => {
    const { fd, port } = openSocket(native, { network: 'udp', address: '127.0.0.1', port: 0 })
    const owned = ownDescriptor(native, fd)
    expect(fs.readlinkSync(`/proc/self/fd/${owned}`)).toMatch(/^socket:/)
    closeOwned(owned)
    native.close(openSocket(native, { network: 'udp', address: '127.0.0.1', port }).fd)
  })

  test('end with the thread that owns them, even one that is cut off', async () => {
    const code = `
      const { workerData, parentPort } = require('node:worker_threads')
      import(workerData.libc).then(async ({ loadLibc }) => {
        const { openSocket, ownDescriptor } = await import(workerData.sockets)
        const libc = await loadLibc()
        const { fd, port } = openSocket(libc, { network: 'udp', address: '127.0.0.1', port: 0 })
        ownDescriptor(libc, fd)
        parentPort.postMessage(port)
        setImmediate(() => { for (;;); })
      })`
    const built = new URL('../../../dist/src/server/native/', import.meta.url)
    if (!fs.existsSync(new URL('sockets.js', built))) return
    const worker = new Worker(code, { eval: true, workerData: { libc: `${built}libc.js`, sockets: `${built}sockets.js` } })
    const port = await new Promise<number>((resolve, reject) => worker.on('message', resolve).on('error', reject))
    await worker.terminate()
    native.close(openSocket(native, { network: 'udp', address: '127.0.0.1', port }).fd)
  })
})
