/**
 * Expressions over a query, for `template` and `view`: the part of the language of github.com/expr-lang/expr that Corefiles need. Types are
 * checked when the Corefile is read; what can still fail with a query (`int('x')`) throws then.
 */
import { BlockList, isIP } from 'node:net'
import { className, fullLength, typeName } from '../dns/index.js'
import { compilePattern } from './pattern.js'
import type { Query } from './query.js'

export type ExprType = 'number' | 'string' | 'bool' | 'list' | 'any'
export type ExprValue = number | string | boolean | readonly ExprValue[]

/** What an expression is worked out with. */
export interface ExprEnv {
  readonly query: Query
  readonly vars: ReadonlyMap<string, ExprValue>
  /** Group of the match, by name or number; templates only. */
  readonly group: (name: string) => string
}

export interface Expression {
  readonly type: ExprType
  run(env: ExprEnv): ExprValue
}

interface Callable {
  readonly args: readonly ExprType[]
  readonly type: ExprType
  call(args: readonly ExprValue[], env: ExprEnv): ExprValue
}

const of = (type: ExprType, look: (query: Query) => ExprValue): Callable => ({ args: [], type, call: (_, { query }) => look(query) })

/** The functions that know the query. */
const STATE: Readonly<Record<string, Callable>> = {
  type: of('string', (query) => typeName(query.type)),
  name: of('string', (query) => query.name.toLowerCase()),
  class: of('string', (query) => className(query.class)),
  proto: of('string', (query) => (query.proto === 'udp' ? 'udp' : 'tcp')),
  size: of('number', (query) => fullLength(query.message)),
  client_ip: of('string', (query) => query.peer.address),
  port: of('string', (query) => String(query.peer.port)),
  id: of('number', (query) => query.message.id),
  opcode: of('number', (query) => query.message.opcode),
  do: of('bool', (query) => query.dnssecOk),
  bufsize: of('number', (query) => query.size),
  server_ip: of('string', (query) => query.peer.localAddress),
  server_port: of('string', (query) => String(query.peer.localPort)),
  metadata: { args: ['string'], type: 'string', call: ([label], { query }) => query.metadata?.get(String(label))?.() ?? '' },
  incidr: { args: ['string', 'string'], type: 'bool', call: ([address, network]) => inNetwork(String(address), String(network)) },
}

const GROUP: Callable = { args: ['any'], type: 'string', call: ([name], { group }) => group(String(name)) }

const onText = (change: (text: string) => ExprValue, type: ExprType = 'string'): Callable => ({
  args: ['string'],
  type,
  call: ([text]) => change(String(text)),
})

const BUILT_IN: Readonly<Record<string, Callable>> = {
  int: { args: ['any'], type: 'number', call: ([value]) => toInteger(value!) },
  string: { args: ['any'], type: 'string', call: ([value]) => String(value) },
  len: { args: ['any'], type: 'number', call: ([value]) => (Array.isArray(value) ? value.length : [...String(value)].length) },
  lower: onText((text) => text.toLowerCase()),
  upper: onText((text) => text.toUpperCase()),
  trim: onText((text) => text.trim()),
  split: { args: ['string', 'string'], type: 'list', call: ([text, by]) => String(text).split(String(by)) },
  replace: {
    args: ['string', 'string', 'string'],
    type: 'string',
    call: ([text, from, to]) => String(text).replaceAll(String(from), String(to)),
  },
  hasPrefix: { args: ['string', 'string'], type: 'bool', call: ([text, part]) => String(text).startsWith(String(part)) },
  hasSuffix: { args: ['string', 'string'], type: 'bool', call: ([text, part]) => String(text).endsWith(String(part)) },
}

const KEYWORDS: ReadonlySet<string> = new Set('true false nil not and or in let if else matches contains startsWith endsWith'.split(' '))
/** Built-in functions of the language that we don't have; no variable may be called so. */
const OTHER_BUILT_IN: ReadonlySet<string> = new Set(
  `all none any one filter map count sum find findIndex findLast findLastIndex groupBy sortBy reduce abs ceil floor round float max min mean
   median toJSON fromJSON toBase64 fromBase64 now duration date timezone first last get take keys values toPairs fromPairs reverse uniq concat
   flatten sort bitand bitor bitxor bitnand bitshl bitshr bitushr bitnot type trimPrefix trimSuffix splitAfter repeat join indexOf lastIndexOf`.split(
    /\s+/,
  ),
)

export const isReserved = (name: string): boolean =>
  KEYWORDS.has(name) || OTHER_BUILT_IN.has(name) || name === 'group' || Object.hasOwn(STATE, name) || Object.hasOwn(BUILT_IN, name)

/** Throws Error saying what is wrong with the text. `vars`: types of the names that may stand in it. */
export function compileExpression(text: string, vars: ReadonlyMap<string, ExprType> = new Map(), groups = false): Expression {
  return new Parser(text, vars, groups).run()
}

const TOKEN =
  /\s*(?:(\d+(?:\.\d+)?)|('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`)|([A-Za-z_]\w*)|(==|!=|<=|>=|&&|\|\||[-+*/%<>!?:(),[\]]))/y
const MAX_DEPTH = 64

/** Binary operators, the loosest first. */
const LEVELS: readonly (readonly string[])[] = [
  ['||', 'or'],
  ['&&', 'and'],
  ['==', '!=', '<', '>', '<=', '>=', 'in', 'contains', 'startsWith', 'endsWith', 'matches'],
  ['+', '-'],
  ['*', '/', '%'],
]

class Parser {
  readonly #vars: ReadonlyMap<string, ExprType>
  readonly #groups: boolean
  readonly #tokens: string[]
  #at = 0
  #depth = 0

  constructor(text: string, vars: ReadonlyMap<string, ExprType>, groups: boolean) {
    this.#vars = vars
    this.#groups = groups
    this.#tokens = scan(text)
  }

  run(): Expression {
    const expression = this.#choice()
    if (this.#at < this.#tokens.length) throw new Error(`unexpected token ${this.#tokens[this.#at]}`)
    return expression
  }

  #take(...texts: readonly string[]): string | undefined {
    const token = this.#tokens[this.#at]
    if (token === undefined || !texts.includes(token)) return undefined
    this.#at++
    return token
  }

  #expect(text: string): void {
    if (this.#take(text) === undefined) throw new Error(`unexpected ${this.#tokens[this.#at] ?? 'end of expression'}, expected '${text}'`)
  }

  #choice(): Expression {
    if (++this.#depth > MAX_DEPTH) throw new Error('expression is too deeply nested')
    const test = this.#binary(0)
    if (this.#take('?') === undefined) {
      this.#depth--
      return test
    }
    const then = this.#choice()
    this.#expect(':')
    const otherwise = this.#choice()
    this.#depth--
    need(test, 'bool', '?')
    return {
      type: then.type === otherwise.type ? then.type : 'any',
      run: (env) => (test.run(env) === true ? then.run(env) : otherwise.run(env)),
    }
  }

  #binary(level: number): Expression {
    const operators = LEVELS[level]
    if (operators === undefined) return this.#unary()
    let left = this.#binary(level + 1)
    for (;;) {
      const negated = level === 2 && this.#tokens[this.#at] === 'not' && this.#tokens[this.#at + 1] === 'in'
      if (negated) this.#at++
      const operator = this.#take(...operators)
      if (operator === undefined) return left
      const joined = join(operator, left, this.#binary(level + 1))
      left = negated ? { type: 'bool', run: (env) => !joined.run(env) } : joined
    }
  }

  #unary(): Expression {
    const operator = this.#take('!', 'not', '-')
    if (operator === undefined) return this.#primary()
    if (++this.#depth > MAX_DEPTH) throw new Error('expression is too deeply nested')
    const value = this.#unary()
    this.#depth--
    if (operator === '-') {
      need(value, 'number', '-')
      return { type: 'number', run: (env) => -Number(value.run(env)) }
    }
    need(value, 'bool', operator)
    return { type: 'bool', run: (env) => !value.run(env) }
  }

  #primary(): Expression {
    const token = this.#tokens[this.#at++]
    if (token === undefined) throw new Error('unexpected end of expression')
    if (token === '(') {
      const inner = this.#choice()
      this.#expect(')')
      return inner
    }
    if (token === '[') return this.#list()
    if (/^\d/.test(token)) return constant('number', Number(token))
    if (/^['"`]/.test(token)) return constant('string', unquoted(token))
    if (token === 'true' || token === 'false') return constant('bool', token === 'true')
    if (!/^[A-Za-z_]/.test(token) || KEYWORDS.has(token)) throw new Error(`unexpected token ${token}`)
    return this.#take('(') === undefined ? this.#name(token) : this.#call(token)
  }

  #list(): Expression {
    const items: Expression[] = []
    while (this.#take(']') === undefined) {
      if (items.length > 0) this.#expect(',')
      items.push(this.#choice())
    }
    return { type: 'list', run: (env) => items.map((item) => item.run(env)) }
  }

  #name(name: string): Expression {
    const type = this.#vars.get(name)
    if (type === undefined) throw new Error(`unknown name ${name}`)
    return { type, run: ({ vars }) => vars.get(name) ?? '' }
  }

  #call(name: string): Expression {
    const callable = this.#callable(name)
    const args: Expression[] = []
    while (this.#take(')') === undefined) {
      if (args.length > 0) this.#expect(',')
      args.push(this.#choice())
    }
    if (args.length !== callable.args.length) throw new Error(`${name} takes ${callable.args.length} arguments, not ${args.length}`)
    for (const [i, arg] of args.entries()) need(arg, callable.args[i]!, name)
    return {
      type: callable.type,
      run: (env) =>
        callable.call(
          args.map((arg) => arg.run(env)),
          env,
        ),
    }
  }

  #callable(name: string): Callable {
    if (this.#groups && name === 'group') return GROUP
    if (Object.hasOwn(STATE, name)) return STATE[name]!
    if (Object.hasOwn(BUILT_IN, name)) return BUILT_IN[name]!
    throw new Error(OTHER_BUILT_IN.has(name) ? `function ${name} is known, but not built yet` : `unknown name ${name}`)
  }
}

function scan(text: string): string[] {
  const tokens: string[] = []
  const end = text.trimEnd().length
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < end) {
    const at = TOKEN.lastIndex
    const match = TOKEN.exec(text)
    if (match === null) throw new Error(`unrecognized character: ${JSON.stringify(text.slice(at).trimStart()[0])}`)
    tokens.push((match[1] ?? match[2] ?? match[3] ?? match[4])!)
  }
  return tokens
}

const constant = (type: ExprType, value: ExprValue): Expression => ({ type, run: () => value })

function unquoted(token: string): string {
  if (token.startsWith('`')) return token.slice(1, -1)
  const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' }
  return token.slice(1, -1).replace(/\\(.)/g, (_, character: string) => escapes[character] ?? character)
}

function need({ type }: Expression, wanted: ExprType, where: string): void {
  if (wanted !== 'any' && type !== 'any' && type !== wanted) throw new Error(`invalid operation: ${where} cannot take a ${type}`)
}

const COMPARE: Readonly<Record<string, (a: ExprValue, b: ExprValue) => boolean>> = {
  '<': (a, b) => a < b,
  '>': (a, b) => a > b,
  '<=': (a, b) => a <= b,
  '>=': (a, b) => a >= b,
  contains: (a, b) => String(a).includes(String(b)),
  startsWith: (a, b) => String(a).startsWith(String(b)),
  endsWith: (a, b) => String(a).endsWith(String(b)),
}
const ARITHMETIC: Readonly<Record<string, (a: number, b: number) => number>> = {
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
  '%': (a, b) => a % b,
}

function join(operator: string, left: Expression, right: Expression): Expression {
  const both = (type: ExprType): void => {
    need(left, type, operator)
    need(right, type, operator)
  }
  if (operator === '||' || operator === 'or' || operator === '&&' || operator === 'and') {
    both('bool')
    const any = operator === '||' || operator === 'or'
    return { type: 'bool', run: (env) => (left.run(env) === any ? any : right.run(env)) }
  }
  if (operator === '==' || operator === '!=') {
    both(left.type === 'any' ? right.type : left.type)
    return { type: 'bool', run: (env) => (left.run(env) === right.run(env)) === (operator === '==') }
  }
  if (operator === 'in') {
    need(right, 'list', operator)
    return { type: 'bool', run: (env) => (right.run(env) as readonly ExprValue[]).includes(left.run(env)) }
  }
  if (operator === 'matches') return matching(left, right)
  const compare = COMPARE[operator]
  if (compare !== undefined) {
    const words = operator.length > 2
    both(words ? 'string' : left.type)
    if (!words && (left.type === 'bool' || left.type === 'list'))
      throw new Error(`invalid operation: ${operator} cannot take a ${left.type}`)
    return { type: 'bool', run: (env) => compare(left.run(env), right.run(env)) }
  }
  return arithmetic(operator, left, right)
}

function arithmetic(operator: string, left: Expression, right: Expression): Expression {
  const mixed = left.type !== 'any' && right.type !== 'any' && left.type !== right.type
  const type = left.type === 'any' ? right.type : left.type
  if (mixed || type === 'bool' || type === 'list' || (type === 'string' && operator !== '+'))
    throw new Error(`invalid operation: ${operator} (mismatched types ${left.type} and ${right.type})`)
  const calculate = ARITHMETIC[operator]
  if (calculate !== undefined) return { type: 'number', run: (env) => calculate(Number(left.run(env)), Number(right.run(env))) }
  return {
    type,
    run: (env) => {
      const [a, b] = [left.run(env), right.run(env)]
      return typeof a === 'number' && typeof b === 'number' ? a + b : String(a) + String(b)
    },
  }
}

/** `matches` with a pattern that stands in the Corefile: compiled once. */
function matching(left: Expression, right: Expression): Expression {
  need(left, 'string', 'matches')
  need(right, 'string', 'matches')
  let text: string
  try {
    text = String(right.run(undefined as never))
  } catch {
    throw new Error('matches needs a constant pattern')
  }
  const pattern = compilePattern(text)
  return { type: 'bool', run: (env) => pattern.test(String(left.run(env))) }
}

function toInteger(value: ExprValue): number {
  const number = typeof value === 'number' ? Math.trunc(value) : /^[-+]?\d+$/.test(String(value)) ? Number(value) : Number.NaN
  if (!Number.isSafeInteger(number)) throw new Error(`invalid operation: int(${JSON.stringify(value)})`)
  return number
}

function inNetwork(address: string, network: string): boolean {
  const family = isIP(address)
  if (family === 0) throw new Error('first argument is not an IP address')
  const [base = '', bits = ''] = network.split('/')
  const wanted = isIP(base)
  if (wanted === 0 || !/^\d{1,3}$/.test(bits) || Number(bits) > (wanted === 4 ? 32 : 128))
    throw new Error(`invalid CIDR address: ${network}`)
  if (family !== wanted) return false
  const list = new BlockList()
  list.addSubnet(base, Number(bits), wanted === 4 ? 'ipv4' : 'ipv6')
  return list.check(address, family === 4 ? 'ipv4' : 'ipv6')
}
