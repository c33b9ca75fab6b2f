/** A tree back to text: one option a line, two blanks a level, quotes only where they are needed. */
import { SPACE } from './lexer.js'
import type { Corefile, Directive, ServerBlock } from './tree.js'

/**
 * Text that parses to the same tree, positions aside. Imports and environment variables stay filled in. A word that came out of a
 * variable and that no quoting can carry (a brace alone, `import` at a line's start, a backslash before a quote) is printed as it is.
 */
export function printCorefile(corefile: Pick<Corefile, 'blocks'>): string {
  const text = corefile.blocks.map(printBlock).join('\n')
  return text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK + text : text // the first one is not read as text
}

const BYTE_ORDER_MARK = '\ufeff'

/** One directive, indented by `depth` levels, with a final line break. */
export function printDirective(directive: Directive, depth = 0): string {
  return new Printer().directive(directive, depth)
}

function printBlock(block: ServerBlock): string {
  const words: string[] = []
  let last: string | undefined
  for (const key of block.keys) {
    // The reverse zones of one prefix come from one word.
    const id = `${key.pos.file}:${key.pos.line}:${key.pos.column}:${key.text}`
    if (id !== last) words.push(key.text)
    last = id
  }
  const spelled = words.map((text, at) => word(at < words.length - 1 ? `${text},` : text)).join(' ')
  // An empty word counts for nothing, but behind it "import" is a key and no statement.
  const keys = /^import( |$)/.test(spelled) ? `"" ${spelled}` : spelled
  // A lone "(name)" is a key only where no brace follows.
  if (block.directives.length === 0 && /^\(.*\)$/s.test(keys)) return `${keys}\n`
  const printer = new Printer()
  return `${keys} {\n${block.directives.map((directive) => printer.directive(directive, 1)).join('')}}\n`
}

class Printer {
  /** Braces that an argument has closed already. */
  private closed = 0

  directive(directive: Directive, depth: number): string {
    const indent = '  '.repeat(depth)
    return `${indent}${this.line(directive, depth)}\n`
  }

  private line(directive: Directive, depth: number): string {
    this.closed += directive.args.filter((arg) => arg.text === '}').length
    const head = [directive.name, ...directive.args.map((arg) => arg.text)].map(word).join(' ')
    if (directive.block === undefined) return head
    return `${head} {${this.body(directive.block, depth)}`
  }

  private body(options: readonly Directive[], depth: number): string {
    const indent = '  '.repeat(depth)
    // At the start of a line the word "import" would be a statement.
    const text = options.map((option) => {
      const lead = option.name === 'import' ? ' ' : `\n${indent}  `
      return `${lead}${this.line(option, depth + 1)}`
    })
    if (this.closed === 0) return `${text.join('')}\n${indent}}`
    this.closed--
    return text.join('')
  }
}

function word(text: string): string {
  const plain = text !== '' && !SPACE.test(text) && !text.includes('#') && !text.startsWith('"')
  return plain ? text : `"${text.replaceAll('"', '\\"')}"`
}
