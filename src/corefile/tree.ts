/**
 * The tree that a Corefile becomes: server blocks, directives, positions. Plain data only, so that it can be
 * posted to another thread as it is. Nothing here knows a plugin.
 */

/** Where a token stands. Lines and columns count from 1; columns count UTF-16 code units. */
export interface Position {
  readonly file: string
  readonly line: number
  readonly column: number
}

/** One argument of a directive, with the place it was read from. */
export interface Argument {
  readonly text: string
  readonly pos: Position
}

/** A directive with its arguments and, if braces follow, its body. Options inside a body have the same shape, nested to any depth. */
export interface Directive {
  readonly name: string
  readonly args: readonly Argument[]
  /** undefined: no braces at all; []: empty braces. */
  readonly block: readonly Directive[] | undefined
  readonly pos: Position
  /** The removed name that it was written by, where another plugin reads it now. */
  readonly formerName?: string
}

export type Transport = 'dns' | 'tls' | 'https' | 'grpc' | 'quic' | 'https3'

/** One key of a server block after normalisation: zone, port and transport. A CIDR key has become its reverse zones. */
export interface ZoneKey {
  /** Lower-case zone with final dot, presentation form: "example.org.", "." or "10.in-addr.arpa." */
  readonly zone: string
  readonly transport: Transport
  /** "" when the key names none: the server fills in the transport's default (or -dns.port). */
  readonly port: string
  /** As it was written, environment variables filled in. The zones of one CIDR key share it. */
  readonly text: string
  readonly pos: Position
}

export interface ServerBlock {
  readonly keys: readonly ZoneKey[]
  readonly directives: readonly Directive[]
  readonly pos: Position
}

export interface Corefile {
  readonly file: string
  readonly blocks: readonly ServerBlock[]
  /** Every file read, the main one first, with its text; what `reload` watches and hashes. */
  readonly sources: readonly { readonly file: string; readonly text: string }[]
  /** What is legal but probably not meant. */
  readonly warnings: readonly { readonly message: string; readonly pos: Position }[]
}

/**
 * An error of the Corefile. `message` begins with `file:line - Error during parsing: ` as CoreDNS words it (`Syntax error: ` where
 * a certain token was expected); column and "did you mean" follow at its end.
 */
export class CorefileError extends Error {
  readonly code = 'COREFILE'
  readonly pos: Position
  /** The offending word, if one can be named. */
  readonly word: string | undefined
  /** "did you mean" candidate. */
  readonly hint: string | undefined

  constructor(
    message: string,
    pos: Position,
    word?: string,
    hint?: string,
    kind: 'Error during parsing' | 'Syntax error' = 'Error during parsing',
  ) {
    super(`${pos.file}:${pos.line} - ${kind}: ${message} (column ${pos.column}${hint === undefined ? '' : `; did you mean '${hint}'?`})`)
    this.name = 'CorefileError'
    this.pos = pos
    this.word = word
    this.hint = hint
  }
}

/** An error whose message is whole as it stands, because CoreDNS's has no place in it, and that knows its place all the same. */
export function placedError(message: string, pos: Position, word?: string): CorefileError {
  return Object.assign(new CorefileError(message, pos, word), { message })
}

/** The nearest of `candidates` within two edits (one for words under five letters), or undefined. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined
  let bestDistance = word.length < 5 ? 2 : 3
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase(), bestDistance)
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** Optimal string alignment distance, given up (returns `limit`) once it cannot stay below `limit`. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit || a.length > 64) return limit
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = a[i - 1] === b[j - 1] ? 0 : 1
      let cost = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + change)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, before[j - 2]! + 1)
      row.push(cost)
    }
    before = last
    last = row
  }
  return Math.min(last[b.length]!, limit)
}
