/**
 * Patterns that a user writes in a Corefile: RE2 syntax as in CoreDNS (`(?P<n>…)`, `(?i)`), matched in linear time whatever the text.
 * V8's own expressions have another syntax and may take exponential time.
 */
import { createRequire } from 'node:module'
import type { RE2JS } from 're2js'

/** The limit that CoreDNS sets on a pattern's length. */
export const MAX_PATTERN = 10_000

export type Pattern = RE2JS

/** Loaded with the first pattern: few Corefiles have one, and it takes 2 MB. */
const engine = (): typeof import('re2js') => createRequire(import.meta.url)('re2js') as typeof import('re2js')

/** Throws Error with Go's wording: "error parsing regexp: unexpected ): `())`". */
export function compilePattern(text: string): Pattern {
  if (text.length > MAX_PATTERN) throw new Error(`regex pattern too long: ${text.length} > ${MAX_PATTERN}`)
  const { RE2JS: compiler, RE2JSException } = engine()
  try {
    return compiler.compile(text)
  } catch (error) {
    if (error instanceof RE2JSException) throw new Error(error.message, { cause: error })
    throw error
  }
}
