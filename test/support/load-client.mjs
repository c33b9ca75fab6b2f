/*
 * A client in a process of its own that asks at a steady rate over UDP sockets, kept TCP connections and a kept DoT connection. Queries are
 * octets from the start: only id and a number in the name change, so that it is the server that is measured. Argument: JSON of
 * { port, dotPort, perSecond }. Asks until it gets a message, waits for what is open, answers with what it saw.
 */
import dgram from 'node:dgram'
import net from 'node:net'
import tls from 'node:tls'

const { port, dotPort, perSecond } = JSON.parse(process.argv[2])
/** On a busy machine late is not lost. */
const PATIENCE_MS = 15_000
/** Three times what the slow upstream keeps waiting. More at once, on a busy machine, and the kernel drops what its buffers can't hold. */
const MOST_OPEN = 600
const DIGITS = 8

/** A query of type A with a two-octet length in front. */
function frame(name) {
  const labels = name.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]))
  const message = Buffer.concat([Buffer.from([0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]), ...labels, Buffer.from([0, 0, 1, 0, 1])])
  return Buffer.concat([Buffer.from([message.length >> 8, message.length & 255]), message])
}
const cluster = frame('manual-trigger.ci-system.svc.cluster.local')
const forwarded = frame(`${'0'.repeat(DIGITS)}.example.org`)

const bad = []
let asked = 0
const began = performance.now()
let forwardedCount = 0
let answered = 0
let slowest = 0

/** One socket or connection. Ids are its own, used in turn, so what waits is in the order of its time. */
class Way {
  waiting = new Map()
  cut = false
  id = 0
  constructor(kind, send) {
    this.kind = kind
    this.send = send
  }
  ask(template, now) {
    this.id = (this.id + 1) & 0xffff
    const octets = Buffer.from(template)
    octets.writeUInt16BE(this.id, 2)
    if (template === forwarded) octets.write(String(asked).padStart(DIGITS, '0'), 15, 'latin1')
    this.waiting.set(this.id, { now, what: `${template === forwarded ? 'forwarded' : 'cluster'} query ${asked} over ${this.kind}` })
    this.send(octets)
  }
  receive(octets) {
    const found = this.waiting.get(octets.readUInt16BE(0))
    if (found === undefined) return
    this.waiting.delete(octets.readUInt16BE(0))
    answered++
    slowest = Math.max(slowest, performance.now() - found.now)
    const rcode = octets[3] & 15
    if (rcode !== 0 || octets.readUInt16BE(6) !== 1) bad.push(`${found.what}: rcode ${rcode}, ${octets.readUInt16BE(6)} answers`)
  }
  expire(now) {
    for (const [id, { now: since, what }] of this.waiting) {
      if (now - since < PATIENCE_MS) break
      this.waiting.delete(id)
      bad.push(`${what}: no answer`)
    }
  }
}

function udp() {
  const socket = dgram.createSocket('udp4')
  socket.on('error', (error) => bad.push(`udp: ${error.message}`))
  return new Promise((resolve) => {
    socket.connect(port, '127.0.0.1', () => {
      const way = new Way(`udp from ${socket.address().port}`, (octets) => socket.send(octets, 2, octets.length - 2))
      socket.on('message', (octets) => way.receive(octets))
      socket.setRecvBufferSize(1 << 20)
      resolve(way)
    })
  })
}

function stream(kind, socket, event) {
  const way = new Way(kind, (octets) => socket.write(octets))
  let rest = Buffer.alloc(0)
  socket.setNoDelay(true)
  socket.on('data', (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    let at = 0
    while (rest.length - at >= 2 && rest.length - at >= 2 + rest.readUInt16BE(at)) {
      way.receive(rest.subarray(at + 2, at + 2 + rest.readUInt16BE(at)))
      at += 2 + rest.readUInt16BE(at)
    }
    rest = rest.subarray(at)
  })
  socket.on('close', () => {
    way.cut = true
  })
  socket.on('error', () => undefined)
  return new Promise((resolve) => socket.once(event, () => resolve(way)))
}
const tcp = () => stream('tcp', net.connect(port, '127.0.0.1'), 'connect')
const dot = () => stream('dot', tls.connect({ port: dotPort, host: '127.0.0.1', rejectUnauthorized: false }), 'secureConnect')

const ways = await Promise.all([udp(), udp(), udp(), udp(), udp(), udp(), tcp(), tcp(), dot()])
let due = performance.now()
const asking = setInterval(() => {
  const now = performance.now()
  // Where the machine holds us up, what was not asked is not made up for: a burst would measure the burst.
  due = Math.max(due, now - 20)
  for (; due <= now && asked - answered < MOST_OPEN; due += 1000 / perSecond) {
    asked++
    // Every way gets its share of both kinds: 3 does not divide the turns.
    const template = asked % 3 === 0 ? forwarded : cluster
    if (template === forwarded) forwardedCount++
    ways[Math.floor(asked / 3 + asked) % ways.length].ask(template, now)
  }
}, 2)
const sweeping = setInterval(() => {
  for (const way of ways) way.expire(performance.now())
}, 250)

process.once('message', async () => {
  clearInterval(asking)
  const ended = performance.now()
  while (ways.some((way) => way.waiting.size > 0)) await new Promise((resolve) => setTimeout(resolve, 20))
  clearInterval(sweeping)
  const cut = ways.filter((way) => way.cut).map((way) => way.kind)
  process.send(
    { asked, perSecond: Math.round((asked / (ended - began)) * 1000), forwarded: forwardedCount, answered, slowest, bad, cut },
    () => process.exit(),
  )
})
process.once('disconnect', () => process.exit())
process.send('asking')
