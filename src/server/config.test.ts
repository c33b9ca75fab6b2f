import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { configHash, defaultCorefile, fileReader, loadConfig } from './config.js'
import { parseFlags, UsageError } from './flags.js'

const plugins = [
  ...['errors', 'forward', 'log', 'whoami'].map((directive) => ({ directive, specifier: `src/plugins/${directive}`, builtin: true })),
  { directive: 'dnssec', specifier: undefined, builtin: true },
]
const load = (text: string) => loadConfig(text, 'Corefile', { port: '53', plugins, env: {} })

describe('a Corefile on its way to set-up', () => {
  test('a directive of CoreDNS that is not built yet has a message of its own', () => {
    expect(() => load('.:53 {\n whoami\n dnssec\n}\n')).toThrow(
      "Corefile:3 - Error during parsing: directive 'dnssec' is known to CoreDNS but not built yet",
    )
  })
  test('any other is unknown, in CoreDNS’s words', () => {
    expect(() => load('.:53 {\n whomai\n}\n')).toThrow(
      /^Corefile:2 - Error during parsing: Unknown directive 'whomai'.*did you mean 'whoami'/,
    )
  })
  test('proxy is read as forward, with a warning that says what to write', () => {
    const tree = load('.:53 {\n proxy . 10.0.0.1\n}\n')
    expect(tree.blocks[0]?.directives[0]?.name).toBe('forward')
    expect(tree.warnings.map(({ message }) => message)).toEqual([
      "directive 'proxy' was removed in CoreDNS 1.5.0 and is read as 'forward'; write 'forward . 10.0.0.1'",
    ])
  })
  test('without any block it is the built-in default', () => {
    expect(load('# nothing\n').blocks[0]?.directives.map(({ name }) => name)).toEqual(['whoami', 'log'])
    expect(defaultCorefile('1053')).toContain('.:1053 {')
  })
  test('comments and blanks do not change the hash; an argument does', () => {
    const hash = (text: string): string => configHash(load(text))
    expect(hash('.:53 {\n  whoami # x\n\n}\n')).toBe(hash('.:53 {\nwhoami\n}'))
    expect(hash('.:53 {\n log . x\n}\n')).not.toBe(hash('.:53 {\n log . y\n}\n'))
    expect(hash('.:53 {\n log {\n class all\n }\n}\n')).not.toBe(hash('.:53 {\n log {\n class error\n }\n}\n'))
  })
})

describe('flags, as Go reads them', () => {
  test.each([
    [['-conf', 'x'], { conf: 'x' }, [], []],
    [['--conf=x', '-quiet'], { conf: 'x' }, ['quiet'], []],
    [['-conf='], { conf: '' }, [], []],
    [['-p', '1053'], { 'dns.port': '1053' }, [], []],
    [['-dns.port=1053', '-p=54'], { 'dns.port': '54' }, [], []],
    [['-quiet=false', '-plugins=1'], {}, ['plugins'], []],
    [['-quiet', 'word', '-conf', 'x'], {}, ['quiet'], ['word', '-conf', 'x']],
    [['-quiet', '--', '-conf'], {}, ['quiet'], ['-conf']],
    [['-'], {}, [], ['-']],
  ])('%j', (args, values, switches, rest) => {
    const flags = parseFlags(args)
    expect([Object.fromEntries(flags.values), [...flags.switches], flags.rest]).toEqual([values, switches, rest])
  })
  test.each([
    [['-bogus'], 'flag provided but not defined: -bogus'],
    [['-conf'], 'flag needs an argument: -conf'],
    [['---conf'], 'bad flag syntax: ---conf'],
    [['-=x'], 'bad flag syntax: -=x'],
    [['-quiet=x'], 'invalid boolean value "x" for -quiet: parse error'],
  ])('%j is refused', (args, message) => {
    expect(() => parseFlags(args)).toThrow(UsageError)
    expect(() => parseFlags(args)).toThrow(message)
  })
})

describe('a Corefile that is read again', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairndns-'))
  const file = path.join(folder, 'Corefile')

  test('one that has become a pipe is refused, not waited for', () => {
    fs.writeFileSync(file, 'a')
    const read = fileReader(file, 'loading')
    expect(read()).toBe('a')
    fs.rmSync(file)
    execFileSync('mkfifo', [file])
    expect(read).toThrow(`loading: open ${file}: is not a regular file`)
    fs.rmSync(file)
  })
  test('one of enormous size is refused before it is read', () => {
    fs.writeFileSync(file, '')
    fs.truncateSync(file, 1 << 30)
    expect(fileReader(file, 'loading')).toThrow('file is too long: 1073741824 >')
    fs.rmSync(folder, { recursive: true })
  })
})
