/**
 * Text templates in the syntax of Go's text/template, as far as answers need it: fields, pipelines, calls, if/else, comments and trim
 * markers. Loops, variables and nested templates are refused when the Corefile is read.
 */
import { FUNCTIONS, type Func, format, truth, type Value } from './functions.js'

/** Fields by name; a Map's missing key is the empty string. */
export type Data = ReadonlyMap<string, Value>
export type Template = (data: Data) => string

type Operand = (data: Data) => Value
type Node = (data: Data) => string

interface Token {
  readonly kind: 'field' | 'string' | 'number' | 'word' | 'mark'
  readonly text: string
}

/** Throws Error with what is wrong, in Go's words where there are such. */
export function compileTemplate(name: string, text: string): Template {
  const pieces = split(name, text)
  const { nodes, at } = block(name, pieces, 0, 0)
  if (at < pieces.length) throw failure(name, `unexpected {{${pieces[at]!.text}}}`)
  return (data) => run(nodes, data)
}

const run = (nodes: readonly Node[], data: Data): string => {
  let text = ''
  for (const node of nodes) text += node(data)
  return text
}

const failure = (name: string, what: string): Error => new Error(`template: ${name}:1: ${what}`)

interface Piece {
  readonly action: boolean
  readonly text: string
}

/** Text and actions in turn; `{{- ` and ` -}}` have eaten the space around them, comments are gone. */
function split(name: string, text: string): Piece[] {
  const pieces: Piece[] = []
  let rest = text
  let trim = false
  for (;;) {
    const open = rest.indexOf('{{')
    const plain = open < 0 ? rest : rest.slice(0, open)
    const left = open >= 0 && /^\{\{-\s/.test(rest.slice(open))
    let shown = trim ? plain.trimStart() : plain
    if (left) shown = shown.trimEnd()
    if (shown !== '') pieces.push({ action: false, text: shown })
    if (open < 0) return pieces
    const body = /^\{\{(?:-\s)?((?:"(?:\\.|[^"\\])*"|`[^`]*`|\/\*.*?\*\/|(?!\}\}).)*?)(\s-)?\}\}/s.exec(rest.slice(open))
    if (body === null) throw failure(name, 'unclosed action')
    trim = body[2] !== undefined
    rest = rest.slice(open + body[0].length)
    const action = body[1]!.trim()
    if (!action.startsWith('/*')) pieces.push({ action: true, text: action })
  }
}

/** Nodes up to the end, or to the `else` or `end` of the block that began outside. */
function block(name: string, pieces: readonly Piece[], start: number, depth: number): { nodes: Node[]; at: number } {
  if (depth > 20) throw failure(name, 'too deeply nested')
  const nodes: Node[] = []
  let at = start
  while (at < pieces.length) {
    const piece = pieces[at]!
    if (!piece.action) nodes.push(() => piece.text)
    else if (/^(else|end)\b/.test(piece.text)) break
    else if (/^if\b/.test(piece.text)) {
      const branch = condition(name, pieces, at, piece.text.slice(2), depth)
      nodes.push(branch.node)
      at = branch.at
    } else if (/^(range|with|define|template|block|break|continue)\b|^\$/.test(piece.text))
      throw failure(name, `'${piece.text.split(/\s/)[0]}' is known, but not built yet`)
    else {
      const value = pipeline(name, tokens(name, piece.text))
      nodes.push((data) => format(value(data)))
    }
    at++
  }
  return { nodes, at }
}

/** From `if` to its `end`; `at` is the place of that. */
function condition(name: string, pieces: readonly Piece[], start: number, test: string, depth: number): { node: Node; at: number } {
  const value = pipeline(name, tokens(name, test))
  const then = block(name, pieces, start + 1, depth + 1)
  let otherwise: readonly Node[] = []
  let at = then.at
  const closing = pieces[at]?.text
  if (closing !== undefined && /^else\s+if\b/.test(closing)) {
    const next = condition(name, pieces, at, closing.replace(/^else\s+if/, ''), depth + 1)
    otherwise = [next.node]
    at = next.at
  } else if (closing === 'else') {
    const rest = block(name, pieces, at + 1, depth + 1)
    otherwise = rest.nodes
    at = rest.at
  }
  if (pieces[at]?.text !== 'end') throw failure(name, 'unexpected EOF')
  return { node: (data) => run(truth(value(data)) ? then.nodes : otherwise, data), at }
}

const TOKEN = /\s*(?:(\.[A-Za-z_0-9]*(?:\.[A-Za-z_0-9]+)*)|("(?:\\.|[^"\\])*"|`[^`]*`)|(-?\d+)|([A-Za-z_]\w*)|([|()]))/y

function tokens(name: string, text: string): Token[] {
  const found: Token[] = []
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < text.trimEnd().length) {
    const at = TOKEN.lastIndex
    const match = TOKEN.exec(text)
    if (match === null) throw failure(name, `unexpected ${JSON.stringify(text.slice(at).trim()[0])} in operand`)
    const kinds = ['field', 'string', 'number', 'word', 'mark'] as const
    const index = match.slice(1).findIndex((part) => part !== undefined)
    found.push({ kind: kinds[index]!, text: match[index + 1]! })
  }
  return found
}

/** Commands joined by `|`: the value of each is the last argument of the next. */
function pipeline(name: string, list: Token[]): Operand {
  let value: Operand | undefined
  while (true) {
    value = command(name, list, value)
    const next = list.shift()
    if (next === undefined) return value
    if (next.text === ')') {
      list.unshift(next)
      return value
    }
  }
}

function command(name: string, list: Token[], piped: Operand | undefined): Operand {
  const first = list.shift()
  if (first === undefined) throw failure(name, 'missing value for command')
  const args: Operand[] = []
  const func = first.kind === 'word' && !LITERALS.has(first.text) ? functionOf(name, first.text) : undefined
  const method = first.kind === 'field' && first.text === '.Meta'
  const head = func === undefined ? operand(name, first, list) : undefined
  while (list[0] !== undefined && list[0].text !== '|' && list[0].text !== ')') {
    const token = list.shift()!
    const inner = token.kind === 'word' && !LITERALS.has(token.text) ? functionOf(name, token.text) : undefined
    args.push(inner === undefined ? operand(name, token, list) : (data) => inner([], data))
  }
  if (piped !== undefined) args.push(piped)
  if (func !== undefined)
    return (data) =>
      func(
        args.map((arg) => arg(data)),
        data,
      )
  if (method)
    return (data) =>
      FUNCTIONS.Meta!(
        args.map((arg) => arg(data)),
        data,
      )
  if (args.length > 0) throw failure(name, `can't give argument to non-function ${first.text}`)
  return head!
}

const LITERALS: ReadonlySet<string> = new Set(['true', 'false', 'nil'])

function functionOf(name: string, word: string): Func {
  const func = word !== 'Meta' && Object.hasOwn(FUNCTIONS, word) ? FUNCTIONS[word] : undefined
  if (func === undefined) throw failure(name, `function ${JSON.stringify(word)} not defined`)
  return func
}

function operand(name: string, token: Token, list: Token[]): Operand {
  switch (token.kind) {
    case 'field':
      return field(name, token.text)
    case 'number': {
      const value = Number(token.text)
      return () => value
    }
    case 'string': {
      const value = token.text.startsWith('`') ? token.text.slice(1, -1) : unquote(name, token.text)
      return () => value
    }
    case 'word':
      return () => token.text === 'true'
    case 'mark': {
      if (token.text !== '(') throw failure(name, `unexpected ${JSON.stringify(token.text)} in command`)
      const value = pipeline(name, list)
      if (list.shift()?.text !== ')') throw failure(name, 'unclosed left paren')
      return value
    }
  }
}

function unquote(name: string, text: string): string {
  try {
    return JSON.parse(text) as string
  } catch {
    throw failure(name, `bad string ${text}`)
  }
}

function field(name: string, text: string): Operand {
  const path = text.split('.').slice(1)
  if (path[0] === '') throw failure(name, "'.' alone is not built yet")
  if (path[0] === 'Meta') return () => ''
  return (data) => {
    let value: Value = data
    for (const part of path) {
      if (!(value instanceof Map)) throw failure(name, `can't evaluate field ${part} in ${text}`)
      const next: Value | undefined = value.get(part)
      if (next === undefined && value === data) throw failure(name, `can't evaluate field ${part}`)
      value = next ?? ''
    }
    return value
  }
}
