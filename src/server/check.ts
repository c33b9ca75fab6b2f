/** `cairndns check`: Corefiles parsed and set up as a start would, without opening anything. */
import fs from 'node:fs'
import { type Corefile, CorefileError, type Position } from '../corefile/index.js'
import { realClock } from '../plugins/clock.js'
import { loadModule, pluginTable } from '../plugins/load.js'
import { preferredSyntax } from './block.js'
import { newBoard } from './board.js'
import { loadConfig, reasonOf } from './config.js'
import { ControlGeneration } from './control-generation.js'
import { Generation } from './generation.js'
import { connectDgram } from './listeners/dgram-client.js'
import { Loggers } from './log.js'
import { SlotMetrics } from './metrics.js'
import type { Channel, FromServing, PluginEntry, ToServing } from './protocol.js'
import { Replicas, SharedValues } from './shared.js'
import { Talk } from './talk.js'

export interface CheckOptions {
  readonly json: boolean
  readonly pluginCfg: string | undefined
  readonly port: string
}

export interface CheckResult {
  /** As given on the command line; a Corefile out of a ConfigMap has its key behind a "#". */
  readonly file: string
  readonly ok: boolean
  readonly error?: {
    readonly message: string
    readonly file?: string
    readonly line?: number
    readonly column?: number
    readonly hint?: string
  }
  readonly warnings: readonly string[]
  readonly notes: readonly string[]
  readonly blocks: readonly { readonly keys: readonly string[]; readonly plugins: readonly string[] }[]
}

/** A Corefile to look at: from a file, from standard input, or out of a ConfigMap. */
interface Candidate {
  readonly label: string
  /** What errors name. */
  readonly name: string
  readonly text: string
}

/** Prints what it finds; resolves to the exit code: 1 if a Corefile would not start. */
export async function check(files: readonly string[], { json, pluginCfg, port }: CheckOptions): Promise<number> {
  const plugins = pluginTable(pluginCfg)
  const results: CheckResult[] = []
  for (const file of files) results.push(...(await checkFile(file, plugins, port)))
  const ok = results.every((result) => result.ok)
  if (json) process.stdout.write(`${JSON.stringify({ ok, files: results }, undefined, 2)}\n`)
  else for (const result of results) process.stdout.write(humanText(result))
  return ok ? 0 : 1
}

async function checkFile(file: string, plugins: readonly PluginEntry[], port: string): Promise<CheckResult[]> {
  try {
    const candidates = await candidatesOf(file)
    const results: CheckResult[] = []
    for (const candidate of candidates) results.push(await checkCorefile(candidate, plugins, port))
    return results
  } catch (error) {
    return [{ file, ok: false, error: { message: (error as Error).message }, warnings: [], notes: [], blocks: [] }]
  }
}

async function candidatesOf(file: string): Promise<Candidate[]> {
  const name = file === '-' ? 'stdin' : file
  let text: string
  try {
    text = fs.readFileSync(file === '-' ? 0 : file, 'utf8')
  } catch (cause) {
    throw new Error(`open ${file}: ${reasonOf(cause as NodeJS.ErrnoException)}`, { cause })
  }
  const isManifest = /\.ya?ml$/.test(file) || (/^apiVersion:/m.test(text) && /^kind:/m.test(text))
  if (!isManifest) return [{ label: file, name, text }]
  const { corefilesIn } = await import('./configmap.js')
  return corefilesIn(text, name).map(({ key, text: corefile }) => ({ label: `${file}#${key}`, name, text: corefile }))
}

/** Public for tests: one Corefile's text. */
export async function checkCorefile({ label, name, text }: Candidate, plugins: readonly PluginEntry[], port: string): Promise<CheckResult> {
  const warnings: string[] = []
  const notes: string[] = []
  try {
    const missingImport = (pattern: string, at: Position): boolean => {
      // A bare word is a snippet's name, and then a wrong one.
      if (!pattern.includes('/')) return false
      notes.push(`${at.file}:${at.line}: file to import is not on this machine: ${pattern}`)
      return true
    }
    const corefile = loadConfig(text, name, { port, plugins, missingImport })
    const generation = idleGeneration(corefile, plugins, port)
    try {
      await generation.setUp()
      await controlGeneration(corefile, plugins, port, notes).setUp()
    } finally {
      warnings.push(...generation.warnings, ...oddZones(corefile))
      notes.push(...generation.notes)
      await generation.shutDown('exit')
    }
    const blocks = generation.blocks.map(({ config, plugins: chain }) => ({
      keys: config.keys.map(({ transport, zone, port: own }) => `${transport === 'dns' ? '' : `${transport}://`}${zone}:${own}`),
      plugins: chain.map((plugin) => plugin.name),
    }))
    return { file: label, ok: true, warnings, notes: [...new Set(notes)], blocks }
  } catch (error) {
    return { file: label, ok: false, error: described(error as Error), warnings, notes: [...new Set(notes)], blocks: [] }
  }
}

function described(error: Error): NonNullable<CheckResult['error']> {
  if (!(error instanceof CorefileError)) return { message: error.message }
  const { file, line, column } = error.pos
  return { message: error.message, file, line, column, ...(error.hint === undefined ? {} : { hint: error.hint }) }
}

const silent = new Loggers({ write: () => undefined, flush: () => undefined })
const nowhere: Channel<FromServing, ToServing> = { post: () => undefined, onMessage: () => undefined, close: () => undefined }

/** Blocks and chains as a serving thread would build them; nothing starts. */
function idleGeneration(corefile: ConstructorParameters<typeof Generation>[1], plugins: readonly PluginEntry[], port: string): Generation {
  const log = silent.for('')
  const deps = {
    loadModule,
    metrics: new SlotMetrics(() => undefined),
    logger: (plugin: string) => silent.for(plugin),
    clock: realClock,
    connectDatagram: connectDgram,
    setDebug: () => undefined,
    checking: true,
  }
  const outliving = {
    shared: new SharedValues(log),
    replicas: new Replicas(nowhere, log),
    talk: new Talk(nowhere, log),
    fatal: () => undefined,
  }
  return new Generation(
    0,
    corefile,
    { port, plugins, thread: { index: 0, count: 1 }, board: newBoard(), secret: new Uint8Array(32) },
    deps,
    outliving,
  )
}

/** The control parts, which may find fault with what set-up doesn't look at. */
function controlGeneration(
  corefile: ConstructorParameters<typeof ControlGeneration>[1],
  plugins: readonly PluginEntry[],
  port: string,
  notes: string[],
) {
  return new ControlGeneration(0, corefile, {
    clock: realClock,
    loggers: silent,
    metrics: new SlotMetrics(() => undefined),
    plugins,
    port,
    loadModule,
    checking: true,
    note: (line) => void notes.push(line),
    process: {
      notReady: () => [],
      remarks: () => [],
      healthy: () => true,
      metricsText: async () => ({ contentType: '', body: '' }),
      reload: async () => undefined,
      readConfig: () => ({ sha512: '', error: undefined }),
      exit: () => undefined,
    },
  })
}

/** Where it is, unless the message says so itself. */
function placeOf(error: CheckResult['error']): string {
  if (error?.line === undefined || error.message.includes(`${error.file}:${error.line} `)) return ''
  return ` (${error.file}:${error.line}, column ${error.column})`
}

/** Zones that are no host names, which a start warns of too: mostly a brace or a port gone wrong. An unknown scheme has its own warning. */
const oddZones = ({ blocks }: Corefile): string[] =>
  blocks.flatMap(({ keys }) =>
    keys
      .filter(({ zone }) => !preferredSyntax(zone) && !zone.includes('://'))
      .map(({ zone, pos }) => `${pos.file}:${pos.line}: ${JSON.stringify(zone)} is served as a zone; is it meant to be one?`),
  )

function humanText({ file, ok, error, warnings, notes, blocks }: CheckResult): string {
  const count = blocks.length === 1 ? '1 server block' : `${blocks.length} server blocks`
  const lines = [ok ? `${file}: ok, ${count}` : `${file}: ${error?.message ?? 'refused'}${placeOf(error)}`]
  for (const { keys, plugins } of blocks) lines.push(`  ${keys.join(' ')}: ${plugins.join(' → ') || 'no plugin answers'}`)
  for (const warning of warnings) lines.push(`  warning: ${warning}`)
  for (const note of notes) lines.push(`  note: ${note}`)
  return `${lines.join('\n')}\n`
}
