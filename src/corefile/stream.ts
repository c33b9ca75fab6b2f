/** The token stream of a parse, into which `import` puts further tokens. Knows which tokens share a line. */
import type { Token } from './lexer.js'

interface Frame {
  readonly tokens: readonly Token[]
  next: number
}

/** Imported tokens are not spliced in but read from a frame of their own: no expansion copies anything. */
export class TokenStream {
  /** The token consumed last; undefined before the first. */
  current: Token | undefined
  private currentFrame: Frame | undefined
  private frames: Frame[]

  constructor(tokens: readonly Token[]) {
    this.frames = [{ tokens, next: 0 }]
  }

  peek(): Token | undefined {
    const frame = this.top()
    return frame?.tokens[frame.next]
  }

  next(): Token | undefined {
    const frame = this.top()
    if (frame === undefined) return undefined
    this.current = frame.tokens[frame.next++]
    this.currentFrame = frame
    return this.current
  }

  /** Whether the token that comes next begins a line: it does at every border of an import, too. */
  peekStartsLine(): boolean {
    const frame = this.top()
    const token = frame?.tokens[frame.next]
    if (token === undefined || this.current === undefined) return true
    const { pos, endLine } = this.current
    // One frame holds several files where a pattern matched several.
    return frame !== this.currentFrame || token.pos.file !== pos.file || token.pos.line > endLine
  }

  /** Reads `tokens` before anything else. */
  push(tokens: readonly Token[]): void {
    this.top() // finished frames go first, so that an import at the end of its own file does not pile up
    this.frames.push({ tokens, next: 0 })
  }

  /** Makes `token` the one consumed last again: an import statement leaves no trace. */
  rewindTo(token: Token | undefined): void {
    this.current = token
    this.currentFrame = undefined
  }

  private top(): Frame | undefined {
    let frame = this.frames.at(-1)
    while (frame !== undefined && frame.next >= frame.tokens.length) {
      this.frames.pop()
      frame = this.frames.at(-1)
    }
    return frame
  }
}
