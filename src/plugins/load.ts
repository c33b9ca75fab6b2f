/** From the table's rows to modules: finds built-in folders, npm packages and local files, imports them, and checks what they are. */
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { API_VERSION, type PluginModule } from './contract.js'
import { builtinTable, mergeTables, parseTable, type TableRow } from './order.js'

/** A directive and where its module is. Plain data: control posts the table to the serving threads. */
export interface PluginEntry {
  readonly directive: string
  /** Package name, file URL, or the folder of a built-in; undefined: CoreDNS has it, we not yet. */
  readonly specifier: string | undefined
  readonly builtin: boolean
}

/** Folder above src/ and plugins/ of the running code: the package's root, or its dist. */
const codeRoot = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..')
/** `.ts` when running from sources (tests), `.js` when built. */
const extension = path.extname(fileURLToPath(import.meta.url))

const BUILTIN_FOLDERS = ['src/plugins', 'plugins']

/** Go packages are in many a plugin.cfg that users bring along. */
const GO_PACKAGE = /^[a-z0-9-]+(\.[a-z0-9-]+)+\/.*\/|^github\.com\//

/**
 * The plugin table in chain order. `file` is a user's table (`--plugin-cfg`), whose packages and files are looked up from `cwd`.
 * Throws Error with a line for people.
 */
export function pluginTable(file?: string, cwd: string = process.cwd()): PluginEntry[] {
  const base = builtinTable()
  const folders = new Set(
    BUILTIN_FOLDERS.flatMap((parent) => fs.readdirSync(path.join(codeRoot, parent)).map((name) => `${parent}/${name}`)),
  )
  const builtinEntry = (row: TableRow): PluginEntry => builtin(row, folders)
  if (file === undefined) return base.map(builtinEntry)
  let text: string
  try {
    text = fs.readFileSync(path.resolve(cwd, file), 'utf8')
  } catch (cause) {
    throw new Error(`reading ${file}: ${(cause as NodeJS.ErrnoException).code === 'ENOENT' ? 'no such file' : String(cause)}`, { cause })
  }
  return mergeTables(base, parseTable(text, file, false)).map((row) => (row.builtin ? builtinEntry(row) : foreignEntry(row, file, cwd)))
}

/** `folders`: those that there are, listed once and not looked for one by one at every start. */
function builtin(row: TableRow, folders: ReadonlySet<string>): PluginEntry {
  const dashed = row.package.replaceAll('_', '-')
  const candidates = [row.package, dashed].flatMap((name) => BUILTIN_FOLDERS.map((parent) => `${parent}/${name}`))
  return { directive: row.directive, specifier: candidates.find((candidate) => folders.has(candidate)), builtin: true }
}

function foreignEntry(row: TableRow, file: string, cwd: string): PluginEntry {
  const target = row.package
  if (GO_PACKAGE.test(target))
    throw new Error(`${file}: '${target}' (directive '${row.directive}') is a Go package; plugins here are npm packages or files`)
  const found = /^\.{0,2}\//.test(target) ? localFile(target, cwd) : npmPackage(target, cwd)
  if (found === undefined) throw new Error(`${file}: plugin '${target}' of directive '${row.directive}' is not found from ${cwd}`)
  return { directive: row.directive, specifier: pathToFileURL(found).href, builtin: false }
}

function localFile(target: string, cwd: string): string | undefined {
  const base = path.resolve(cwd, target)
  return [base, path.join(base, 'index.js'), path.join(base, 'index.mjs')].find((f) => fs.statSync(f, { throwIfNoEntry: false })?.isFile())
}

/** Entry file of a package in node_modules of `cwd` or a folder above it. ESM resolution from another folder has no stable API in Node 20. */
function npmPackage(target: string, cwd: string): string | undefined {
  const [, name, sub] = /^((?:@[^/]+\/)?[^/]+)(?:\/(.+))?$/.exec(target) ?? []
  if (name === undefined) return undefined
  for (let folder = path.resolve(cwd); ; folder = path.dirname(folder)) {
    const home = path.join(folder, 'node_modules', name)
    const manifest = path.join(home, 'package.json')
    if (fs.existsSync(manifest)) return entryFile(home, JSON.parse(fs.readFileSync(manifest, 'utf8')), sub)
    if (folder === path.dirname(folder)) return undefined
  }
}

interface Manifest {
  readonly exports?: unknown
  readonly main?: string
}

function entryFile(home: string, manifest: Manifest, sub: string | undefined): string | undefined {
  const { exports, main } = manifest
  const key = sub === undefined ? '.' : `./${sub}`
  const map = typeof exports === 'object' && exports !== null ? (exports as Record<string, unknown>) : undefined
  const hasPaths = map !== undefined && Object.keys(map).some((k) => k.startsWith('.'))
  const wanted = exports === undefined ? (sub ?? main ?? 'index.js') : condition(hasPaths ? map[key] : key === '.' ? exports : undefined)
  if (wanted === undefined) return undefined
  return localFile(`./${wanted.replace(/^\.\//, '')}`, home)
}

/** The first target whose condition an ESM import under Node meets. */
function condition(target: unknown): string | undefined {
  if (typeof target === 'string') return target
  if (typeof target !== 'object' || target === null) return undefined
  for (const [name, inner] of Object.entries(target)) {
    if (name !== 'import' && name !== 'node' && name !== 'default') continue
    const found = condition(inner)
    if (found !== undefined) return found
  }
  return undefined
}

/** Imports the module of an entry. Rejects with a message for people. Node keeps modules, so asking again costs nothing. */
export async function loadModule(entry: PluginEntry): Promise<PluginModule> {
  const { directive, specifier, builtin } = entry
  if (specifier === undefined) throw new Error(notBuilt(directive))
  const url = builtin ? pathToFileURL(path.join(codeRoot, specifier, `index${extension}`)).href : specifier
  let loaded: { default?: unknown }
  try {
    loaded = (await import(url)) as { default?: unknown }
  } catch (cause) {
    throw new Error(`loading plugin '${directive}' from ${specifier}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
  return checked(loaded.default, entry)
}

/** Directives of built-in plugins with a part in the control thread: the others are not even loaded there, which saves some MB. */
const CONTROLLED: ReadonlySet<string> = new Set(['health', 'hosts', 'kubernetes', 'loadbalance', 'prometheus', 'ready', 'reload'])

/** Whether the module of an entry may have a control part. Of foreign ones nobody knows before they are loaded. */
export const mayControl = ({ directive, specifier, builtin }: PluginEntry): boolean =>
  !builtin || specifier === undefined || CONTROLLED.has(directive)

/** What a Corefile gets to read that uses a directive of CoreDNS's which is not there yet. */
export const notBuilt = (directive: string): string => `directive '${directive}' is known to CoreDNS but not built yet`

function checked(module: unknown, { directive, specifier, builtin }: PluginEntry): PluginModule {
  const of = `plugin '${directive}' (${specifier})`
  if (typeof module !== 'object' || module === null) throw new Error(`${of} has no default export`)
  const { name, apiVersion, setup } = module as Partial<PluginModule>
  if (apiVersion !== API_VERSION)
    throw new Error(`${of} is made for plugin API version ${apiVersion}; this server has version ${API_VERSION}`)
  if (typeof setup !== 'function') throw new Error(`${of} exports no setup function`)
  // A built-in may carry the package's name (directive prometheus, package metrics); a foreign one must answer to its directive.
  if (typeof name !== 'string' || (!builtin && name !== directive)) throw new Error(`${of} calls itself '${name}'`)
  return module as PluginModule
}

/** What `-plugins` prints: the built ones, one a line, with CoreDNS's prefix. */
export function listPlugins(entries: readonly PluginEntry[]): string {
  const names = entries.filter((entry) => entry.specifier !== undefined).map((entry) => entry.directive)
  return names.sort().join('\n')
}
