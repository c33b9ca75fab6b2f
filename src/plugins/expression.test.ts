import { describe, expect, it } from 'vitest'
import { compileExpression, type ExprType, isReserved } from './expression.js'
import { query } from './testing.js'

const asked = query('Www.example.org.', 'AAAA', { address: '10.1.2.3', size: 1400, dnssecOk: true })
asked.metadata = new Map([['view/name', () => 'eu']])
const vars = new Map<string, string | number>([
  ['n', 3],
  ['s', 'text'],
])
const types = new Map<string, ExprType>([
  ['n', 'number'],
  ['s', 'string'],
])
const run = (text: string): unknown => compileExpression(text, types, true).run({ query: asked, vars, group: (name) => `<${name}>` })

describe('values', () => {
  it.each([
    ['1 + 2 * 3', 7],
    ['(1 + 2) * 3 % 4', 1],
    ['-n + 10', 7],
    ['\'a\' + "b" + s', 'abtext'],
    ["name() == 'www.example.org.' && type() != 'A'", true],
    ['do() and bufsize() == 1400 and not (id() == 2)', true],
    ["name() startsWith 'www' || name() endsWith '.nope.'", true],
    ["type() in ['A', 'AAAA']", true],
    ["type() not in ['A', 'AAAA']", false],
    ["name() matches '^w+[.]'", true],
    ["incidr(client_ip(), '10.0.0.0/8')", true],
    ["incidr(client_ip(), '2001:db8::/32')", false],
    ["metadata('view/name') == 'eu'", true],
    ["metadata('none') == ''", true],
    ["group('a') + group(1)", '<a><1>'],
    ["n > 2 ? 'many' : 'few'", 'many'],
    ["int('12') + len('abc')", 15],
    ["upper(s) contains 'EX'", true],
    ['proto() + class() + port() + server_ip() + server_port()', 'udpIN40212127.0.0.153'],
  ])('%s', (text, value) => {
    expect(run(text)).toEqual(value)
  })
})

describe('faults', () => {
  it.each([
    ['1 +', 'unexpected end of expression'],
    ['invalid expression', 'unknown name invalid'],
    ["'x' + n", 'mismatched types string and number'],
    ['1 2', 'unexpected token 2'],
    ['name() == 1', 'cannot take a number'],
    ['name(1)', 'name takes 0 arguments, not 1'],
    ['nosuch()', 'unknown name nosuch'],
    ["filter([], 'x')", 'known, but not built yet'],
    ['"open', 'unrecognized character'],
    ['1 && true', 'cannot take a number'],
    ["name() matches '('", 'error parsing regexp'],
    ['name() matches name()', 'matches needs a constant pattern'],
    [`${'('.repeat(100)}1${')'.repeat(100)}`, 'too deeply nested'],
    [`${'!'.repeat(100)}true`, 'too deeply nested'],
  ])('%s is refused when it is read', (text, error) => {
    expect(() => compileExpression(text, types, true)).toThrow(error)
  })

  it.each([
    ["incidr('notanip', '10.0.0.0/8')", 'first argument is not an IP address'],
    ["incidr('10.0.0.1', '10.0.0.0/99')", 'invalid CIDR address: 10.0.0.0/99'],
    ["int('x')", 'int("x")'],
  ])('%s fails when it is run', (text, error) => {
    expect(() => run(text)).toThrow(error)
  })

  it('keeps names for itself', () => {
    expect(['group', 'true', 'let', 'name', 'len', 'map', 'ttl'].map(isReserved)).toEqual([true, true, true, true, true, true, false])
  })
})
