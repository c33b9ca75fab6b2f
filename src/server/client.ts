/** A small DNS client, for `cairndns query` and for tests: one question, one answer, by UDP or TCP. */
import dgram from 'node:dgram'
import net from 'node:net'
import { Message } from '../dns/index.js'

export interface Target {
  readonly host: string
  readonly port: number
  readonly proto: 'udp' | 'tcp'
  /** Milliseconds. */
  readonly timeout: number
}

/** The reply with the query's id. Rejects after the time-out and when the server can't be reached. */
export function exchange(query: Buffer, target: Target): Promise<Message> {
  return target.proto === 'tcp' ? overTcp(query, target) : overUdp(query, target)
}

const timedOut = ({ host, port, proto, timeout }: Target): Error =>
  new Error(`no answer from ${host}#${port} (${proto}) within ${timeout / 1000} s`)

function unreachable({ host, port, proto }: Target, cause: NodeJS.ErrnoException): Error {
  const why = cause.code === 'ECONNREFUSED' ? 'connection refused' : cause.code === 'ENOTFOUND' ? 'no such host' : cause.message
  return new Error(`${host}#${port} (${proto}): ${why}`, { cause })
}

const isReplyTo = (query: Buffer, data: Buffer): boolean =>
  data.length >= 12 && data[0] === query[0] && data[1] === query[1] && (data[2]! & 0x80) !== 0

function overUdp(query: Buffer, target: Target): Promise<Message> {
  const socket = dgram.createSocket(target.host.includes(':') ? 'udp6' : 'udp4')
  return new Promise<Message>((resolve, reject) => {
    const timer = setTimeout(() => reject(timedOut(target)), target.timeout)
    socket.on('error', (cause) => reject(unreachable(target, cause)))
    socket.on('message', (data) => {
      if (isReplyTo(query, data)) resolve(Message.view(data))
    })
    // Connected: a reply from another address doesn't count, and a closed port is told by the kernel.
    socket.connect(target.port, target.host, () => socket.send(query))
    socket.once('close', () => clearTimeout(timer))
  }).finally(() => socket.close())
}

function overTcp(query: Buffer, target: Target): Promise<Message> {
  const socket = net.connect({ port: target.port, host: target.host })
  return new Promise<Message>((resolve, reject) => {
    const timer = setTimeout(() => reject(timedOut(target)), target.timeout)
    let got = Buffer.alloc(0)
    socket.on('error', (cause) => reject(unreachable(target, cause)))
    socket.on('close', () => {
      clearTimeout(timer)
      reject(new Error(`${target.host}#${target.port} (tcp): closed without an answer`))
    })
    socket.on('data', (data) => {
      got = Buffer.concat([got, data])
      while (got.length >= 2 && got.length >= 2 + got.readUInt16BE(0)) {
        const end = 2 + got.readUInt16BE(0)
        const message = got.subarray(2, end)
        if (isReplyTo(query, message)) resolve(Message.view(message))
        got = got.subarray(end)
      }
    })
    const frame = Buffer.alloc(2 + query.length)
    frame.writeUInt16BE(query.length)
    query.copy(frame, 2)
    socket.write(frame)
  }).finally(() => socket.destroy())
}
