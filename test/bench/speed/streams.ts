/**
 * The upstream over TCP and TLS, in a process of its own (its streams need Node's loop): answers as upstream.ts does, any number of questions on a
 * connection. Started by `run.mjs speed/streams.ts`; says its ports over IPC.
 */
import net, { type AddressInfo, type Socket } from 'node:net'
import tls from 'node:tls'
import { CERT, KEY } from '../../fakes/certificate.js'
import { respond } from './upstream.js'

export interface StreamPorts {
  readonly tcp: number
  readonly tls: number
}

function serve(socket: Socket): void {
  let rest: Buffer = Buffer.alloc(0)
  const out = new Uint8Array(1280)
  socket.setNoDelay(true)
  socket.on('error', () => undefined)
  socket.on('data', (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    const replies: Buffer[] = []
    while (rest.length >= 2 && rest.length >= 2 + rest.readUInt16BE(0)) {
      const length = rest.readUInt16BE(0)
      const size = respond(rest.subarray(2), 0, length, out, 0)
      replies.push(Buffer.from([size >> 8, size & 255]), Buffer.from(out.subarray(0, size)))
      rest = rest.subarray(2 + length)
    }
    if (replies.length > 0) socket.write(Buffer.concat(replies))
  })
}

const listening = (server: net.Server): Promise<number> =>
  new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)))

export default async function main(): Promise<never> {
  process.on('disconnect', () => process.exit(0))
  const ports: StreamPorts = {
    tcp: await listening(net.createServer(serve)),
    tls: await listening(tls.createServer({ cert: CERT, key: KEY }, serve)),
  }
  process.send!(ports)
  return new Promise(() => undefined)
}
