/**
 * `npm run bench -- generator`: how many questions a second the load generator sends and checks when the other side is a bare echo on the other
 * core: above what any server here answers, or its figures are the generator's. Options: --rounds, --seconds, --outstanding, --sockets.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { root } from '../support/process.js'
import { figure, ownVersions, print } from './report.js'
import { Generator } from './speed/contestants.js'
import type { Outcome } from './speed/generator.js'
import { coresFor, pinned } from './speed/machine.js'
import { optionsOf } from './speed/options.js'

export default async function main(args: readonly string[]): Promise<void> {
  const options = optionsOf(args)
  const cores = coresFor(1)
  const generator = await Generator.start(cores.generator)
  const { child, port } = await startEcho(cores.server)
  try {
    const outcomes: Outcome[] = []
    for (let i = 0; i < options.rounds; i++) {
      const { outstanding, sockets, seconds, warmUp } = options
      outcomes.push(await generator.run({ workload: 'hit', port, pid: child.pid!, outstanding, sockets, seconds, warmUp }))
    }
    const each = (what: string, unit: string, pick: (outcome: Outcome) => number) => figure(what, unit, outcomes.map(pick))
    const figures = [
      each('sent, answered and checked', 'q/s', ({ qps }) => qps),
      each('echo, processor time', 'µs/q', ({ cpu }) => cpu),
      each('p50', 'ms', ({ p50 }) => p50),
      each('p99', 'ms', ({ p99 }) => p99),
      each('lost', '', ({ lost }) => lost),
      each('wrong', '', ({ wrong }) => wrong),
      each('turns with nothing to take', '', ({ idle }) => idle),
    ]
    print('generator', figures, ownVersions(root), options.json)
  } finally {
    child.disconnect()
    generator.stop()
  }
}

async function startEcho(cores: string | undefined): Promise<{ child: ChildProcess; port: number }> {
  const [program, ...rest] = pinned(cores, [process.execPath, path.join(import.meta.dirname, 'run.mjs'), 'speed/echo.ts'])
  const child = spawn(program!, rest, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const [port] = (await once(child, 'message')) as [number]
  return { child, port }
}
