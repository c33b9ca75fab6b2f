/** The servers of one run, as processes: started with their configuration, asked until they answer rightly, stopped by pid. */
import { type ChildProcess, spawn } from 'node:child_process'
import dgram from 'node:dgram'
import { once } from 'node:events'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { freePorts } from '../../support/process.js'
import type { Job, Message, Outcome } from './generator.js'
import { pinned } from './machine.js'
import type { Kind, Place, Role } from './peers.js'
import type { Question, Workload } from './questions.js'
import type { StreamPorts } from './streams.js'

/** One column of the table: a kind of server, which program of it, and with what options. */
export interface Contestant {
  readonly label: string
  readonly kind: Kind
  /** Program and what comes before its own arguments. */
  readonly command: readonly string[]
  /** After its own. */
  readonly options: readonly string[]
  readonly version: string
  /** As `taskset -c` takes them. */
  readonly cores: string | undefined
  readonly workloads: readonly Workload[]
}

export interface Surroundings {
  readonly upstream: number
  /** URL of the API server, if the role has one. */
  readonly api: string | undefined
}

const STARTED_MS = 90_000
const ENDED_MS = 5000

/** What still runs, and what is still there, if this process ends before its time. */
const running = new Set<ChildProcess>()
const folders = new Set<string>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
  for (const folder of folders) fs.rmSync(folder, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

function remember(child: ChildProcess): ChildProcess {
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}

export class Server {
  readonly contestant: Contestant
  readonly port: number
  readonly #child: ChildProcess
  readonly #folder: string
  readonly #startedAt = performance.now()
  output = ''

  private constructor(contestant: Contestant, place: Place) {
    this.contestant = contestant
    this.port = place.port
    this.#folder = place.folder
    const { command, kind, options, cores } = contestant
    const [program, ...args] = pinned(cores, [...command, ...kind.args(place), ...options])
    this.#child = remember(
      spawn(program!, args, { cwd: place.folder, env: { ...process.env, ...kind.env?.(place) }, stdio: ['ignore', 'pipe', 'pipe'] }),
    )
    this.#child.on('error', (error) => (this.output += error))
    for (const stream of [this.#child.stdout!, this.#child.stderr!])
      stream.on('data', (chunk: Buffer) => (this.output = (this.output + chunk).slice(-4000)))
  }

  static async start(contestant: Contestant, role: Role, surroundings: Surroundings): Promise<Server> {
    const [port, ...spare] = (await freePorts(4)) as [number, ...number[]]
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairndns-bench-'))
    // dnsmasq reads its files again after it has given up root.
    fs.chmodSync(folder, 0o755)
    folders.add(folder)
    const place: Place = { role, port, spare, folder, ipv6: hasIpv6(), upstream: surroundings.upstream, api: surroundings.api }
    for (const [name, content] of Object.entries(contestant.kind.files(place))) fs.writeFileSync(path.join(folder, name), content)
    return new Server(contestant, place)
  }

  get pid(): number {
    return this.#child.pid!
  }
  /** Milliseconds since the process was started. */
  get age(): number {
    return performance.now() - this.#startedAt
  }

  /** Resolves with the age at which `question` was first answered as it should be. Throws with the output if the server ends. */
  async answers(question: Question, everyMs = 20): Promise<number> {
    const socket = dgram.createSocket('udp4')
    let answeredAt: number | undefined
    socket.on('error', () => undefined)
    socket.on('message', (reply) => {
      if ((reply[3]! & 15) === question.rcode && reply.readUInt16BE(6) === question.answers) answeredAt ??= this.age
    })
    try {
      while (answeredAt === undefined) {
        if (this.#child.exitCode !== null || this.#child.signalCode !== null || this.age > STARTED_MS)
          throw new Error(`${this.contestant.label} does not answer:\n${this.output}`)
        socket.send(question.wire, this.port, '127.0.0.1')
        await new Promise((resolve) => setTimeout(resolve, everyMs))
      }
      return answeredAt
    } finally {
      socket.close()
    }
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null && this.#child.pid !== undefined) {
      const ended = new Promise((resolve) => this.#child.once('exit', resolve))
      this.#child.kill('SIGTERM')
      const timer = setTimeout(() => this.#child.kill('SIGKILL'), ENDED_MS)
      await ended
      clearTimeout(timer)
    }
    fs.rmSync(this.#folder, { recursive: true, force: true })
    folders.delete(this.#folder)
  }
}

export const hasIpv6 = (): boolean =>
  Object.values(os.networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === '::1'))

/** The generator's process; one job at a time. */
export class Generator {
  readonly upstream: number
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, upstream: number) {
    this.#child = child
    this.upstream = upstream
  }

  static async start(cores: string | undefined): Promise<Generator> {
    const [program, ...args] = pinned(cores, [process.execPath, path.join(import.meta.dirname, '..', 'run.mjs'), 'speed/generator.ts'])
    // Advanced: figures that were not measured are NaN, which JSON does not have.
    const child = remember(spawn(program!, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], serialization: 'advanced' }))
    const { upstream } = await heard(child, 'ready')
    return new Generator(child, upstream)
  }

  get pid(): number {
    return this.#child.pid!
  }

  async run(job: Job): Promise<Outcome> {
    const outcome = heard(this.#child, 'outcome')
    this.#child.send(job)
    return (await outcome).outcome
  }

  stop(): void {
    if (this.#child.connected) this.#child.disconnect()
  }
}

/** The upstream over TCP and TLS. */
export class Streams {
  readonly ports: StreamPorts
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, ports: StreamPorts) {
    this.#child = child
    this.ports = ports
  }

  static async start(cores: string | undefined): Promise<Streams> {
    const [program, ...args] = pinned(cores, [process.execPath, path.join(import.meta.dirname, '..', 'run.mjs'), 'speed/streams.ts'])
    const child = remember(spawn(program!, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }))
    const [ports] = (await once(child, 'message')) as [StreamPorts]
    return new Streams(child, ports)
  }

  stop(): void {
    if (this.#child.connected) this.#child.disconnect()
  }
}

function heard<K extends Message['kind']>(child: ChildProcess, kind: K): Promise<Extract<Message, { kind: K }>> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null): void => reject(new Error(`the generator ended: ${code}`))
    child.once('exit', ended)
    child.once('message', (message: Message) => {
      child.off('exit', ended)
      if (message.kind === kind) resolve(message as Extract<Message, { kind: K }>)
      else reject(new Error(`the generator said ${message.kind}`))
    })
  })
}
