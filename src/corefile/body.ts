/** The tokens of one directive, made into its arguments and nested options. */
import { limits } from './lexer.js'
import { type Argument, CorefileError, type Directive, type Position } from './tree.js'

/** A token of a directive, environment variables filled in. */
export interface BodyToken extends Argument {
  /** Whether it is the first of its line. */
  readonly startsLine: boolean
}

/** `tokens` begins with the directive's own name and, unless a brace was read as an argument, has balanced braces. */
export function shape(tokens: readonly BodyToken[], warn: (message: string, pos: Position) => void): Directive {
  const shaper = new Shaper(tokens, warn)
  const directive = shaper.line(0)
  shaper.end(directive)
  return directive
}

class Shaper {
  private at = 0
  private readonly tokens: readonly BodyToken[]
  private readonly warn: (message: string, pos: Position) => void

  constructor(tokens: readonly BodyToken[], warn: (message: string, pos: Position) => void) {
    this.tokens = tokens
    this.warn = warn
  }

  /** A name, the rest of its line and, if a brace ends that, a body. */
  line(depth: number): Directive {
    const name = this.tokens[this.at++]!
    const args: Argument[] = []
    for (let token = this.sameLine(); token !== undefined && token.text !== '{'; token = this.sameLine()) {
      args.push({ text: token.text, pos: token.pos })
      this.at++
      // CoreDNS's plugins take a '}' that is not the first of its line as one more argument, so a body on one line rarely works there.
      if (token.text === '}')
        this.warn(`'}' on the line of '${name.text}' is read as its argument too: put it on a line of its own`, token.pos)
    }
    const block = this.sameLine() === undefined ? undefined : this.body(depth + 1)
    return { name: name.text, args, block, pos: name.pos }
  }

  /** What cannot belong to the directive any more: CoreDNS hands it to the plugin, which trips over it. */
  end(owner: Directive): void {
    const token = this.tokens[this.at]
    if (token === undefined) return
    const where = token.text === '{' ? `, it must stand on the line of '${owner.name}'` : ` after the block of '${owner.name}'`
    throw new CorefileError(`Unexpected token '${token.text}'${where}`, token.pos, token.text)
  }

  private sameLine(): BodyToken | undefined {
    const token = this.tokens[this.at]
    return token?.startsLine === false ? token : undefined
  }

  private body(depth: number): Directive[] {
    const open = this.tokens[this.at++]!
    if (depth > limits.depth) throw new CorefileError(`maximum nesting depth (${limits.depth}) exceeded`, open.pos, '{')
    const options: Directive[] = []
    for (let token = this.tokens[this.at]; token !== undefined; token = this.tokens[this.at]) {
      if (token.text === '}') {
        this.at++
        break
      }
      if (token.text === '{') throw new CorefileError("Unexpected token '{', expecting argument", token.pos, '{')
      const option = this.line(depth)
      options.push(option)
      const after = this.sameLine()
      if (after !== undefined && after.text !== '}') this.end(option)
    }
    return options
  }
}
