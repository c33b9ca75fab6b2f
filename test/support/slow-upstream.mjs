// An upstream in a process of its own: answers every question, UDP or TCP, after DELAY ms with one address. Arguments: PORT DELAY. Uses the built code.
import dgram from 'node:dgram'
import net from 'node:net'
import { Message, parseRecord } from '../../dist/src/dns/index.js'

const [port, delay] = process.argv.slice(2).map(Number)

function answer(octets) {
  const query = Message.view(octets)
  return Message.reply(query)
    .with({ ra: true, edns: undefined, answers: [parseRecord(`${query.question.name} 0 IN A 192.0.2.1`)] })
    .toBuffer()
}

const socket = dgram.createSocket('udp4')
socket.on('message', (octets, peer) => {
  const out = answer(octets)
  setTimeout(() => socket.send(out, peer.port, peer.address), delay)
})
const server = net.createServer((connection) => {
  let rest = Buffer.alloc(0)
  connection.on('error', () => connection.destroy())
  connection.on('data', (chunk) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= 2 && rest.length >= 2 + rest.readUInt16BE(0)) {
      const out = answer(Buffer.from(rest.subarray(2, 2 + rest.readUInt16BE(0))))
      rest = rest.subarray(2 + rest.readUInt16BE(0))
      const head = Buffer.from([out.length >> 8, out.length & 255])
      setTimeout(() => connection.write(Buffer.concat([head, out])), delay)
    }
  })
})
socket.bind(port, '127.0.0.1', () => {
  socket.setRecvBufferSize(1 << 20)
  server.listen(port, '127.0.0.1', () => process.stdout.write('up\n'))
})
process.once('disconnect', () => process.exit())
