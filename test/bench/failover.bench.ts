/**
 * `npm run bench -- failover [RATE]`: what clients notice of three upstreams when one is killed and one falls silent, when all die and come
 * back, and when one answers one question in ten; without and with `hedge auto`. COREDNS names a binary to be measured as well.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { Message, Name, TYPE } from '../../src/dns/index.js'
import { freePorts, type Running, run } from '../support/process.js'

interface Sample {
  /** performance.now() when it was put. */
  readonly at: number
  /** Milliseconds; NaN: no answer yet. */
  took: number
  good: boolean
}

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

class Upstream {
  readonly port: number
  #child: ChildProcess | undefined
  constructor(port: number) {
    this.port = port
  }
  async up(): Promise<void> {
    this.#child = fork(path.join(import.meta.dirname, 'upstream.cjs'), [String(this.port)])
    await once(this.#child, 'message')
  }
  async kill(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
  silence(): void {
    this.#child?.kill('SIGSTOP')
  }
  answerOneIn(n: number): void {
    this.#child?.send(n)
  }
}

/** Milliseconds of processor time that a process has used. */
function cpu(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** So many questions a second, whatever comes back. */
class Load {
  readonly samples: Sample[] = []
  readonly #sockets: Socket[]
  readonly #waiting = new Map<number, Sample>()
  readonly #timer: NodeJS.Timeout
  #id = 0

  constructor(port: number, rate: number) {
    this.#sockets = Array.from({ length: 8 }, () => createSocket({ type: 'udp4', recvBufferSize: 1 << 20 }))
    for (const socket of this.#sockets)
      socket.on('message', (reply) => {
        const sample = this.#waiting.get(reply.readUInt16BE(0))
        if (sample === undefined) return
        this.#waiting.delete(reply.readUInt16BE(0))
        sample.took = performance.now() - sample.at
        sample.good = (reply[3]! & 0xf) === 0 && reply.readUInt16BE(6) === 1
      })
    const query = Message.query(Name.parse('www.example.org.'), TYPE.A, { id: 0 }).toBuffer()
    const began = performance.now()
    let sent = 0
    this.#timer = setInterval(() => {
      for (const due = ((performance.now() - began) / 1000) * rate; sent < due; sent++) {
        const sample = { at: performance.now(), took: Number.NaN, good: false }
        this.#id = (this.#id + 1) & 0xffff
        this.samples.push(sample)
        this.#waiting.set(this.#id, sample)
        const copy = Buffer.from(query)
        copy.writeUInt16BE(this.#id)
        this.#sockets[sent % this.#sockets.length]!.send(copy, port, '127.0.0.1')
      }
    }, 1)
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    const end = performance.now() + 6000
    while (this.#waiting.size > 0 && performance.now() < end) await wait(20)
    for (const socket of this.#sockets) socket.close()
  }

  /** "p50 0.4 p99 3.1 max 8 ms, 0 of 2000 failed" for those put between two times. */
  report(from: number, to: number): string {
    const all = this.samples.filter(({ at }) => at >= from && at < to)
    const took = all.map((sample) => (Number.isNaN(sample.took) ? 6000 : sample.took)).sort((a, b) => a - b)
    const at = (p: number): string => (took[Math.min(took.length - 1, Math.floor(took.length * p))] ?? 0).toFixed(1)
    return `p50 ${at(0.5)}, p99 ${at(0.99)}, max ${at(1)} ms; ${all.filter(({ good }) => !good).length} of ${all.length} failed`
  }

  /** Milliseconds from `from` until all that is put within 100 ms is answered well and in 50 ms. */
  normalAfter(from: number): number {
    for (let start = from; start < from + 10_000; start += 10) {
      const window = this.samples.filter(({ at }) => at >= start && at < start + 100)
      if (window.length > 0 && window.every(({ good, took }) => good && took < 50)) return start - from
    }
    return Number.POSITIVE_INFINITY
  }
}

async function measure(label: string, command: string | undefined, options: string, rate: number): Promise<void> {
  const [port, ...ports] = await freePorts(4)
  const upstreams = ports.map((one) => new Upstream(one))
  const [one, two, three] = upstreams as [Upstream, Upstream, Upstream]
  await Promise.all(upstreams.map((upstream) => upstream.up()))
  const to = ports.map((one) => `127.0.0.1:${one}`).join(' ')
  const corefile = `.:${port} {\n  bind 127.0.0.1\n  forward . ${to} {\n${options}  }\n}\n`
  const server: Running = await run(corefile, port!, command === undefined ? {} : { command })
  let used = cpu(server.pid)
  const say = (what: string, figures: string, load?: Load): void => {
    const [now, count] = [cpu(server.pid), load?.samples.length ?? 0]
    const each = count === 0 ? '' : `; ${Math.round(((now - used) / count) * 1000)} µs each`
    console.log(`${label.padEnd(12)} ${what.padEnd(36)} ${figures}${each}`)
    used = now
  }
  try {
    await phase(port!, rate, 2000, (load, t) => say('all well', load.report(t, t + 2000), load))

    await phase(
      port!,
      rate,
      5000,
      (load, t) => {
        console.log(`${label.padEnd(12)} ${'one killed, one silent: 1st second'.padEnd(36)} ${load.report(t, t + 1000)}`)
        say('one killed, one silent: then', load.report(t + 1000, t + 5000), load)
      },
      async () => {
        two.silence()
        await one.kill()
      },
    )

    await Promise.all(upstreams.map((upstream) => upstream.kill()))
    await wait(2000)
    await phase(
      port!,
      rate,
      4000,
      (load, t) => say('all dead for 3 s, then back', `normal after ${load.normalAfter(t).toFixed(0)} ms`),
      async () => {
        await Promise.all(upstreams.map((upstream) => upstream.up()))
      },
    )

    three.answerOneIn(10)
    await phase(port!, rate, 5000, (load, t) => say('one answers 1 in 10', load.report(t, t + 5000), load))
  } finally {
    await server.stop()
    await Promise.all(upstreams.map((upstream) => upstream.kill()))
  }
}

/** Traffic for a second, then `change`, then `ms` more of it, counted from the end of `change`'s work. */
async function phase(
  port: number,
  rate: number,
  ms: number,
  report: (load: Load, from: number) => void,
  change: () => Promise<void> = async () => undefined,
): Promise<void> {
  const load = new Load(port, rate)
  await wait(1000)
  const before = performance.now()
  await change()
  const began = ms === 4000 ? performance.now() : before
  await wait(ms)
  await load.stop()
  report(load, began)
}

export default async function failover([rate = '2000']: readonly string[]): Promise<void> {
  await measure('ours', undefined, '', Number(rate))
  await measure('ours, hedge', undefined, '    hedge auto\n', Number(rate))
  if (process.env.COREDNS) await measure('CoreDNS', process.env.COREDNS, '', Number(rate))
}
