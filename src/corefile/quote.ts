/** Quoting for messages, in the style of the Go functions whose words we keep. */

/** Go's %q and strconv.Quote for what turns up in a Corefile. */
export function quote(text: string): string {
  const names: Record<string, string> = {
    '"': '\\"',
    '\\': '\\\\',
    '\n': '\\n',
    '\t': '\\t',
    '\r': '\\r',
    '\x07': '\\a',
    '\b': '\\b',
    '\f': '\\f',
    '\v': '\\v',
  }
  const escaped = text.replace(/["\\]|\p{C}|\p{Z}/gu, (character) => {
    const named = names[character]
    if (named !== undefined || character === ' ') return named ?? ' '
    const code = character.codePointAt(0) ?? 0
    if (code < 0x80) return `\\x${code.toString(16).padStart(2, '0')}`
    return code < 0x10000 ? `\\u${code.toString(16).padStart(4, '0')}` : `\\U${code.toString(16).padStart(8, '0')}`
  })
  return `"${escaped}"`
}
