/** The command line: CoreDNS's flags for the server, and the commands `check` and `query`. */
import fs from 'node:fs'
import { listPlugins, pluginTable } from '../plugins/load.js'
import { versionLines } from './banner.js'
import { chooseInput } from './config.js'
import { type Flags, HelpAsked, parseFlags, UsageError, usage } from './flags.js'
import { TRANSPORTS, type TransportChoice } from './transport-choice.js'

const PROGRAM = 'cairndns'
const COMMANDS: ReadonlySet<string> = new Set(['check', 'query', 'help'])

/** Runs to the end and resolves to the exit code. Never rejects: what goes wrong is a line on standard error. */
export async function main(args: readonly string[]): Promise<number> {
  try {
    if (args[0] === 'help' && args.length === 1) throw new HelpAsked()
    if (COMMANDS.has(args[0] ?? '')) {
      const { runCommand } = await import('./commands.js')
      return await runCommand(args)
    }
    return await runServer(parseFlags(args))
  } catch (error) {
    if (error instanceof HelpAsked) {
      process.stderr.write(usage(PROGRAM))
      return 0
    }
    process.stderr.write(`${(error as Error).message}\n`)
    if (!(error instanceof UsageError)) return 1
    process.stderr.write(usage(PROGRAM))
    return 2
  }
}

async function runServer({ values, switches, rest }: Flags): Promise<number> {
  if (rest.length > 0) throw new Error(`extra command line arguments: [${rest.join(' ')}]`)
  if (switches.has('version')) {
    process.stdout.write(`${versionLines().join('\n')}\n`)
    return 0
  }
  const plugins = pluginTable(values.get('plugin-cfg'))
  if (switches.has('plugins')) {
    process.stdout.write(`${listPlugins(plugins)}\n`)
    return 0
  }
  const { serve } = await import('./process.js')
  const port = values.get('dns.port') ?? '53'
  const hints = values.get('hints')
  return serve({
    input: chooseInput(values.get('conf'), port),
    port,
    plugins,
    threads: threadCount(values.get('threads')),
    transport: transportOf(values.get('transport')),
    quiet: switches.has('quiet'),
    pidfile: values.get('pidfile'),
    ...(hints === undefined ? {} : { afterword: fs.readFileSync(hints, 'utf8').trimEnd() }),
  })
}

/** Each costs some 10 MB. */
const MAX_THREADS = 256

function transportOf(text: string | undefined): TransportChoice {
  const choice = TRANSPORTS.find((name) => name === (text ?? 'auto'))
  if (choice === undefined)
    throw new UsageError(`invalid value ${JSON.stringify(text)} for flag -transport: expected ${TRANSPORTS.join(', ')}`)
  return choice
}

function threadCount(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const count = Number(text)
  if (!Number.isInteger(count) || count < 1 || count > MAX_THREADS)
    throw new UsageError(`invalid value ${JSON.stringify(text)} for flag -threads: expected 1 to ${MAX_THREADS}`)
  return count
}
