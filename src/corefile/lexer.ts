/**
 * Text to tokens, by the rules of the Corefile grammar: words divided by white space, double quotes with `\"` as their only escape,
 * `#` to the end of the line. Nothing here knows a brace from a word.
 */
import { CorefileError, type Position } from './tree.js'

/** A word of the file. `endLine` differs from `pos.line` only for a quoted text that spans lines. */
export interface Token {
  readonly text: string
  readonly pos: Position
  readonly endLine: number
  /** A quoted text that the end of the file cut off: an error once it is read, so that errors come in the order of the file. */
  readonly unclosed?: true
}

export type Warn = (message: string, pos: Position) => void

/** Bounds on input, each far above what a real Corefile holds; what exceeds one is a CorefileError. */
export const limits = {
  /** UTF-16 code units of one file. */
  fileLength: 8 * 1024 * 1024,
  /** UTF-16 code units of one token, environment variables filled in. */
  tokenLength: 64 * 1024,
  /** Tokens of the whole configuration once every import has been carried out. */
  tokens: 2_000_000,
  /** Zones of all server blocks, those that CIDR keys stand for counted one by one. */
  zones: 100_000,
  /** Blocks inside blocks. */
  depth: 64,
  /** Snippets and files imported during one parse: CoreDNS's own numbers. */
  snippetExpansions: 10_000,
  fileExpansions: 100_000,
} as const

/** Splits `text` into tokens. Throws CorefileError for input over a limit. */
export function lex(text: string, file: string, warn: Warn): Token[] {
  if (text.length > limits.fileLength) {
    throw new CorefileError(`file is too long: ${text.length} > ${limits.fileLength} characters`, { file, line: 1, column: 1 })
  }
  return new Lexer(text, file, warn).run()
}

/** Go's unicode.IsSpace: it lacks U+FEFF, which JavaScript's `\s` has, and has U+0085, which `\s` lacks. */
export const SPACE = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/

const NEWLINE = 10
const CARRIAGE_RETURN = 13
const QUOTE = 34
const HASH = 35
const BACKSLASH = 92

function isSpace(code: number): boolean {
  if (code < 128) return code === 32 || (code >= 9 && code <= 13)
  return SPACE.test(String.fromCharCode(code))
}

class Lexer {
  private readonly text: string
  private readonly file: string
  private readonly warn: Warn
  private at: number
  private line = 1
  private lineStart: number
  private readonly tokens: Token[] = []

  constructor(text: string, file: string, warn: Warn) {
    this.text = text
    this.file = file
    this.warn = warn
    this.at = text.charCodeAt(0) === 0xfeff ? 1 : 0 // byte order mark
    this.lineStart = this.at
  }

  run(): Token[] {
    while (this.at < this.text.length) {
      const code = this.text.charCodeAt(this.at)
      if (code === NEWLINE) this.newline()
      else if (isSpace(code)) this.at++
      else if (code === HASH) this.skipLine()
      else if (code === QUOTE) this.quoted()
      else this.word()
    }
    return this.tokens
  }

  private newline(): void {
    this.at++
    this.line++
    this.lineStart = this.at
  }

  private skipLine(): void {
    const end = this.text.indexOf('\n', this.at)
    this.at = end < 0 ? this.text.length : end
  }

  private position(): Position {
    return { file: this.file, line: this.line, column: this.at - this.lineStart + 1 }
  }

  /** A quoted text may span lines. A backslash before anything but a quote stays. */
  private quoted(): void {
    const pos = this.position()
    let out = ''
    let from = ++this.at
    for (; this.at < this.text.length; this.at++) {
      let code = this.text.charCodeAt(this.at)
      if (code === QUOTE) {
        out += this.text.slice(from, this.at++)
        this.push(out, pos)
        return
      }
      if (code === BACKSLASH) {
        code = this.text.charCodeAt(++this.at)
        if (code === QUOTE) {
          out += this.text.slice(from, this.at - 1)
          from = this.at
        }
      }
      if (code === NEWLINE) {
        this.line++
        this.lineStart = this.at + 1
      }
      if (this.at - from > limits.tokenLength) break
    }
    this.push(out + this.text.slice(from, this.at), pos, true)
  }

  private word(): void {
    const pos = this.position()
    const start = this.at
    let end = -1
    for (; this.at < this.text.length; this.at++) {
      const code = this.text.charCodeAt(this.at)
      if (isSpace(code) && code !== CARRIAGE_RETURN) break
      if (code === HASH && end < 0) end = this.at
    }
    const text = this.text.slice(start, end < 0 ? this.at : end)
    this.push(text.includes('\r') ? text.replaceAll('\r', '') : text, pos)
    if (end >= 0) this.checkComment(pos)
    if (/^[`\u201c\u201d]/.test(text)) this.warn(`'${text[0]}' is a plain character, only double quotes (") quote`, pos)
  }

  /** A `#` inside a word hides the rest of that word only; CoreDNS reads on after the next blank. */
  private checkComment(pos: Position): void {
    let at = this.at
    while (at < this.text.length && this.text.charCodeAt(at) !== NEWLINE && isSpace(this.text.charCodeAt(at))) at++
    const next = this.text[at]
    if (next !== undefined && next !== '\n' && next !== '#') {
      this.warn("'#' inside a word hides only the rest of that word, what follows on the line is read: put a blank before the '#'", pos)
    }
  }

  private push(text: string, pos: Position, unclosed = false): void {
    if (text.length > limits.tokenLength) {
      throw new CorefileError(`token is too long: ${text.length} > ${limits.tokenLength} characters`, pos)
    }
    if (this.tokens.length >= limits.tokens) throw new CorefileError(`more than ${limits.tokens} tokens`, pos)
    this.tokens.push(unclosed ? { text, pos, endLine: this.line, unclosed } : { text, pos, endLine: this.line })
  }
}
