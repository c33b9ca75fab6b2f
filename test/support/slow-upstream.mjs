// An upstream in a process of its own: answers every question after DELAY ms with one address. Arguments: PORT DELAY. Uses the built code.
import dgram from 'node:dgram'
import { Message, parseRecord } from '../../dist/src/dns/index.js'

const [port, delay] = process.argv.slice(2).map(Number)
const socket = dgram.createSocket('udp4')
socket.on('message', (octets, peer) => {
  const query = Message.view(octets)
  const reply = Message.reply(query).with({ ra: true, edns: undefined, answers: [parseRecord(`${query.question.name} 0 IN A 192.0.2.1`)] })
  const out = reply.toBuffer()
  setTimeout(() => socket.send(out, peer.port, peer.address), delay)
})
socket.bind(port, '127.0.0.1', () => {
  socket.setRecvBufferSize(1 << 20)
  process.stdout.write('up\n')
})
process.once('disconnect', () => process.exit())
