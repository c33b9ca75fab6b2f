import { describe, expect, it } from 'vitest'
import { startServer } from '../../server/testing.js'
import { query, setUp } from '../testing.js'
import view from './index.js'

it.each([
  ['view', 'plugin/view: Corefile:2 - Error during parsing: Wrong argument count or unexpected line ending after'],
  ['view a b', "unexpected line ending after 'b'"],
  ['view a\nview b', 'plugin/view: this plugin can only be used once per Server Block'],
  ['view a {\n foo bar\n}', "unknown property 'foo'"],
  ['view a {\n expr invalid expression\n}', 'plugin/view: unknown name invalid'],
])('refuses %j', (text, error) => {
  expect(() => setUp(view, text)).toThrow(error)
})

describe('filtering', () => {
  it.each([
    ["expr type() == 'A'\n expr name() endsWith 'org.'", true],
    ["expr type() == 'A'\n expr name() == 'x.'", false],
    ['expr 1', false],
    ["expr incidr('invalid', '1.2.3.0/24')", false],
    ['', true],
  ])('%j lets a query through: %s', (tests, through) => {
    expect(setUp(view, `view v {\n ${tests}\n}`).plugin.filter!(query('Example.org.', 'A'))).toBe(through)
  })

  it('names itself to the block and in the metadata', () => {
    const { plugin, context } = setUp(view, 'view v')
    const asked = query('a.', 'A')
    asked.metadata = new Map()
    plugin.metadata!(asked)
    expect([context.block.viewName, asked.metadata.get('view/name')?.()]).toEqual(['v', 'v'])
  })

  it('hands a query on to the next block of the zone', async () => {
    const block = (test: string, address: string): string =>
      `.:0 {\n${test}\ntemplate IN ANY . {\n answer "{{ .Name }} 60 IN A ${address}"\n}\n}\n`
    const server = await startServer({ corefile: block("view a {\n expr type() == 'A'\n}", '192.0.2.1') + block('', '192.0.2.2') })
    const answer = async (type: string): Promise<unknown> => (await server.query('x.test.', type)).answers[0]?.data
    expect(await answer('A')).toEqual({ kind: 'A', address: '192.0.2.1' })
    expect(await answer('MX')).toEqual({ kind: 'A', address: '192.0.2.2' })
    await server.close()
  })
})
