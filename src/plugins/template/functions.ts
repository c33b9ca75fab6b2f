/** What templates can call: Go's built-in functions that make sense here, and CoreDNS's `parseInt`. */
import { quote } from '../contract.js'
import type { Data } from './template.js'

export type Value = string | number | boolean | readonly string[] | ReadonlyMap<string, Value>
export type Func = (args: readonly Value[], data: Data) => Value

export const FUNCTIONS: Readonly<Record<string, Func>> = {
  parseInt: (args) => parseUnsigned(args),
  len: (args) => length(need('len', args, 1)[0]!),
  index: (args) => indexed(args),
  eq: (args) =>
    need('eq', args, 2)
      .slice(1)
      .some((value) => value === args[0]),
  ne: (args) => need('ne', args, 2)[0] !== args[1],
  lt: (args) => ordered('lt', args) < 0,
  le: (args) => ordered('le', args) <= 0,
  gt: (args) => ordered('gt', args) > 0,
  ge: (args) => ordered('ge', args) >= 0,
  and: (args) => args.find((value) => !truth(value)) ?? args.at(-1) ?? '',
  or: (args) => args.find(truth) ?? args.at(-1) ?? '',
  not: (args) => !truth(need('not', args, 1)[0]!),
  print: (args) => args.map(format).join(''),
  printf: (args) => printed(args),
  /** The method of the data, not a function of its own. */
  Meta: (args, data) => {
    const values = data.get('Meta')
    return values instanceof Map ? (values.get(format(args[0] ?? '')) ?? '') : ''
  },
}

/** As Go prints a value. */
export function format(value: Value): string {
  if (Array.isArray(value)) return `[${value.join(' ')}]`
  if (value instanceof Map) return `map[${[...value].map(([key, each]) => `${key}:${format(each)}`).join(' ')}]`
  return String(value)
}

export const truth = (value: Value): boolean =>
  Array.isArray(value) ? value.length > 0 : value instanceof Map ? value.size > 0 : Boolean(value)

function need(name: string, args: readonly Value[], count: number): readonly Value[] {
  if (args.length < count) throw new Error(`wrong number of args for ${name}: want at least ${count} got ${args.length}`)
  return args
}

const length = (value: Value): number => (value instanceof Map ? value.size : (value as string | readonly string[]).length)

function indexed(args: readonly Value[]): Value {
  const [list, key] = need('index', args, 2)
  if (list instanceof Map) return list.get(format(key!)) ?? ''
  const value = Array.isArray(list) ? (list[Number(key)] as string | undefined) : undefined
  if (value === undefined) throw new Error(`error calling index: index out of range: ${format(key!)}`)
  return value
}

function ordered(name: string, args: readonly Value[]): number {
  const [a, b] = need(name, args, 2)
  if (typeof a !== typeof b || (typeof a !== 'number' && typeof a !== 'string'))
    throw new Error(`error calling ${name}: incompatible types for comparison`)
  return a! < b! ? -1 : a === b ? 0 : 1
}

/** `parseInt TEXT BASE BITS`: an unsigned number, like Go's strconv.ParseUint. */
function parseUnsigned(args: readonly Value[]): number {
  if (args.length !== 3) throw new Error(`wrong number of args for parseInt: want 3 got ${args.length}`)
  const text = format(args[0]!)
  const base = Number(args[1]) || 10
  const value = Number.parseInt(text, base)
  const digits = '0123456789abcdefghijklmnopqrstuvwxyz'.slice(0, base)
  if (text === '' || [...text.toLowerCase()].some((digit) => !digits.includes(digit)))
    throw new Error(`error calling parseInt: strconv.ParseUint: parsing ${quote(text)}: invalid syntax`)
  if (value >= 2 ** (Number(args[2]) || 64))
    throw new Error(`error calling parseInt: strconv.ParseUint: parsing ${quote(text)}: value out of range`)
  return value
}

/** %s, %v, %d, %x, %X with a width and zeros, and %%. */
function printed([pattern, ...args]: readonly Value[]): string {
  let next = 0
  return format(pattern ?? '').replace(/%(0?)(\d*)([svdxX%])/g, (_, zero: string, width: string, verb: string) => {
    if (verb === '%') return '%'
    const value = args[next++] ?? ''
    const text = /[xX]/.test(verb) ? Number(value).toString(16) : format(value)
    return (verb === 'X' ? text.toUpperCase() : text).padStart(Math.min(Number(width), 255), zero === '0' ? '0' : ' ')
  })
}
