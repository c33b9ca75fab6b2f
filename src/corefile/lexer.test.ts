import { describe, expect, test } from 'vitest'
import { lex, limits } from './lexer.js'

const words = (text: string): string[] => lex(text, 'f', () => {}).map((token) => token.text)
const warnings = (text: string): string[] => {
  const out: string[] = []
  lex(text, 'f', (message, pos) => out.push(`${pos.line}:${pos.column} ${message}`))
  return out
}

describe('words', () => {
  const table: [string, string, string[]][] = [
    ['nothing', '', []],
    ['blanks and tabs', ' a\tb  c ', ['a', 'b', 'c']],
    ['lines of DOS', 'a b\r\nc\r\n', ['a', 'b', 'c']],
    ['a carriage return within a word is dropped', 'a\rb', ['ab']],
    ['byte order mark', '\ufeffa', ['a']],
    ['a later one is a character', 'a \ufeffb', ['a', '\ufeffb']],
    ['no-break space divides', 'a\u00a0b', ['a', 'b']],
    ['comment line', '# a "b\nc', ['c']],
    ['comment after a word', 'a # b\nc', ['a', 'c']],
    ['comment inside a word', 'a#b\nc', ['a', 'c']],
    ['comment inside a word ends at the blank', 'a#b c', ['a', 'c']],
    ['quotes', '"a b" c', ['a b', 'c']],
    ['empty quotes', '""', ['']],
    ['quotes hide the comment sign', '"a # b"', ['a # b']],
    ['escaped quote', String.raw`"a \"b\""`, ['a "b"']],
    ['nothing else is escaped', String.raw`"a\n\\b"`, [String.raw`a\n\\b`]],
    ['a backslash pair before the closing quote', String.raw`"a\\" b`, [String.raw`a\\`, 'b']],
    ['quoted text over lines', '"a\nb" c', ['a\nb', 'c']],
    ['a quote inside a word', 'a"b c"', ['a"b', 'c"']],
    ['text right behind a quoted one', '"a"b', ['a', 'b']],
    ['backtick', '`a b`', ['`a', 'b`']],
    ['final backslash', 'a \\\nb', ['a', '\\', 'b']],
    ['braces are words only when they stand alone', 'a{ {} { }', ['a{', '{}', '{', '}']],
  ]
  test.each(table)('%s', (_, text, expected) => expect(words(text)).toEqual(expected))
})

test('positions count lines and columns from 1, quoted text over lines included', () => {
  const [a, b, c] = lex('x "1\n2" y', 'f', () => {})
  expect(a).toEqual({ text: 'x', pos: { file: 'f', line: 1, column: 1 }, endLine: 1 })
  expect(b).toEqual({ text: '1\n2', pos: { file: 'f', line: 1, column: 3 }, endLine: 2 })
  expect(c).toEqual({ text: 'y', pos: { file: 'f', line: 2, column: 4 }, endLine: 2 })
})

test('a quote that is never closed marks its token', () => {
  expect(lex('a "b\nc', 'f', () => {})[1]).toMatchObject({ text: 'b\nc', unclosed: true, pos: { line: 1, column: 3 } })
})

test('what looks like another quote or comment is warned of', () => {
  expect(warnings('`a`')).toEqual([expect.stringContaining("1:1 '`' is a plain character")])
  expect(warnings('forward . 1.1.1.1#fast one')).toEqual([expect.stringContaining("1:11 '#' inside a word")])
  expect(warnings('whoami#comment\nlog # fine\na#b # c')).toEqual([])
})

test('limits', () => {
  expect(() => words('a'.repeat(limits.tokenLength + 1))).toThrow('f:1 - Error during parsing: token is too long')
  expect(() => words(`"${'a\n'.repeat(limits.tokenLength)}`)).toThrow('token is too long')
  expect(() => words(' '.repeat(limits.fileLength + 1))).toThrow('file is too long')
  expect(words('a'.repeat(limits.tokenLength))).toHaveLength(1)
})
