/** Environment variables in words: `{%NAME%}` first, then `{$NAME}`, as CoreDNS fills them in. */
import { limits, type Token } from './lexer.js'
import { CorefileError } from './tree.js'

export type Env = Readonly<Record<string, string | undefined>>

/** A value may itself hold references; one that holds itself would go on for ever. */
const MAX_REFERENCES = 1000

/** The token's text with all references replaced; an unset variable is empty, an unclosed or nameless reference stays as it is. */
export function expandEnv(token: Token, env: Env): string {
  if (!token.text.includes('{$') && !token.text.includes('{%')) return token.text
  return expand(expand(token.text, '{%', '%}', env, token), '{$', '}', env, token)
}

function expand(input: string, open: string, close: string, env: Env, token: Token): string {
  let text = input
  for (let round = 0; ; round++) {
    const start = text.indexOf(open)
    // CoreDNS looks for the end from the reference's first character, so that "{%}" holds an end of its own: it is left alone.
    const end = start < 0 ? -1 : text.indexOf(close, start)
    if (end <= start + open.length) return text
    if (round >= MAX_REFERENCES) throw new CorefileError('environment variable refers to itself', token.pos, token.text)
    const name = text.slice(start + open.length, end)
    const parts = text.split(text.slice(start, end + close.length))
    const value = (Object.hasOwn(env, name) ? env[name] : undefined) ?? ''
    const length = parts.reduce((sum, part) => sum + part.length, 0) + (parts.length - 1) * value.length
    if (length > limits.tokenLength) throw new CorefileError(`token is too long: ${length} > ${limits.tokenLength} characters`, token.pos)
    text = parts.join(value)
  }
}
