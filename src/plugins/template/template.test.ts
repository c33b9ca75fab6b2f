import { describe, expect, it } from 'vitest'
import { formatRecord, type Message, parseRecord } from '../../dns/index.js'
import { ServeError } from '../contract.js'
import { type FakeContext, fakeBlock, lastHandler, type QueryOptions, query, setUp } from '../testing.js'
import template from './index.js'
import { compileTemplate, type Data } from './template.js'

describe('text templates', () => {
  const data: Data = new Map<string, never>(
    Object.entries({
      Name: 'ip-1-2.example.',
      Match: ['ip-1-2.example.', '1'],
      Group: new Map([['a', '1f']]),
      Var: new Map<string, unknown>([['yes', true]]),
      Meta: new Map([['x/y', 'm']]),
    }) as never,
  )
  it.each([
    ['plain', 'plain'],
    ['{{ .Name }} {{.Group.a}}|{{ .Group.none }}|', 'ip-1-2.example. 1f||'],
    ['{{ index .Match 1 }} {{ len .Match }}', '1 2'],
    ['{{ parseInt .Group.a 16 8 }} {{ .Group.a | printf "%4s" }}', '31   1f'],
    ['{{ if .Var.yes }}a{{ else }}b{{ end }}{{ if eq .Name "x" }}c{{ else if .Group.none }}d{{ else }}e{{ end }}', 'ae'],
    ['a {{- /* no */ -}} b {{- " c" }}', 'ab c'],
    ['{{ .Meta "x/y" }}{{ .Meta "none" }}', 'm'],
    ['{{ "}}" }}{{ `{{` }}', '}}{{'],
    ['{{ printf "%02x-%d" (parseInt "10" 10 8) 7 }}', '0a-7'],
    ['{{ and true (not false) }} {{ or "" "x" }} {{ lt 1 2 }} {{ .Match }}', 'true x true [ip-1-2.example. 1]'],
  ])('%j gives %j', (text, result) => {
    expect(compileTemplate('answer', text)(data)).toBe(result)
  })

  it.each([
    ['{{', 'template: answer:1: unclosed action'],
    ['{{ notAFunction }}', 'template: answer:1: function "notAFunction" not defined'],
    ['{{ if .Name }}x', 'unexpected EOF'],
    ['{{ end }}', 'unexpected {{end}}'],
    ['{{ range .Match }}{{ end }}', "'range' is known, but not built yet"],
    ['{{ .Name 1 }}', "can't give argument to non-function .Name"],
    ['{{ (.Name }}', 'unclosed left paren'],
    ['{{ }}', 'missing value for command'],
    ['{{ ~ }}', 'unexpected "~" in operand'],
  ])('%j is refused', (text, error) => {
    expect(() => compileTemplate('answer', text)).toThrow(error)
  })

  it.each([
    ['{{ parseInt "gg" 16 8 }}', 'strconv.ParseUint: parsing "gg": invalid syntax'],
    ['{{ parseInt "fff" 16 8 }}', 'value out of range'],
    ['{{ parseInt }}', 'wrong number of args for parseInt'],
    ['{{ index .Match 9 }}', 'index out of range: 9'],
    ['{{ .Nope }}', "can't evaluate field Nope"],
  ])('%j fails when it is filled in', (text, error) => {
    expect(() => compileTemplate('answer', text)(data)).toThrow(error)
  })
})

describe('set-up', () => {
  it.each([
    ['template ANY', "plugin/template: Corefile:2 - Error during parsing: Wrong argument count or unexpected line ending after 'ANY'"],
    ['template XX A', 'invalid query class XX'],
    ['template IN XX', 'invalid RR class XX'],
    ['template ANY ANY {\n rcode\n}', "Wrong argument count or unexpected line ending after 'rcode'"],
    ['template ANY ANY {\n rcode XX\n}', 'unknown rcode XX'],
    ['template ANY ANY {\n answer\n}', 'Wrong argument count'],
    ['template ANY ANY {\n answer "{{"\n}', 'could not compile template: answer, template: answer:1: unclosed action'],
    ['template ANY ANY {\n match (\n}', 'could not parse regex: (, error parsing regexp'],
    [`template ANY ANY {\n match ${'a'.repeat(10_001)}\n}`, 'regex pattern too long: 10001 > 10000'],
    ['template ANY ANY {\n ederror x\n}', 'error parsing extended DNS error code x'],
    ['template ANY ANY {\n ederror 1 a b\n}', 'Wrong argument count'],
    ['template ANY ANY {\n var a\n}', "Wrong argument count or unexpected line ending after 'a'"],
    ['template ANY ANY {\n var 1a 1\n}', 'invalid variable name "1a"'],
    ['template ANY ANY {\n var group 1\n}', 'variable name "group" is reserved'],
    ['template ANY ANY {\n var a 1 +\n}', 'could not compile expression: a, '],
    ['template ANY ANY {\n expr invalid expression\n}', 'could not compile expression: unknown name invalid'],
    ['template ANY ANY {\n foo\n}', "unexpected line ending after 'foo'"],
  ])('%j is refused', (text, error) => {
    expect(() => setUp(template, text)).toThrow(error)
  })
})

interface Answer {
  readonly rcode: number
  readonly by: string
  readonly records: readonly string[]
  readonly reply: Message
  readonly context: FakeContext
}

/** The answer to one query; undefined if it was passed on. */
async function ask(
  text: string,
  name: string,
  type = 'A',
  over: QueryOptions & { resolve?: FakeContext['resolve'] } = {},
): Promise<Answer | undefined> {
  const end = lastHandler((q) => q.reply('next', 0))
  const { plugin, context } = setUp(template, text, {
    block: fakeBlock(['.']),
    ...(over.resolve === undefined ? {} : { resolve: over.resolve }),
  })
  const reply = (await plugin.serveDNS!(query(name, type, over), end.next)) as Message
  if (end.calls.length > 0) return undefined
  const records = [...reply.answers, ...reply.authorities, ...reply.additionals].map((rr) => formatRecord(rr).replace(/\s+/g, ' '))
  return { rcode: reply.rcode, by: reply.by, records, reply, context }
}

describe('serving', () => {
  const IP = 'match ^ip-(?P<a>[0-9]+)-(?P<b>[0-9]+)[.]example[.]$\n answer "{{ .Name }} 60 IN A 10.0.{{ .Group.a }}.{{ .Group.b }}"'

  it('fills in the groups of the pattern', async () => {
    expect(await ask(`template IN A example {\n ${IP}\n}`, 'IP-1-2.Example.')).toMatchObject({
      records: ['ip-1-2.example. 60 IN A 10.0.1.2'],
      by: 'template',
    })
  })

  it.each([
    ['other class', 'template CH A .', 'a.example.', 'A'],
    ['other type', 'template IN AAAA .', 'a.example.', 'A'],
    ['other zone', 'template IN A other.', 'a.example.', 'A'],
  ])('passes on: %s', async (_, head, name, type) => {
    expect(await ask(`${head} {\n answer "x 1 IN A 1.2.3.4"\n}`, name, type)).toBeUndefined()
  })

  it('is SERVFAIL without a match, unless the rule falls through', async () => {
    expect(await ask(`template IN A {\n ${IP}\n}`, 'a.example.')).toMatchObject({ rcode: 2, by: '' })
    expect(await ask(`template IN A {\n ${IP}\n fallthrough\n}`, 'a.example.')).toBeUndefined()
    expect(await ask(`template IN A {\n ${IP}\n fallthrough other\n}`, 'a.example.')).toMatchObject({ rcode: 2 })
  })

  it('answers with rcode, sections and extended error', async () => {
    const text = 'template ANY ANY {\n rcode NXDOMAIN\n authority "invalid. 60 {{ .Class }} SOA ns. h. (1 2 3 4 5)"\n ederror 21 Blocked\n}'
    const answer = await ask(text, 'a.invalid.')
    expect(answer).toMatchObject({ rcode: 3, records: ['invalid. 60 IN SOA ns. h. 1 2 3 4 5'] })
    expect(answer?.reply.edns?.options).toEqual([{ code: 15, data: Buffer.from('\0\x15Blocked') }])
    const key = 'coredns_template_matches_total{server="dns://:53",zone=".",view="",class="IN",type="A"}'
    expect(answer?.context.metrics.values.get(key)).toBe(1)
  })

  it('leaves SERVFAIL to the server', async () => {
    expect(await ask('template ANY ANY {\n rcode SERVFAIL\n}', 'a.')).toMatchObject({ rcode: 2, by: '' })
  })

  it.each(['{{ .Name }}', '{{ parseInt `gg` 16 8 }}'])('throws where %j gives no record', async (text) => {
    await expect(ask(`template ANY ANY {\n answer "${text}"\n}`, 'a.')).rejects.toThrow(ServeError)
  })

  it('works out variables and tests', async () => {
    const text = (test: string): string =>
      `template IN A {\n match ^(?P<n>[0-9]+)[.]$\n var num int(group('n'))\n var twice num * 2\n expr ${test}\n answer "{{ .Name }} 60 IN A 10.0.0.{{ .Var.twice }}"\n fallthrough\n}`
    expect(await ask(text('num > 1'), '4.')).toMatchObject({ records: ['4. 60 IN A 10.0.0.8'] })
    expect(await ask(text('num > 5'), '4.')).toBeUndefined()
    expect(await ask(text("incidr(name(), '10.0.0.0/8')"), '4.')).toMatchObject({ rcode: 2 })
  })

  it('looks up what an alias points to, as the client, and goes without where that fails', async () => {
    const text = 'template IN A {\n answer "{{ .Name }} 60 IN CNAME target.example."\n}'
    const found = await ask(text, 'a.', 'A', {
      resolve: async (q) => q.reply('x', 0, { answers: [parseRecord('target.example. 30 IN A 192.0.2.1')] }),
    })
    expect(found?.records).toEqual(['a. 60 IN CNAME target.example.', 'target.example. 30 IN A 192.0.2.1'])
    const failed = await ask(text, 'a.', 'A', { resolve: () => Promise.reject(new ServeError('away')) })
    expect(failed?.records).toEqual(['a. 60 IN CNAME target.example.'])
  })
})
