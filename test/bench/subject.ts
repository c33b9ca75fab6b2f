/** The processes of a bench: the API server double, and the server that is measured, CoreDNS included. Read from /proc, so Linux only. */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { freePorts, root, until } from '../support/process.js'
import type { Command, Report } from './cluster-api.js'

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** The double of cluster-api.ts. */
export class Api {
  readonly url: string
  readonly #child: ChildProcess
  readonly #listeners = new Set<(report: Report) => void>()

  private constructor(child: ChildProcess, url: string) {
    this.#child = child
    this.url = url
    child.on('message', (message: Report) => {
      for (const listener of this.#listeners) listener(message)
    })
  }

  /** By "https" with the certificate of test/fakes/certificate.ts. */
  static start(size: string, scheme: 'http' | 'https' = 'http'): Promise<Api> {
    const child = fork(path.join(import.meta.dirname, 'run.mjs'), ['cluster-api.ts', size, scheme])
    return new Promise((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`the API server double ended: ${code}`)))
      child.once('message', (message: Report) => {
        if (message.kind === 'listening') resolve(new Api(child, message.url))
      })
    })
  }

  tell(command: Command): void {
    this.#child.send(command)
  }

  /** Every report from now on, until the returned function is called. */
  hear(listener: (report: Report) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** The first report that `pick` makes something of. */
  next<T>(pick: (report: Report) => T | undefined, ms = 120_000): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('the API server double said nothing')), ms)
      const off = this.hear((report) => {
        const picked = pick(report)
        if (picked === undefined) return
        clearTimeout(timer)
        off()
        resolve(picked)
      })
    })
  }

  stop(): void {
    this.#child.removeAllListeners('exit')
    this.#child.disconnect()
  }
}

/** Milliseconds. */
interface Times {
  readonly p50: number
  readonly p999: number
  readonly max: number
  readonly count: number
}

/** What a thread of ours says about itself; see probe.cjs. */
export interface ThreadState {
  readonly threadId: number
  readonly loop: Times
  readonly busy: Times
  /** Octets. */
  readonly used: number
  readonly heap: number
  readonly external: number
}

/** A server under test with the usual Corefile of a cluster, without upstreams. */
export class Subject {
  readonly port: number
  readonly #readyPort: number
  readonly #child: ChildProcess
  readonly #folder: string
  readonly #startedAt: number
  output = ''

  private constructor(port: number, readyPort: number, folder: string, command: readonly string[], env: Record<string, string>) {
    this.port = port
    this.#readyPort = readyPort
    this.#folder = folder
    this.#startedAt = performance.now()
    this.#child = spawn(command[0]!, command.slice(1), { cwd: folder, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) stream.on('data', (chunk: Buffer) => (this.output += chunk))
  }

  /** `command`: a CoreDNS; undefined: the build of this tree. */
  static async start(api: Api, command: string | undefined): Promise<Subject> {
    const [port, ready, metrics] = (await freePorts(3)) as [number, number, number]
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairndns-bench-'))
    const file = path.join(folder, 'Corefile')
    fs.writeFileSync(file, corefile(api.url, port, ready, metrics))
    const program = command === undefined ? [process.execPath, path.join(root, 'dist', 'cli.js')] : [command]
    const probe = path.join(import.meta.dirname, 'probe.cjs')
    const env = command === undefined ? { NODE_OPTIONS: `--require ${probe}`, CAIRNDNS_PROBE: path.join(folder, 'probe') } : {}
    return new Subject(port, ready, folder, [...program, '-conf', file], env as Record<string, string>)
  }

  /** Milliseconds since the process was started. */
  get age(): number {
    return performance.now() - this.#startedAt
  }

  /** Resolves when all is loaded and set up, and only the list is waited for. */
  async begun(): Promise<void> {
    await this.#until(async () => this.output.includes('waiting for Kubernetes API') || (await this.#readiness()) === 200)
  }
  /** Resolves with the age at which /ready said yes. */
  async ready(): Promise<number> {
    await this.#until(async () => (await this.#readiness()) === 200)
    return this.age
  }

  /** Reloads with another option of `kubernetes`: its source is another one then, and lists anew while the old one serves. */
  reload(option: string): void {
    const file = path.join(this.#folder, 'Corefile')
    fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace('pods insecure', `${option}\n        pods insecure`))
    this.#child.kill('SIGUSR1')
  }

  /** Resident MiB: now, and the most since `forgetPeak`. */
  memory(): { readonly now: number; readonly peak: number } {
    const status = fs.readFileSync(`/proc/${this.#child.pid}/status`, 'utf8')
    const read = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)![1]) / 1024
    return { now: read('VmRSS'), peak: read('VmHWM') }
  }
  forgetPeak(): void {
    fs.writeFileSync(`/proc/${this.#child.pid}/clear_refs`, '5')
  }

  /** Seconds of user and system time so far. */
  cpu(): number {
    const fields = fs.readFileSync(`/proc/${this.#child.pid}/stat`, 'utf8').replace(/.*\) /s, '').split(' ')
    return (Number(fields[11]) + Number(fields[12])) / 100
  }

  /** Of ours only: control first, then the serving threads. Held-up times begin anew. */
  async threads(): Promise<ThreadState[]> {
    const files = () => fs.readdirSync(this.#folder).filter((name) => /^probe\.\d+$/.test(name))
    for (const name of files()) fs.rmSync(path.join(this.#folder, name))
    this.#child.kill('SIGUSR2')
    await this.#until(async () => files().length >= 2)
    return files()
      .sort()
      .map((name) => JSON.parse(fs.readFileSync(path.join(this.#folder, name), 'utf8')) as ThreadState)
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve))
    if (this.#child.exitCode === null && this.#child.kill()) await ended
    fs.rmSync(this.#folder, { recursive: true, force: true })
  }

  async #readiness(): Promise<number | undefined> {
    return (await fetch(`http://127.0.0.1:${this.#readyPort}/ready`).catch(() => undefined))?.status
  }

  async #until(condition: () => Promise<boolean>): Promise<void> {
    const alive = async () => {
      if (this.#child.exitCode !== null) throw new Error(`the server ended: ${this.output}`)
      return condition()
    }
    await until(alive, 120_000, () => `waited too long: ${this.output}`)
  }
}

const corefile = (api: string, port: number, ready: number, metrics: number): string => `.:${port} {
    errors
    ready 127.0.0.1:${ready}
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        endpoint ${api}
        pods insecure
        ttl 30
    }
    prometheus 127.0.0.1:${metrics}
    cache 30
    reload
    loadbalance
}
`
