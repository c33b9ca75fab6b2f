/** Where the Corefile comes from, and what it becomes before any plugin sees it. */
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { type Corefile, CorefileError, type Directive, limits, type Position, parseCorefile, type ServerBlock } from '../corefile/index.js'
import { notBuilt } from '../plugins/load.js'
import type { PluginEntry } from './protocol.js'

/** A Corefile that can be read again. */
export interface ConfigInput {
  /** As errors name it. */
  readonly name: string
  /** Throws what the file system says, worded for people. */
  read(): string
}

/** Directives that CoreDNS had and removed, and what reads them now. */
const RENAMED: ReadonlyMap<string, { readonly to: string; readonly since: string }> = new Map([
  ['proxy', { to: 'forward', since: '1.5.0' }],
])

/** `-conf FILE`, `-conf stdin`, else `Corefile` in the working directory if there is one, else CoreDNS's own default. */
export function chooseInput(conf: string | undefined, port: string): ConfigInput {
  if (conf === 'stdin') {
    let text: string | undefined
    return { name: 'stdin', read: () => (text ??= fs.readFileSync(0, 'utf8')) }
  }
  if (conf !== undefined && conf !== '') return { name: conf, read: fileReader(conf, 'loading Corefile via flag') }
  const read = fileReader('Corefile', 'loading Corefile via default')
  return { name: 'Corefile', read: () => (fs.existsSync('Corefile') ? read() : defaultCorefile(port)) }
}

export const defaultCorefile = (port: string): string => `.:${port} {\nwhoami\nlog\n}\n`

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or directory',
  EACCES: 'permission denied',
  EISDIR: 'is a directory',
}

/** Reads a file anew each time. A pipe or device (`-conf <(…)`) gives its text once, and reading it again would wait forever: so that is kept. */
export function fileReader(file: string, doing: string): () => string {
  let piped: string | undefined
  let before = false
  return () => {
    if (piped !== undefined) return piped
    const stat = fs.statSync(path.normalize(file), { throwIfNoEntry: false })
    const stream = stat !== undefined && !stat.isFile() && !stat.isDirectory()
    if (stream && before) throw new Error(`${doing}: open ${file}: is not a regular file`)
    if (stat?.isFile() && stat.size > limits.fileLength)
      throw new Error(`${doing}: ${file}: file is too long: ${stat.size} > ${limits.fileLength} octets`)
    const text = readFile(file, doing)
    if (stream) piped = text
    before = true
    return text
  }
}

function readFile(file: string, doing: string): string {
  try {
    return fs.readFileSync(path.normalize(file), 'utf8')
  } catch (cause) {
    throw new Error(`${doing}: open ${file}: ${reasonOf(cause as NodeJS.ErrnoException)}`, { cause })
  }
}

/** Why a file can't be read, in the system's words. */
export const reasonOf = ({ code, message }: NodeJS.ErrnoException): string => REASONS[code ?? ''] ?? message

export interface LoadOptions {
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Default port of dns:// keys. */
  readonly port: string
  readonly plugins: readonly PluginEntry[]
  /** A file without blocks is an error, not CoreDNS's default. */
  readonly needsBlock?: boolean
  /** See ParseOptions. */
  readonly missingImport?: (pattern: string, at: Position) => boolean
}

/** As the parser takes it: not there rather than undefined. */
export const envOf = ({ env }: { readonly env?: LoadOptions['env'] | undefined }): Pick<LoadOptions, 'env'> =>
  env === undefined ? {} : { env }

/** Text to a tree whose directives are all known and built. Throws CorefileError. A file without blocks is CoreDNS's default, unless that is ruled out. */
export function loadConfig(text: string, file: string, { env, port, plugins, needsBlock, missingImport }: LoadOptions): Corefile {
  const directives = [...plugins.map(({ directive }) => directive), ...RENAMED.keys()]
  const options = { directives, ...envOf({ env }), ...(missingImport === undefined ? {} : { missingImport }) }
  let tree = parseCorefile(text, file, options)
  if (tree.blocks.length === 0 && needsBlock === true) throw new Error(`${file}: no server block in it`)
  if (tree.blocks.length === 0) tree = { ...parseCorefile(defaultCorefile(port), file, options), sources: tree.sources }
  const renamed = rename(tree)
  checkBuilt(renamed, plugins)
  return renamed
}

function rename(tree: Corefile): Corefile {
  const warnings = [...tree.warnings]
  const change = (directive: Directive): Directive => {
    const now = RENAMED.get(directive.name)
    if (now === undefined) return directive
    const line = [now.to, ...directive.args.map(({ text }) => text)].join(' ')
    const message = `directive '${directive.name}' was removed in CoreDNS ${now.since} and is read as '${now.to}'; write '${line}'`
    warnings.push({ message, pos: directive.pos })
    return { ...directive, name: now.to, formerName: directive.name }
  }
  const blocks = tree.blocks.map((block): ServerBlock => ({ ...block, directives: block.directives.map(change) }))
  return { ...tree, blocks, warnings }
}

function checkBuilt({ blocks }: Corefile, plugins: readonly PluginEntry[]): void {
  const missing = new Set(plugins.filter(({ specifier }) => specifier === undefined).map(({ directive }) => directive))
  for (const { directives } of blocks) {
    for (const { name, pos } of directives) if (missing.has(name)) throw new CorefileError(notBuilt(name), pos)
  }
}

/** SHA-512 of what the Corefile says: keys, directives and arguments without their places, so that comments and blanks change nothing. */
export function configHash({ blocks }: Corefile): string {
  const plain = (directive: Directive): unknown => [
    directive.name,
    directive.args.map(({ text }) => text),
    directive.block?.map(plain) ?? null,
  ]
  const parsed = blocks.map(({ keys, directives }) => [
    keys.map(({ zone, transport, port }) => [zone, transport, port]),
    directives.map(plain),
  ])
  return createHash('sha512').update(JSON.stringify(parsed)).digest('hex')
}
