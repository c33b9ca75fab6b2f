/** A server as its users run it: the built command in a process of its own, with a Corefile in a temporary folder. */
import { type ChildProcess, spawn } from 'node:child_process'
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'

export const root = path.resolve(import.meta.dirname, '..', '..')
const cli = path.join(root, 'dist', 'cli.js')

/** Below the ports that systems pick for outgoing connections (32,768 and up): so nothing of the test's own takes one meanwhile. */
const PORTS = { from: 20_000, count: 12_000 } as const

/** Ports that were free a moment ago, for UDP and TCP alike in practice. */
export async function freePorts(count: number): Promise<number[]> {
  const servers: net.Server[] = []
  while (servers.length < count) {
    const server = await listening(PORTS.from + Math.floor(Math.random() * PORTS.count))
    if (server !== undefined) servers.push(server)
  }
  const ports = servers.map((server) => (server.address() as net.AddressInfo).port)
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

/** undefined: the port is taken. */
function listening(port: number): Promise<net.Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = net.createServer().listen(port, '::', () => resolve(server))
    server.once('error', (error: NodeJS.ErrnoException) => (error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error)))
  })
}

export interface Running {
  readonly folder: string
  readonly corefile: string
  readonly pid: number
  output(): string
  signal(signal: NodeJS.Signals): void
  /** Resident set in MiB. */
  rss(): number
  /** Waits until the output matches; fails after `ms`. */
  saw(pattern: RegExp, ms?: number): Promise<void>
  exited: Promise<number | null>
  stop(): Promise<number | null>
}

/** Starts the server and waits until `port` takes TCP connections. */
export async function run(
  corefile: string,
  port: number,
  options: {
    cwd?: string
    args?: readonly string[]
    files?: Readonly<Record<string, string>>
    env?: Readonly<Record<string, string>>
    /** Another server that takes the same arguments. */
    command?: string
  } = {},
): Promise<Running> {
  if (options.command === undefined && !fs.existsSync(cli)) throw new Error('dist/cli.js is missing: run `npm run build` first')
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairndns-'))
  for (const [name, text] of Object.entries(options.files ?? {})) fs.writeFileSync(path.join(folder, name), text)
  const file = path.join(folder, 'Corefile')
  fs.writeFileSync(file, corefile)
  const command = options.command === undefined ? [process.execPath, cli] : [options.command]
  const child: ChildProcess = spawn(command[0]!, [...command.slice(1), '-conf', file, ...(options.args ?? [])], {
    env: { ...process.env, ...options.env },
    cwd: options.cwd ?? folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  child.stdout!.on('data', (chunk: Buffer) => (output += chunk))
  child.stderr!.on('data', (chunk: Buffer) => (output += chunk))
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)))
  let running = true
  void exited.then(() => (running = false))
  const server: Running = {
    folder,
    corefile: file,
    pid: child.pid!,
    output: () => output,
    signal: (signal) => void child.kill(signal),
    rss: () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${child.pid}/status`, 'utf8'))![1]) / 1024,
    saw: (pattern, ms = 10_000) =>
      until(
        () => pattern.test(output),
        ms,
        () => `no ${pattern} in:\n${output}`,
      ),
    exited,
    async stop() {
      if (running) child.kill('SIGTERM')
      const code = await exited
      fs.rmSync(folder, { recursive: true, force: true })
      return code
    },
  }
  try {
    await until(
      async () => !running || (await accepts(port)),
      15_000,
      () => `port ${port} never opened:\n${output}`,
    )
    if (!running) throw new Error(`the server ended:\n${output}`)
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
  return server
}

async function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

/** Polls a condition; the error says what was waited for. */
export async function until(condition: () => boolean | Promise<boolean>, ms: number, what: () => string): Promise<void> {
  const end = performance.now() + ms
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(what())
    await new Promise((resolve) => setTimeout(resolve, 15))
  }
}
