/**
 * Patterns that a user writes in a Corefile: RE2 syntax as in CoreDNS (`(?P<n>…)`, `(?i)`), matched in linear time whatever the text.
 * V8's own expressions have another syntax and may take exponential time.
 */
import { RE2JS, RE2JSException } from 're2js'

/** The limit that CoreDNS sets on a pattern's length. */
export const MAX_PATTERN = 10_000

export type Pattern = RE2JS

/** Throws Error with Go's wording: "error parsing regexp: unexpected ): `())`". */
export function compilePattern(text: string): Pattern {
  if (text.length > MAX_PATTERN) throw new Error(`regex pattern too long: ${text.length} > ${MAX_PATTERN}`)
  try {
    return RE2JS.compile(text)
  } catch (error) {
    if (error instanceof RE2JSException) throw new Error(error.message, { cause: error })
    throw error
  }
}
