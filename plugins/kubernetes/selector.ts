/** Label selectors of the Kubernetes API (`a=b,c in (d,e),!f`): read once at set-up, sent to the API server, matched against manifests. */

export type Labels = Readonly<Record<string, string>>

/** A label selector, as the API server takes it and as manifests are filtered. */
export interface Selector {
  /** Canonical text for `labelSelector=`: requirements sorted by key. */
  readonly text: string
  matches(labels: Labels): boolean
}

interface Requirement {
  readonly key: string
  readonly text: string
  matches(value: string | undefined): boolean
}

/** Throws Error in the words of the API's own parser, as far as they help. */
export function parseSelector(text: string): Selector {
  const reader = new Reader(text)
  const requirements: Requirement[] = []
  do requirements.push(requirement(reader))
  while (reader.take(','))
  if (!reader.done) throw new Error(`found '${reader.peek()}', expected: ',' or 'end of string'`)
  // Equal keys keep their order: sort is stable.
  requirements.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
  return {
    text: requirements.map((r) => r.text).join(','),
    matches: (labels) => requirements.every((r) => r.matches(Object.hasOwn(labels, r.key) ? labels[r.key] : undefined)),
  }
}

/** Tokens: punctuation, or a run of anything else. */
class Reader {
  readonly #tokens: readonly string[]
  #at = 0
  constructor(text: string) {
    this.#tokens = text.match(/==|!=|[=!,()<>]|[^\s=!,()<>]+/g) ?? []
  }
  get done(): boolean {
    return this.#at === this.#tokens.length
  }
  peek(): string {
    return this.#tokens[this.#at] ?? ''
  }
  take(token: string): boolean {
    if (this.peek() !== token) return false
    this.#at++
    return true
  }
  next(): string {
    return this.#tokens[this.#at++] ?? ''
  }
}

function requirement(reader: Reader): Requirement {
  const absent = reader.take('!')
  const key = reader.next()
  checkKey(key)
  if (absent) return { key, text: `!${key}`, matches: (value) => value === undefined }
  const operator = reader.peek()
  if (operator === '' || operator === ',') return { key, text: key, matches: (value) => value !== undefined }
  reader.next()
  switch (operator) {
    case '=':
    case '==': {
      const wanted = single(reader)
      return { key, text: `${key}=${wanted}`, matches: (value) => value === wanted }
    }
    case '!=': {
      const unwanted = single(reader)
      return { key, text: `${key} notin (${unwanted})`, matches: (value) => value !== unwanted }
    }
    case 'in': {
      const wanted = list(reader)
      return { key, text: `${key} in (${wanted.join(',')})`, matches: (value) => value !== undefined && wanted.includes(value) }
    }
    case 'notin': {
      const unwanted = list(reader)
      return { key, text: `${key} notin (${unwanted.join(',')})`, matches: (value) => value === undefined || !unwanted.includes(value) }
    }
    case '>':
    case '<':
      throw new Error(`"${operator === '>' ? 'gt' : 'lt'}" is not a valid label selector operator`)
    default:
      throw new Error(`unable to parse requirement: found '${operator}', expected: in, notin, =, ==, !=, gt, lt`)
  }
}

/** A value may be empty: `a=` selects a label that is there without one. */
function single(reader: Reader): string {
  if (reader.done || reader.peek() === ',') return ''
  const value = reader.next()
  checkValue(value)
  return value
}

function list(reader: Reader): string[] {
  if (!reader.take('(')) throw new Error(`unable to parse requirement: found '${reader.peek()}', expected: '('`)
  const values = new Set<string>()
  for (;;) {
    if (reader.peek() === ',' || reader.peek() === ')') values.add('')
    else {
      const value = reader.next()
      checkValue(value)
      values.add(value)
    }
    if (reader.take(')')) return [...values].sort()
    if (!reader.take(',')) throw new Error(`unable to parse requirement: found '${reader.peek()}', expected: ',' or ')'`)
    if (reader.take(')')) return [...values.add('')].sort()
  }
}

function checkKey(key: string): void {
  if (key === '') throw new Error("unable to parse requirement: found '', expected: identifier")
  const slash = key.indexOf('/')
  const name = key.slice(slash + 1)
  const domain = slash < 0 ? undefined : key.slice(0, slash)
  const nameIsGood = name.length <= 63 && /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/.test(name)
  const domainIsGood = domain === undefined || (domain.length <= 253 && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(domain))
  if (!nameIsGood || !domainIsGood) throw new Error(`unable to parse requirement: key: Invalid value: "${key}"`)
}

function checkValue(value: string): void {
  const good = value.length <= 63 && /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/.test(value)
  if (!good) throw new Error(`unable to parse requirement: values: Invalid value: "${value}"`)
}
