/** Tokens to server blocks: keys, braces, snippets and imports, with CoreDNS's own words for what is wrong. */
import { type BodyToken, shape } from './body.js'
import { type Env, expandEnv } from './env.js'
import { Importer } from './imports.js'
import { zoneKeys } from './keys.js'
import { limits, type Token } from './lexer.js'
import { TokenStream } from './stream.js'
import {
  type Argument,
  type Corefile,
  CorefileError,
  type Directive,
  nearest,
  type Position,
  type ServerBlock,
  type ZoneKey,
} from './tree.js'

export interface ParseOptions {
  /** Values for `{$NAME}` and `{%NAME%}`; the process's environment if not given. */
  readonly env?: Env
  /** Reads an imported file, given its absolute path. From the disk if not given. */
  readonly readFile?: (path: string) => string
  /** Known directives; any other is an error. All names pass if not given. */
  readonly directives?: readonly string[]
  /** An import of a file that is not there: true lets it pass as an empty one. An error if not given. */
  readonly missingImport?: (pattern: string, at: Position) => boolean
}

/**
 * Parses a Corefile. `file` is the name that errors carry and that relative imports start from. No keys at all (an empty file) is
 * no error: `blocks` is then empty, and CoreDNS serves its default. Throws CorefileError and nothing else.
 */
export function parseCorefile(text: string, file: string, options: ParseOptions = {}): Corefile {
  return new Parser(text, file, options).run()
}

/** A block whose keys are still words: CoreDNS looks at them only once the whole file has been read. */
interface RawBlock {
  readonly keys: readonly Argument[]
  readonly directives: readonly Directive[]
}

class Parser {
  private readonly file: string
  private readonly env: Env
  private readonly known: ReadonlySet<string> | undefined
  private readonly importer: Importer
  private readonly stream: TokenStream
  private readonly warnings: { readonly message: string; readonly pos: Position }[] = []
  private readonly snippets = new Map<string, readonly Token[]>()
  private snippetExpansions = 0
  private fileExpansions = 0
  private consumed = 0
  private zoneCount = 0

  constructor(text: string, file: string, options: ParseOptions) {
    this.file = file
    this.env = options.env ?? process.env
    this.known = options.directives && new Set(options.directives)
    this.importer = new Importer(this.warn, options.readFile, options.missingImport)
    this.stream = new TokenStream(this.importer.add(file, text))
  }

  run(): Corefile {
    const raw: RawBlock[] = []
    while (this.stream.peek() !== undefined) {
      const block = this.block()
      if (block !== undefined) raw.push(block)
    }
    const blocks = raw.map(({ keys, directives }): ServerBlock => ({ keys: this.zones(keys), directives, pos: keys[0]!.pos }))
    return { file: this.file, blocks, sources: this.importer.sources, warnings: this.warnings }
  }

  private zones(keys: readonly Argument[]): ZoneKey[] {
    const all: ZoneKey[] = []
    for (const key of keys) {
      const zones = zoneKeys(key, this.warn)
      this.zoneCount += zones.length
      if (this.zoneCount > limits.zones) throw new CorefileError(`more than ${limits.zones} zones`, key.pos, key.text)
      all.push(...zones)
    }
    return all
  }

  private readonly warn = (message: string, pos: Position): void => {
    if (this.warnings.length < 1000) this.warnings.push({ message, pos })
  }

  private block(): RawBlock | undefined {
    const opening = this.stream.peek()
    const keys = this.keys()
    const start = this.stream.peek()
    if (start === undefined) return keys.length === 0 ? undefined : { keys, directives: [] }
    const [key] = keys
    if (keys.length === 1 && key !== undefined && key.text.length > 1 && key.text.startsWith('(') && key.text.endsWith(')')) {
      this.defineSnippet(key.text.slice(1, -1), start)
      return undefined
    }
    const directives = this.contents(start)
    if (keys.length > 0) return { keys, directives }
    this.warn('server block without a key is ignored', opening?.pos ?? start.pos)
    return undefined
  }

  /** Reads keys up to the brace or, without a brace, to the end of their line. A comma at a word's end carries on over lines. */
  private keys(): Argument[] {
    const keys: Argument[] = []
    let comma = false
    let first = true
    for (let token = this.stream.peek(); token !== undefined; token = this.stream.peek()) {
      const startsLine = this.stream.peekStartsLine()
      if (!first && !comma && startsLine) return keys
      const text = expandEnv(token, this.env)
      if (text === 'import' && startsLine) {
        this.import()
        // What is imported here stands where the import stood: on the key's line, if it was on one.
        first = true
        continue
      }
      if (text === '{') {
        if (comma) throw new CorefileError(`Expected another address but had '${text}' - check for extra comma`, token.pos, text)
        return keys
      }
      this.advance()
      first = false
      if (text === '') continue
      comma = text.endsWith(',')
      keys.push({ text: comma ? text.slice(0, -1) : text, pos: token.pos })
    }
    if (comma) throw this.error('Unexpected EOF')
    return keys
  }

  /** Directives in braces or, for a single server, without. `start` is the token that comes next. */
  private contents(start: Token): Directive[] {
    const braces = start.text === '{'
    if (braces) this.advance()
    const directives: Directive[] = []
    for (let token = this.stream.peek(); token !== undefined; token = this.stream.peek()) {
      if (token.text === '}') {
        this.advance()
        return directives
      }
      if (token.text === 'import') this.import()
      else directives.push(this.directive(token))
    }
    if (!braces) return directives
    const last = this.stream.current
    if (last?.text !== '}') throw this.syntaxError('}')
    // CoreDNS, too, takes the brace that ended the last directive's own block for the missing one.
    this.warn("the last server block lacks its closing '}'", last.pos)
    return directives
  }

  private directive(first: Token): Directive {
    const name = expandEnv(first, this.env)
    if (this.known !== undefined && !this.known.has(name)) {
      throw new CorefileError(`Unknown directive '${name}'`, first.pos, name, nearest(name, this.known))
    }
    this.advance()
    const tokens: BodyToken[] = [{ text: name, pos: first.pos, startsLine: true }]
    let nesting = 0
    for (let token = this.stream.peek(); token !== undefined; token = this.stream.peek()) {
      const startsLine = this.stream.peekStartsLine()
      if (token.text === '{') nesting++
      else if (startsLine && nesting === 0) break
      else if (token.text === '}' && nesting-- === 0) {
        throw new CorefileError("Unexpected '}' because no matching opening brace", token.pos, '}')
      } else if (token.text === 'import' && startsLine) {
        this.import()
        continue
      }
      this.advance()
      const text = expandEnv(token, this.env)
      if (text !== token.text) this.stream.current = { ...token, text } // errors name the word as it was understood
      tokens.push({ text, pos: token.pos, startsLine })
    }
    if (nesting > 0) throw this.error('Unexpected EOF')
    return shape(tokens, this.warn)
  }

  /** Keeps a snippet's tokens for later. Its name has been read, `start` is what follows. */
  private defineSnippet(name: string, start: Token): void {
    if (this.snippets.has(name)) {
      throw new CorefileError(`redeclaration of previously declared snippet ${name}`, start.pos)
    }
    if (start.text !== '{') throw this.syntaxError('{', start)
    this.advance()
    const tokens: Token[] = []
    for (let depth = 1; ; ) {
      const token = this.advance()
      if (token === undefined) throw this.syntaxError('}')
      if (token.text === '{') depth++
      if (token.text === '}' && --depth === 0) break
      tokens.push(token)
    }
    if (tokens.some((token, at) => this.importsSelf(name, tokens, token, at))) throw this.error(snippetDepth)
    this.snippets.set(name, tokens)
  }

  private importsSelf(name: string, tokens: readonly Token[], token: Token, at: number): boolean {
    const target = tokens[at + 1]
    if (token.text !== 'import' || target === undefined) return false
    const before = tokens[at - 1]
    const startsLine = before === undefined || before.pos.file !== token.pos.file || before.pos.line !== token.pos.line
    return startsLine && expandEnv(target, this.env) === name
  }

  /** Replaces an import statement, which comes next, by what it names. */
  private import(): void {
    const before = this.stream.current
    const word = this.advance()!
    const target = this.stream.peek()
    if (target === undefined || this.stream.peekStartsLine()) {
      throw new CorefileError(`Wrong argument count or unexpected line ending after '${word.text}'`, word.pos, word.text)
    }
    this.advance()
    const pattern = expandEnv(target, this.env)
    if (pattern === '') throw new CorefileError('Import requires a non-empty filepath', target.pos)
    const extra = this.stream.peek()
    if (extra !== undefined && !this.stream.peekStartsLine()) {
      throw new CorefileError('Import takes only one argument (glob pattern or file)', extra.pos, extra.text)
    }
    const tokens = this.snippetTokens(pattern) ?? this.fileTokens(pattern, target)
    this.stream.push(tokens)
    this.stream.rewindTo(before)
  }

  private snippetTokens(name: string): readonly Token[] | undefined {
    const tokens = this.snippets.get(name)
    if (tokens !== undefined && this.snippetExpansions++ >= limits.snippetExpansions) throw this.error(snippetDepth)
    return tokens
  }

  private fileTokens(pattern: string, at: Token): readonly Token[] {
    // CoreDNS prints its other limit in this message, and so do we.
    if (this.fileExpansions++ >= limits.fileExpansions) {
      throw this.error(`maximum file import depth (${limits.snippetExpansions}) exceeded`)
    }
    return this.importer.tokens(pattern, at)
  }

  private advance(): Token | undefined {
    const token = this.stream.next()
    if (token?.unclosed) throw new CorefileError('Unexpected EOF, quoted string is not closed', token.pos, token.text)
    if (++this.consumed > limits.tokens) throw this.error(`more than ${limits.tokens} tokens after all imports`)
    return token
  }

  /** An error at the token read last. */
  private error(message: string): CorefileError {
    const token = this.stream.current
    return new CorefileError(message, token?.pos ?? { file: this.file, line: 0, column: 0 }, token?.text)
  }

  private syntaxError(expected: string, at: Token | undefined = this.stream.current): CorefileError {
    const text = at === undefined ? '' : at.text
    const pos = at?.pos ?? { file: this.file, line: 0, column: 0 }
    return new CorefileError(`Unexpected token '${text}', expecting '${expected}'`, pos, text, undefined, 'Syntax error')
  }
}

const snippetDepth = `maximum snippet import depth (${limits.snippetExpansions}) exceeded`
