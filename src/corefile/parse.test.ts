import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { limits } from './lexer.js'
import { type ParseOptions, parseCorefile } from './parse.js'
import { CorefileError, type Directive } from './tree.js'

const directives = ['log', 'errors', 'cache', 'whoami', 'forward', 'hosts', 'template']
const parse = (text: string, options: ParseOptions = {}) => parseCorefile(text, 'Corefile', { directives, env: {}, ...options })

/** `name arg {option;option}`: a directive on one line, to compare with. */
const show = (directive: Directive): string => {
  const head = [directive.name, ...directive.args.map((arg) => JSON.stringify(arg.text))].join(' ')
  return directive.block === undefined ? head : `${head} {${directive.block.map(show).join('; ')}}`
}
const outline = (text: string, options?: ParseOptions): string[] =>
  parse(text, options).blocks.map((block) => `${block.keys.map((key) => key.text).join(' ')}: ${block.directives.map(show).join(' | ')}`)

describe('blocks', () => {
  const table: [string, string, string[]][] = [
    ['empty file', '', []],
    ['comments only', '# nothing\n\n', []],
    ['snippets only', '(a) {\n log\n}\n', []],
    ['empty block', '. {\n}\n', ['.: ']],
    ['keys alone', '.', ['.: ']],
    ['one server without braces', '.:53\nlog\ncache 30', ['.:53: log | cache "30"']],
    ['a stray brace ends a server without braces', '.\nlog\n}\na {\n}', ['.: log', 'a: ']],
    ['brace on a line of its own', '.\n{\n log\n}', ['.: log']],
    ['two blocks on a line', 'a {\n} b {\n}', ['a: ', 'b: ']],
    ['first directive on the line of the brace', '. { log\n}', ['.: log']],
    ['keys over lines', 'a,\nb, c {\n}', ['a b c: ']],
    ['empty key', '"" a {\n}', ['a: ']],
    ['a block without keys is dropped', '{\n log\n}\na {\n}', ['a: ']],
    ['arguments', '. {\n cache 30 example.org\n}', ['.: cache "30" "example.org"']],
    ['empty body', '. {\n cache {\n }\n}', ['.: cache {}']],
    ['body', '. {\n cache 30 {\n  success 100\n  prefetch\n }\n}', ['.: cache "30" {success "100"; prefetch}']],
    ['nested bodies', '. {\n hosts f {\n  a b {\n   c {\n   }\n  }\n  d\n }\n}', ['.: hosts "f" {a "b" {c {}}; d}']],
    ['body opened and begun on one line', '. {\n cache { success 1\n }\n}', ['.: cache {success "1"}']],
    ["a brace at a line's end is an argument as well", '. {\n hosts { 1.1.1.1 a }\n log\n}', ['.: hosts {1.1.1.1 "a" "}"} | log']],
    ['quoted words', '. {\n "log" "a b" ""\n}', ['.: log "a b" ""']],
    ['argument over lines', '. {\n log "a\nb" c\n cache\n}', ['.: log "a\\nb" "c" | cache']],
    ['braces within words', '. {\n template {{ {.Name} a{\n}', ['.: template "{{" "{.Name}" "a{"']],
    ['one closing brace too few after a body', '. {\n cache {\n  success 1\n }\n', ['.: cache {success "1"}']],
    ['a lone (name) at the end is a key', '(a)', ['(a): ']],
    ['import is a word within a line', '. {\n log import x\n}', ['.: log "import" "x"']],
  ]
  test.each(table)('%s', (_, text, expected) => expect(outline(text)).toEqual(expected))

  test('any directive passes when no names are given', () => {
    expect(parseCorefile('. {\n what\n}', 'f').blocks[0]?.directives[0]?.name).toBe('what')
  })

  test('every part knows its place', () => {
    const { blocks, sources } = parse('\n. {\n  cache 30 {\n    success 5\n  }\n}')
    const [block] = blocks
    const cache = block?.directives[0]
    expect(block?.pos).toEqual({ file: 'Corefile', line: 2, column: 1 })
    expect(cache?.pos).toEqual({ file: 'Corefile', line: 3, column: 3 })
    expect(cache?.args[0]?.pos).toEqual({ file: 'Corefile', line: 3, column: 9 })
    expect(cache?.block?.[0]?.args[0]?.pos).toEqual({ file: 'Corefile', line: 4, column: 13 })
    expect(sources.map((source) => source.file)).toEqual(['Corefile'])
  })
})

describe('errors, in the words of CoreDNS and with their column', () => {
  const at = (line: number, message: string, column: number): string =>
    `Corefile:${line} - Error during parsing: ${message} (column ${column})`
  const syntax = (line: number, message: string, column: number): string => `Corefile:${line} - Syntax error: ${message} (column ${column})`
  const table: [string, string, string][] = [
    ['unknown directive', '. {\n log\n\n nosuch\n}', at(4, "Unknown directive 'nosuch'", 2)],
    ['names know their case', '. {\n WHOAMI\n}', at(2, "Unknown directive 'WHOAMI'", 2).replace('2)', "2; did you mean 'whoami'?)")],
    ['closing brace missing', '. {\n log\n', syntax(2, "Unexpected token 'log', expecting '}'", 2)],
    ['brace of a body missing', '. {\n log\n cache {\n  success 1\n', at(4, 'Unexpected EOF', 11)],
    ['brace that closes nothing', '. {\n log }\n', at(2, "Unexpected '}' because no matching opening brace", 6)],
    ['comma before the brace', 'a, {\n}', at(1, "Expected another address but had '{' - check for extra comma", 4)],
    ['comma at the end', 'a,', at(1, 'Unexpected EOF', 1)],
    ['import without argument', '. {\n import\n}', at(2, "Wrong argument count or unexpected line ending after 'import'", 2)],
    ['import with two', '. {\n import a b\n}', at(2, 'Import takes only one argument (glob pattern or file)', 11)],
    ['import of nothing', '. {\n import ""\n}', at(2, 'Import requires a non-empty filepath', 9)],
    ['import of an absent file', '. {\n import /no/such\n}', at(2, 'File to import not found: /no/such', 9)],
    ['two wildcards', '. {\n import /a/*/*\n}', at(2, 'Glob pattern may only contain one wildcard (*), but has others: /a/*/*', 9)],
    ['broken pattern', '. {\n import /a/[b\n}', at(2, 'Failed to use import pattern /a/[b: syntax error in pattern', 9)],
    ['snippet without brace', '(a)\nlog\n', syntax(2, "Unexpected token 'log', expecting '{'", 1)],
    ['snippet without end', '(a) {\nlog\n', syntax(2, "Unexpected token 'log', expecting '}'", 1)],
    ['snippet defined twice', '(a) {\n}\n(a) {\n}\n', at(3, 'redeclaration of previously declared snippet a', 5)],
    ['snippet in itself', '(a) {\n log\n import a\n}\n', at(4, 'maximum snippet import depth (10000) exceeded', 1)],
    ['open quote', '. {\n log . "never\n}\n', at(2, 'Unexpected EOF, quoted string is not closed', 8)],
    ['an earlier error comes before an open quote', '. {\n nosuch9\n log "\n}\n', at(2, "Unknown directive 'nosuch9'", 2)],
    [
      'brace of a body on the next line',
      '. {\n cache 30\n {\n }\n}',
      at(3, "Unexpected token '{', it must stand on the line of 'cache'", 2),
    ],
    ['words after a body', '. {\n cache {\n } 30\n}', at(3, "Unexpected token '30' after the block of 'cache'", 4)],
    ['brace at the start of an option', '. {\n cache {\n  {\n  }\n }\n}', at(3, "Unexpected token '{', expecting argument", 3)],
    ['key', 'a..b {\n}', at(1, 'error inspecting server blocks: zone is not a valid domain name: a..b', 1)],
  ]
  test.each(table)('%s', (_, text, message) => {
    expect(() => parse(text)).toThrow(CorefileError)
    expect(() => parse(text)).toThrow(expect.objectContaining({ message }))
  })

  test('a near name is proposed', () => {
    expect(() => parse('. {\n forwrad . 1.1.1.1\n}')).toThrow("Unknown directive 'forwrad' (column 2; did you mean 'forward'?)")
  })

  test('a path given as absolute is printed as absolute', () => {
    expect(() => parseCorefile('. {\n x\n}', '/etc/Corefile', { directives })).toThrow('/etc/Corefile:2 - ')
  })
})

describe('environment', () => {
  const env = {
    PORT: '1053',
    ZONE: 'example.org',
    TWO: 'a b',
    BRACE: '{',
    NAME: 'log',
    OUTER: '{$ZONE}',
    SELF: '{$SELF}',
    GROW: '{$GROW}{$GROW}',
  }
  const table: [string, string, string[]][] = [
    ['key', '{$ZONE}:{$PORT} {\n}', ['example.org:1053: ']],
    ['other form', '{%ZONE%}:{%PORT%} {\n}', ['example.org:1053: ']],
    ['directive and argument', '. {\n {$NAME} a{$PORT}b\n}', ['.: log "a1053b"']],
    ['inside quotes', '. {\n log "x {$PORT}"\n}', ['.: log "x 1053"']],
    ['a value is not divided', '. {\n log {$TWO}\n}', ['.: log "a b"']],
    ['unset is empty', '. {\n log {$UNSET} x\n}', ['.: log "" "x"']],
    ['names of objects are no values', '. {\n log {$constructor} x\n}', ['.: log "" "x"']],
    ['a value with a reference', '. {\n log {$OUTER}\n}', ['.: log "example.org"']],
    ['nameless and unclosed stay', '. {\n log {$} {$PORT {%}\n}', ['.: log "{$}" "{$PORT" "{%}"']],
    ['several in one word', '. {\n log {$PORT}{$PORT}{%ZONE%}\n}', ['.: log "10531053example.org"']],
  ]
  test.each(table)('%s', (_, text, expected) => expect(outline(text, { env })).toEqual(expected))

  test('a value that holds itself is an error, not a hang', () => {
    expect(() => parse('. {\n log {$SELF}\n}', { env })).toThrow('Corefile:2 - Error during parsing: environment variable refers to itself')
    expect(() => parse('. {\n log {$GROW}\n}', { env })).toThrow('token is too long')
    expect(() => parse(`. {\n log ${'{$BIG}'.repeat(10_000)}\n}`, { env: { BIG: 'x'.repeat(1_000_000) } })).toThrow('token is too long')
  })
})

describe('snippets', () => {
  const table: [string, string, string[]][] = [
    ['used twice', '(s) {\n log\n}\na {\n import s\n}\nb {\n import s\n errors\n}', ['a: log', 'b: log | errors']],
    ['twice in one block', '(s) {\n log\n}\na {\n import s\n import s\n}', ['a: log | log']],
    [
      'of options',
      '(s) {\n success 1\n denial 2\n}\na {\n cache {\n  import s\n  keepttl\n }\n}',
      ['a: cache {success "1"; denial "2"; keepttl}'],
    ],
    ['in another', '(s) {\n log\n}\n(t) {\n import s\n errors\n}\na {\n import t\n}', ['a: log | errors']],
    ['in another, within a body', '(s) {\n x 1\n}\n(t) {\n import s\n}\na {\n cache {\n  import t\n }\n}', ['a: cache {x "1"}']],
    ['empty', '(s) {\n}\na {\n import s\n log\n}', ['a: log']],
    ['of a whole block', '(s) {\n a {\n log\n }\n}\nimport s\n', ['a: log']],
    ['of keys', '(s) {\n a b\n}\nimport s\n{\n log\n}', ['a b: log']],
    ['name out of the environment', '(s) {\n log\n}\na {\n import {$S}\n}', ['a: log']],
  ]
  test.each(table)('%s', (_, text, expected) => expect(outline(text, { env: { S: 's' } })).toEqual(expected))

  test('an error inside names the line of the snippet', () => {
    expect(() => parse('(s) {\n nosuch9\n}\na {\n import s\n}')).toThrow("Corefile:2 - Error during parsing: Unknown directive 'nosuch9'")
  })

  test('loops and bombs end in an error', () => {
    const depth = /maximum snippet import depth \(10000\) exceeded/
    expect(() => parse('(a) {\n import b\n}\n(b) {\n import a\n}\n. {\n import a\n}')).toThrow(depth)
    const doubling = Array.from({ length: 40 }, (_, i) => `(s${i}) {\n import s${i + 1}\n import s${i + 1}\n}\n`).join('')
    expect(() => parse(`${doubling}(s40) {\n log\n}\n. {\n import s0\n}`)).toThrow(depth)
    const large = `(a) {\n${'log\n'.repeat(limits.tokens / 100)}}\n. {\n${'import a\n'.repeat(200)}}`
    expect(() => parse(large)).toThrow(`more than ${limits.tokens} tokens`)
  })
})

describe('imported files', () => {
  let folder: string
  const write = (name: string, text: string): void => {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
    writeFileSync(path.join(folder, name), text)
  }
  const read = (text: string) => parseCorefile(text, path.join(folder, 'Corefile'), { directives, env: {} })
  const names = (text: string): string[] => read(text).blocks.flatMap((block) => block.directives.map(show))
  beforeAll(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'corefile-'))
    write('a.conf', 'log\nerrors\n')
    write('b.conf', 'cache 30')
    write('c.server', 'example.org {\n whoami\n}\n')
    write('sub/outer.conf', 'import inner.part\n')
    write('sub/inner.part', 'errors')
    write('sub/.hidden.conf', 'whoami')
    write('bad', 'log\nnosuch9\n')
    write('self', 'log\nimport self\n')
    write('open', 'cache {\n')
    mkdirSync(path.join(folder, 'folder.d'))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  test('by name, by pattern, relative to the importing file', () => {
    expect(names('. {\n import a.conf\n whoami\n}')).toEqual(['log', 'errors', 'whoami'])
    expect(names('. {\n import *.conf\n}')).toEqual(['log', 'errors', 'cache "30"'])
    expect(names('. {\n import ?.conf\n}')).toEqual(['log', 'errors', 'cache "30"'])
    expect(names('. {\n import sub/outer.conf\n}')).toEqual(['errors'])
    expect(names('. {\n import s*/outer.conf\n}')).toEqual(['errors'])
    expect(names(`. {\n import ${folder}/b.conf\n}`)).toEqual(['cache "30"'])
    expect(names('import *.server\n')).toEqual(['whoami'])
  })

  test('a wildcard matches a leading dot', () => expect(names('. {\n import sub/*.conf\n}')).toEqual(['whoami', 'errors']))

  test('a file may end within a block that goes on outside', () =>
    expect(names('. {\n import open\n success 1\n }\n}')).toEqual(['cache {success "1"}']))

  test('sources lists every file once, with its text', () => {
    const { sources } = read('. {\n import a.conf\n import a.conf\n import b.conf\n}')
    expect(sources.map((source) => path.basename(source.file))).toEqual(['Corefile', 'a.conf', 'b.conf'])
    expect(sources[2]?.text).toBe('cache 30')
  })

  test('a pattern without a match is only warned of', () => {
    const { blocks, warnings } = read('. {\n import none*.conf\n log\n}')
    expect(blocks[0]?.directives.map(show)).toEqual(['log'])
    expect(warnings).toMatchObject([{ message: 'No files matching import glob pattern: none*.conf', pos: { line: 2, column: 9 } }])
  })

  test('errors carry the imported file and its line', () => {
    expect(() => read('. {\n import bad\n}')).toThrow(`${folder}/bad:2 - Error during parsing: Unknown directive 'nosuch9'`)
    expect(() => read('. {\n import folder.d\n}')).toThrow(`Could not import ${folder}/folder.d: is a directory`)
    expect(() => read('. {\n import a.conf/x\n}')).toThrow('File to import not found: a.conf/x')
    expect(() => read('. {\n import "a\0b"\n}')).toThrow(CorefileError)
    expect(() => read('. {\n import "a\0*"\n}')).not.toThrow()
  })

  test('a file that imports itself is an error', () => {
    expect(() => read('. {\n import self\n}')).toThrow('maximum file import depth (10000) exceeded')
    const readFile = (): string => 'import x\nimport x\n'
    expect(() => parse('import x', { readFile })).toThrow('maximum file import depth (10000) exceeded')
  })

  test('a reader of the caller is used, its failure is an error of the file', () => {
    expect(outline('. {\n import /virtual\n}', { readFile: (name) => (name === '/virtual' ? 'log' : '') })).toEqual(['.: log'])
    const readFile = (): string => {
      throw new Error('not today')
    }
    expect(() => parse('. {\n import x\n}', { readFile })).toThrow(/Corefile:2 - Error during parsing: Could not import .*x: not today/)
  })
})

describe('limits', () => {
  test('nesting', () => {
    const nested = (depth: number): string => `. {\n${'hosts {\n'.repeat(depth)}${'}\n'.repeat(depth + 1)}`
    expect(outline(nested(limits.depth))).toHaveLength(1)
    expect(() => parse(nested(limits.depth + 1))).toThrow(`maximum nesting depth (${limits.depth}) exceeded`)
    expect(() => parse(`. {\n${'hosts {\n'.repeat(100_000)}`)).toThrow('Unexpected EOF')
  })
  test('zones', () => expect(() => parse(`${'10.0.0.0/1 '.repeat(1000)} {\n}`)).toThrow(`more than ${limits.zones} zones`))
  test('file', () => expect(() => parse(' '.repeat(limits.fileLength + 1))).toThrow('file is too long'))
})

test('warnings name what is legal but odd', () => {
  const messages = (text: string): string[] => parse(text).warnings.map((warning) => `${warning.pos.line}: ${warning.message}`)
  expect(messages('. {\n cache {\n  success 1\n }\n')).toEqual(["4: the last server block lacks its closing '}'"])
  expect(messages('{\n log\n}')).toEqual(['1: server block without a key is ignored'])
  expect(messages('. {\n hosts { a }\n}')).toEqual([expect.stringContaining("2: '}' on the line of 'a' is read as its argument too")])
  expect(messages('. {\n log # fine\n}')).toEqual([])
})
