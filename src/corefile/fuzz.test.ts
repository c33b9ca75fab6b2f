/** Laws of the parser over random input: it ends, throws nothing but CorefileError, and prints what parses to the same tree. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  CorefileError,
  isDomainName,
  parseCorefile,
  parseDuration,
  printCorefile,
  quote,
  reverseZones,
  splitHostPort,
  splitZonePort,
} from './index.js'
import type { Corefile } from './tree.js'

const bounds = { numRuns: 1000, interruptAfterTimeLimit: 3000 }

const readFile = (name: string): string => {
  if (name.endsWith('/self')) return 'log\nimport self\n'
  if (name.endsWith('/opts')) return 'success 7\ndenial "8"'
  if (name.endsWith('/block')) return 'x.org {\n whoami\n}\n'
  throw Object.assign(new Error('no such file'), { code: 'ENOENT' })
}
const env = { A: 'a', CLOSE: '}', OPEN: '{', IMPORT: 'import', LINES: 'a\nb', LOOP: '{$LOOP}', TWO: 'a b' }

/** The tree without positions. */
function bare(corefile: Corefile): unknown {
  return JSON.parse(JSON.stringify(corefile.blocks, (key, value) => (key === 'pos' ? undefined : value)))
}

function tryParse(text: string, options = {}): Corefile | undefined {
  try {
    return parseCorefile(text, 'Corefile', { env: {}, readFile, ...options })
  } catch (error) {
    if (!(error instanceof CorefileError)) throw error
    expect(error.message).toMatch(/^[^\n]*:\d+ - (Error during parsing|Syntax error): /)
    return undefined
  }
}

const piece = fc.constantFrom(
  ...[
    '. {\n',
    'a.org b:53 {\n',
    'a,\nb\n{\n',
    '}\n',
    '}',
    '{',
    '{\n',
    'log\n',
    'cache 30 {\n',
    'success 5\n',
    '(s) {\n',
    '(t) {\n',
    'import s\n',
  ],
  ...[
    'import t\n',
    'import opts\n',
    'import block\n',
    'import',
    '"q w"',
    '"a\nb" ',
    '""',
    '"\\""',
    '"a\\\\"',
    '"open',
    '\\',
    '`x`',
    '# c\n',
    'a#b c',
  ],
  ...[' ', '\n', '\r\n', '\u00a0', '\ufeff', '10.0.0.0/13 ', 'tls://x ', 'word ', 'é', ',', ', '],
)
const reference = fc.constantFrom(
  '{$A}',
  '{%A%}',
  '{$CLOSE}',
  '{$OPEN}',
  '{$IMPORT} ',
  '{$LINES}',
  '{$LOOP}',
  '{$TWO}',
  '{$',
  '{$}',
  'import self\n',
)
const fragments = (part: fc.Arbitrary<string>) => fc.array(part, { maxLength: 30 }).map((parts) => parts.join(''))

test('arbitrary text ends in a tree or a CorefileError', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
      tryParse(text, { env })
    }),
    bounds,
  )
})

test('fragments of Corefiles end in a tree or a CorefileError', () => {
  const part = fc.oneof({ weight: 12, arbitrary: piece }, { weight: 1, arbitrary: reference })
  fc.assert(
    fc.property(fragments(part), (text) => {
      tryParse(text, { env })
    }),
    bounds,
  )
})

test('what is printed parses to the same tree', () => {
  let trees = 0
  fc.assert(
    fc.property(fragments(piece), (text) => {
      const tree = tryParse(text)
      if (tree === undefined) return
      if (tree.blocks.length > 0) trees++
      const printed = printCorefile(tree)
      expect(bare(parseCorefile(printed, 'Corefile', { env: {} })), printed).toEqual(bare(tree))
    }),
    bounds,
  )
  expect(trees).toBeGreaterThan(50)
})

test('any tree of quotable words survives printing', () => {
  // A backslash before a quote or at the end has no spelling inside quotes, and braces, import and references mean something.
  const word = fc.string({ unit: 'grapheme', maxLength: 12 }).filter((text) => !/[\\\r]|\{[$%]|^[{}]$|^import$/.test(text))
  const { directive } = fc.letrec<{ directive: unknown }>((tie) => ({
    directive: fc.record({
      name: word,
      args: fc.array(
        word.map((text) => ({ text })),
        { maxLength: 3 },
      ),
      block: fc.option(fc.array(tie('directive'), { maxLength: 3, depthIdentifier: 'body' }), { nil: undefined, depthIdentifier: 'body' }),
    }),
  }))
  fc.assert(
    fc.property(fc.array(directive, { maxLength: 3 }), (directives) => {
      const pos = { file: 'f', line: 1, column: 1 }
      const key = { zone: '.', port: '53', transport: 'dns', text: '.:53', pos }
      const printed = printCorefile({ blocks: [{ keys: [key], directives, pos }] } as unknown as Corefile)
      const [block] = bare(parseCorefile(printed, 'f')) as { directives: unknown }[]
      expect(block?.directives, printed).toEqual(JSON.parse(JSON.stringify(directives)))
    }),
    bounds,
  )
})

test('helpers throw nothing but Error, and agree with themselves', () => {
  const unit = fc.constantFrom('ns', 'us', 'ms', 's', 'm', 'h')
  fc.assert(
    fc.property(fc.nat({ max: 2_500_000 }), unit, (value, name) => {
      expect(parseDuration(`-${value}${name}`)).toBeCloseTo(-parseDuration(`${value}${name}`))
    }),
    bounds,
  )
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      for (const reader of [parseDuration, splitHostPort, splitZonePort, reverseZones, isDomainName, quote]) {
        try {
          reader(text)
        } catch (error) {
          expect(error).toBeInstanceOf(Error)
          expect(error).not.toBeInstanceOf(TypeError)
          expect(error).not.toBeInstanceOf(RangeError)
        }
      }
    }),
    bounds,
  )
  fc.assert(
    fc.property(fc.ipV4(), fc.nat({ max: 32 }), (address, bits) => {
      expect(reverseZones(`${address}/${bits}`)).toHaveLength(bits % 8 === 0 ? 1 : 2 ** (8 - (bits % 8)))
    }),
    bounds,
  )
})
