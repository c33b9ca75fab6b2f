/** The server as a process: banner, pid file, signals, exit codes, worded as CoreDNS words them. */
import fs from 'node:fs'
import { realClock } from '../plugins/clock.js'
import { loadModule } from '../plugins/load.js'
import { versionLines } from './banner.js'
import type { ConfigInput } from './config.js'
import { Control } from './control.js'
import { Loggers, stdoutSink } from './log.js'
import type { PluginEntry } from './protocol.js'

import type { TransportChoice } from './transport-choice.js'
import { workerSpawn } from './worker-spawn.js'

/** Milliseconds that a start may still take when a signal comes that ends it. */
const START_PATIENCE_MS = 1_000

export interface ServeOptions {
  readonly input: ConfigInput
  readonly port: string
  readonly plugins: readonly PluginEntry[]
  /** undefined: as the Corefile says. */
  readonly threads: number | undefined
  readonly transport: TransportChoice
  readonly quiet: boolean
  readonly pidfile: string | undefined
  /** Printed when all is served. */
  readonly afterword?: string
}

/** Serves until a signal ends it. Resolves to the exit code: 0 after a signal, 1 when it could not start. */
export async function serve(options: ServeOptions): Promise<number> {
  const { input, port, plugins, threads, transport, quiet, pidfile } = options
  const loggers = new Loggers(stdoutSink())
  const log = loggers.for('')
  const exit = (code: number): never => {
    loggers.flush()
    removePidfile(pidfile)
    process.exit(code)
  }
  const spawn = workerSpawn(port, plugins, transport)
  const control = new Control({ input, port, plugins, threads, quiet, loggers, loadModule, spawn, clock: realClock, exit })
  // What nobody waited for is a fault of ours or of a plugin; answering queries goes on.
  process.on('unhandledRejection', (reason) => log.error(`unhandled: ${reason instanceof Error ? reason.stack : String(reason)}`))
  // Between the death of a serving thread and the birth of the next, nothing else keeps the process alive.
  const alive = setInterval(() => undefined, 2 ** 30)
  const starting = control.start()
  const ended = trapSignals(control, loggers, exit, starting)
  try {
    await starting
  } catch (error) {
    loggers.flush()
    clearInterval(alive)
    process.stderr.write(`${(error as Error).message}\n`)
    // What a plugin left open must not keep a server that can't start.
    setTimeout(() => process.exit(1), 500).unref()
    return 1
  }
  if (!quiet) for (const line of versionLines()) loggers.raw(line)
  writePidfile(pidfile, (text) => log.error(`Could not write pidfile: ${text}`))
  if (options.afterword !== undefined) loggers.raw(options.afterword)
  await ended
  return exit(0)
}

/** Resolves when a signal has ended the server in order. */
function trapSignals(control: Control, loggers: Loggers, exit: (code: number) => never, starting: Promise<void>): Promise<void> {
  const log = loggers.for('')
  const stop = async (): Promise<void> => {
    // A start may hang, at an API server that doesn't answer say; there is nothing to drain then.
    const hanging = setTimeout(() => exit(0), START_PATIENCE_MS)
    await starting.catch(() => undefined)
    clearTimeout(hanging)
    await control.stop()
  }
  let interrupts = 0
  process.on('SIGQUIT', () => {
    log.info('SIGQUIT: Quitting process immediately')
    exit(0)
  })
  process.on('SIGHUP', () => undefined)
  process.on('SIGUSR1', () => {
    log.info('SIGUSR1: Reloading')
    void control.reload().then((failure) => {
      if (failure !== undefined) log.error(`SIGUSR1: ${failure.message}`)
    })
  })
  return new Promise((resolve) => {
    process.on('SIGTERM', () => {
      log.info('SIGTERM: Shutting down servers then terminating')
      void stop().then(resolve)
    })
    process.on('SIGINT', () => {
      if (interrupts++ > 0) {
        log.info('SIGINT: Force quit')
        exit(2)
      }
      log.info('SIGINT: Shutting down')
      void stop().then(resolve)
    })
  })
}

function writePidfile(file: string | undefined, report: (text: string) => void): void {
  if (file === undefined || file === '') return
  try {
    fs.writeFileSync(file, `${process.pid}\n`)
  } catch (error) {
    report((error as Error).message)
  }
}

function removePidfile(file: string | undefined): void {
  if (file !== undefined && file !== '') fs.rmSync(file, { force: true })
}
