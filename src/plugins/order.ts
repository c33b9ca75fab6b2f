/**
 * The directive order: `plugin.cfg` of the package, and the table of `--plugin-cfg` merged into it. The table's order is the order of
 * every plugin chain, whatever the order in a Corefile.
 */
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export interface TableRow {
  readonly directive: string
  /** What stands behind the colon: a built-in's folder, an npm package, or a file beginning with "./", "../" or "/". */
  readonly package: string
  /** Of our own plugin.cfg: `package` names a folder of this package. */
  readonly builtin: boolean
}

/** Folder that holds this package's package.json and plugin.cfg; found from sources and from dist. */
export function packageRoot(): string {
  let folder = path.dirname(fileURLToPath(import.meta.url))
  while (!fs.existsSync(path.join(folder, 'plugin.cfg')) || !fs.existsSync(path.join(folder, 'package.json'))) {
    const parent = path.dirname(folder)
    if (parent === folder) throw new Error('plugin.cfg is missing: the installation is incomplete')
    folder = parent
  }
  return folder
}

/** Rows of a table's text. Throws Error `file:line - …`. */
export function parseTable(text: string, file: string, builtin: boolean): TableRow[] {
  const rows: TableRow[] = []
  const seen = new Set<string>()
  for (const [index, line] of text.split('\n').entries()) {
    const row = line.replace(/#.*/, '').trim()
    if (row === '') continue
    const colon = row.indexOf(':')
    const directive = row.slice(0, colon).trim()
    const target = row.slice(colon + 1).trim()
    const where = `${file}:${index + 1} - `
    if (colon < 1 || directive === '' || target === '') throw new Error(`${where}expected directive:package, got '${row}'`)
    if (/\s/.test(directive) || /\s/.test(target)) throw new Error(`${where}a directive and its package hold no blanks: '${row}'`)
    if (seen.has(directive)) throw new Error(`${where}directive '${directive}' is listed twice`)
    seen.add(directive)
    rows.push({ directive, package: target, builtin })
  }
  return rows
}

/** The table that the package ships. */
export function builtinTable(): TableRow[] {
  const file = path.join(packageRoot(), 'plugin.cfg')
  return parseTable(fs.readFileSync(file, 'utf8'), file, true)
}

/** An entry without any known neighbour goes ahead of the first plugin that answers from data of its own. */
const FIRST_BACKEND = 'hosts'

/**
 * Merges a user's table: what it names stands in its order; what it doesn't name keeps its place; a directive of its own goes right
 * ahead of the next known one in the table, or behind the last known one. A known directive with another package is replaced.
 */
export function mergeTables(base: readonly TableRow[], user: readonly TableRow[]): TableRow[] {
  const known = new Map(base.map((row) => [row.directive, row]))
  const mine = user.map((row) => {
    const own = known.get(row.directive)
    return own !== undefined && own.package === row.package ? own : row
  })
  const ordered = mine.filter((row) => known.has(row.directive))
  const listed = new Set(ordered.map((row) => row.directive))
  const merged = base.map((row) => (listed.has(row.directive) ? ordered.shift()! : row))
  for (const [index, row] of mine.entries()) {
    if (known.has(row.directive)) continue
    const next = mine.slice(index + 1).find((r) => known.has(r.directive))?.directive
    const before = mine.slice(0, index).findLast((r) => merged.includes(r))?.directive
    merged.splice(place(merged, next, before), 0, row)
  }
  return merged
}

function place(merged: readonly TableRow[], next: string | undefined, before: string | undefined): number {
  const at = (directive: string | undefined): number => merged.findIndex((row) => row.directive === directive)
  if (next !== undefined) return at(next)
  if (before !== undefined) return at(before) + 1
  const backend = at(FIRST_BACKEND)
  return backend === -1 ? merged.length : backend
}
