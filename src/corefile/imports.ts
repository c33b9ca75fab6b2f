/** Files that `import` names: paths relative to the importing file, one wildcard, each file read and lexed once. */
import { lstatSync, readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { lex, limits, type Token, type Warn } from './lexer.js'
import { CorefileError, type Position } from './tree.js'

export interface Source {
  readonly file: string
  readonly text: string
}

/** Reads the files of one parse. `sources` lists them in the order in which they were first read. */
export class Importer {
  readonly sources: Source[] = []
  private readonly lexed = new Map<string, Token[]>()
  private readonly warn: Warn
  private readonly read: (file: string) => string
  private readonly missing: (pattern: string, at: Position) => boolean
  private length = 0

  constructor(warn: Warn, read: ((file: string) => string) | undefined, missing?: (pattern: string, at: Position) => boolean) {
    this.warn = warn
    this.read = read ?? readRegularFile
    this.missing = missing ?? (() => false)
  }

  add(file: string, text: string): Token[] {
    this.length += text.length
    this.sources.push({ file, text })
    return lex(text, file, this.warn)
  }

  /** The tokens of every file that `pattern`, written at `at`, stands for. */
  tokens(pattern: string, at: Token): readonly Token[] {
    const full = path.isAbsolute(pattern) ? pattern : path.join(path.dirname(path.resolve(at.pos.file)), pattern)
    if (count(full, '*') > 1 || count(full, '?') > 1 || (full.includes('[') && full.includes(']'))) {
      throw new CorefileError(`Glob pattern may only contain one wildcard (*), but has others: ${full}`, at.pos, pattern)
    }
    if (full.includes('[') || full.endsWith('\\')) {
      throw new CorefileError(`Failed to use import pattern ${pattern}: syntax error in pattern`, at.pos, pattern)
    }
    const wild = /[*?\]]/.test(full)
    const files = /[*?\\]/.test(full) ? glob(full) : [full]
    if (files.length === 0) {
      if (!wild) throw new CorefileError(`File to import not found: ${pattern}`, at.pos, pattern)
      this.warn(`No files matching import glob pattern: ${pattern}`, at.pos)
    }
    const [only] = files
    if (files.length === 1 && only !== undefined) return this.file(path.resolve(only), pattern, at)
    return files.flatMap((file) => this.file(path.resolve(file), pattern, at))
  }

  private file(file: string, pattern: string, at: Token): Token[] {
    const known = this.lexed.get(file)
    if (known !== undefined) return known
    let text: string
    try {
      text = this.read(file)
    } catch (error) {
      const code = (error as NodeJS.ErrnoException | undefined)?.code
      const absent = code === 'ENOENT' || code === 'ENOTDIR'
      if (absent && this.missing(pattern, at.pos)) return []
      if (absent) throw new CorefileError(`File to import not found: ${pattern}`, at.pos, pattern)
      throw new CorefileError(`Could not import ${file}: ${reason(error, file)}`, at.pos, pattern)
    }
    if (this.length + text.length > 4 * limits.fileLength) {
      throw new CorefileError(`Could not import ${file}: imported files are too long together`, at.pos, pattern)
    }
    const tokens = this.add(file, text)
    this.lexed.set(file, tokens)
    return tokens
  }
}

function reason(error: unknown, file: string): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'EISDIR') return 'is a directory'
  if (code === 'EACCES') return `open ${file}: permission denied`
  return message
}

/** A pipe or a device could hang the start or never end. */
function readRegularFile(file: string): string {
  const stat = statSync(file)
  if (stat.isDirectory()) throw Object.assign(new Error('is a directory'), { code: 'EISDIR' })
  if (!stat.isFile()) throw new Error('is not a regular file')
  if (stat.size > 4 * limits.fileLength) throw new Error(`file is too long: ${stat.size} bytes`)
  return readFileSync(file, 'utf8')
}

function count(text: string, part: string): number {
  return text.split(part).length - 1
}

/** Existing paths for an absolute pattern, sorted; `*` and `?` match no slash but do match a leading dot, as Go's filepath.Glob. */
function glob(pattern: string): string[] {
  let found = ['/']
  for (const segment of pattern.split('/').filter((part) => part !== '')) {
    const wild = /(^|[^\\])[*?]/.test(segment)
    const plain = segment.replace(/\\(.)/g, '$1')
    found = wild ? found.flatMap((folder) => matches(folder, segment)) : found.map((folder) => path.join(folder, plain))
  }
  return found.filter(exists)
}

function matches(folder: string, segment: string): string[] {
  const source = segment.replace(/\\?./gs, (part) => (part === '*' ? '.*' : part === '?' ? '.' : literal(part.at(-1) ?? '')))
  const test = new RegExp(`^${source}$`, 'su')
  let names: string[]
  try {
    names = readdirSync(folder)
  } catch {
    return [] // an unreadable or absent folder matches nothing, as in CoreDNS
  }
  return names
    .filter((name) => test.test(name))
    .sort()
    .map((name) => path.join(folder, name))
}

function literal(character: string): string {
  return character.replace(/[\\^$.*+?()[\]{}|/]/, '\\$&')
}

function exists(file: string): boolean {
  try {
    return lstatSync(file, { throwIfNoEntry: false }) !== undefined
  } catch {
    return false // what cannot be looked at is no match either
  }
}
