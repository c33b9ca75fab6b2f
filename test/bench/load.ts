/** Questions at a steady rate over UDP (an open loop: a slow answer does not slow the next question down), and single ones. */
import dgram from 'node:dgram'
import { Message, Name, TYPE } from '../../src/dns/index.js'

const TICK_MS = 1
const LATE_MS = 2000

export interface LoadResult {
  /** Milliseconds of every answer, in no order. */
  readonly latencies: Float64Array
  readonly sent: number
  /** Questions without an answer, and answers other than NOERROR. */
  readonly lost: number
  readonly failed: number
}

export const question = (name: string, type: number = TYPE.A): Buffer =>
  Message.query(Name.parse(name), type, {
    edns: { size: 1232, extendedRcode: 0, version: 0, dnssecOk: false, z: 0, options: [] },
  }).toBuffer()

/** Asks `questions` in turn, `rate` a second, until `stop`. */
export class Load {
  readonly #socket = dgram.createSocket('udp4')
  readonly #sentAt = new Float64Array(65_536).fill(-1)
  #latencies = new Float64Array(1 << 20)
  #answers = 0
  #sent = 0
  /** Questions that are left out. */
  #from = 0
  #failed = 0
  #timer: NodeJS.Timeout | undefined

  start(port: number, questions: readonly Buffer[], rate: number): void {
    this.#socket.on('message', (reply) => this.#take(reply))
    // Nobody listens: that shows as questions lost.
    this.#socket.on('error', () => undefined)
    // A connected socket needs no look-up for each datagram.
    this.#socket.connect(port, '127.0.0.1', () => this.#run(questions, rate))
  }

  #run(questions: readonly Buffer[], rate: number): void {
    const start = performance.now()
    this.#timer = setInterval(() => {
      const due = ((performance.now() - start) * rate) / 1000
      for (; this.#sent < due; this.#sent++) this.#ask(questions[this.#sent % questions.length]!)
    }, TICK_MS)
  }

  /** Leaves out what was so far. */
  forget(): void {
    this.#from = this.#sent
    this.#answers = this.#failed = 0
  }

  async stop(): Promise<LoadResult> {
    clearInterval(this.#timer)
    await new Promise((resolve) => setTimeout(resolve, LATE_MS))
    this.#socket.close()
    const sent = this.#sent - this.#from
    // What was under way when the rest was forgotten may make it more answers than questions.
    const lost = Math.max(0, sent - this.#answers)
    return { latencies: this.#latencies.slice(0, this.#answers), sent, lost, failed: this.#failed }
  }

  #ask(octets: Buffer): void {
    const id = this.#sent & 0xffff
    octets.writeUInt16BE(id, 0)
    this.#sentAt[id] = performance.now()
    this.#socket.send(octets)
  }

  #take(reply: Buffer): void {
    const id = reply.readUInt16BE(0)
    const sentAt = this.#sentAt[id]!
    if (sentAt < 0) return
    this.#sentAt[id] = -1
    if ((reply[3]! & 15) !== 0) this.#failed++
    if (this.#answers === this.#latencies.length) {
      const more = new Float64Array(this.#answers * 2)
      more.set(this.#latencies)
      this.#latencies = more
    }
    this.#latencies[this.#answers++] = performance.now() - sentAt
  }
}

/** Single questions over one socket. */
export class Asker {
  readonly #socket = dgram.createSocket('udp4')
  readonly #waiting = new Map<number, (reply: Message | undefined) => void>()
  #id = 0

  constructor() {
    this.#socket.on('message', (reply) => this.#settle(reply.readUInt16BE(0), Message.view(reply)))
  }

  /** undefined: no answer within `ms`. */
  ask(port: number, name: string, type: number = TYPE.A, ms = 1000): Promise<Message | undefined> {
    this.#id = (this.#id + 1) & 0xffff
    const id = this.#id
    const octets = question(name, type)
    octets.writeUInt16BE(id, 0)
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#settle(id, undefined), ms)
      this.#waiting.set(id, (reply) => {
        clearTimeout(timer)
        resolve(reply)
      })
      this.#socket.send(octets, port, '127.0.0.1')
    })
  }

  close(): void {
    this.#socket.close()
  }

  #settle(id: number, reply: Message | undefined): void {
    this.#waiting.get(id)?.(reply)
    this.#waiting.delete(id)
  }
}
