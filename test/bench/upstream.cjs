/** An upstream as a process of its own: answers A questions by UDP on 127.0.0.1, of all or (told so by a message: n) of one in n. Argument: the port. */
const { createSocket } = require('node:dgram')

const ANSWER = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1])
let oneIn = 1
let count = 0
process.on('message', (n) => {
  oneIn = n
})
process.on('disconnect', () => process.exit())

const socket = createSocket({ type: 'udp4', recvBufferSize: 1 << 20 })
socket.on('message', (query, { port, address }) => {
  if (++count % oneIn !== 0) return
  const reply = Buffer.concat([query, ANSWER])
  reply.writeUInt16BE(0x8180, 2)
  reply.writeUInt16BE(1, 6)
  socket.send(reply, port, address)
})
socket.bind(Number(process.argv[2]), '127.0.0.1', () => process.send('up'))
