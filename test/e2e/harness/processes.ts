/** Processes of a control plane: started with their output in a file, ended by signal, and dead when the tests are. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'

const alive = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL')
})

export interface Daemon {
  readonly exited: Promise<number | null>
  /** Ends it and waits. */
  stop(signal?: NodeJS.Signals): Promise<void>
  /** The last lines of its output, for errors. */
  tail(): string
}

export function daemon(command: string, args: readonly string[], log: string): Daemon {
  const output = openSync(log, 'a')
  const child = spawn(command, args, { stdio: ['ignore', output, output] })
  closeSync(output)
  alive.add(child)
  const exited = new Promise<number | null>((resolve) => {
    child.once('exit', resolve)
    child.once('error', () => resolve(-1))
  })
  void exited.then(() => alive.delete(child))
  return {
    exited,
    async stop(signal = 'SIGKILL') {
      child.kill(signal)
      await exited
    },
    tail: () => readFileSync(log, 'utf8').split('\n').slice(-15).join('\n'),
  }
}
