import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { directives, fakeContext, setUp } from '../testing.js'
import ready from './index.js'

describe('set-up', () => {
  it.each([
    ['ready', undefined],
    ['ready localhost:8091', undefined],
    ['ready {\n monitor continuously\n}', undefined],
    ['ready a', 'plugin/ready: address a: missing port in address'],
    ['ready :1 :2', "Wrong argument count or unexpected line ending after ':2'"],
    ['ready\nready', 'plugin/ready: this plugin can only be used once per Server Block'],
    ['ready {\n monitor sometimes\n}', "plugin/ready: Corefile:3 - Error during parsing: monitor type 'sometimes' not supported"],
    ['ready {\n monitor\n}', "Wrong argument count or unexpected line ending after 'monitor'"],
    ['ready {\n foo\n}', "unknown property 'foo'"],
  ])('%j', (text, error) => {
    if (error === undefined) expect(setUp(ready, text).plugin).toBeNull()
    else expect(() => setUp(ready, text)).toThrow(error)
  })
})

/** Asks /ready once for each list of plugins that are not ready at that time. */
async function ask(
  text: string,
  states: readonly (readonly string[])[],
  shutDown = false,
): Promise<{ answers: string[]; lines: string[] }> {
  let notReady: readonly string[] = []
  const base = fakeContext('ready')
  const context = fakeContext('ready', { process: { ...base.process, notReady: () => notReady } })
  const part = ready.control!(directives(text), context)!
  const handler = context.endpoints.get(':8181/ready')!
  if (shutDown) await part.onFinalShutdown!()
  const answers: string[] = []
  for (const state of states) {
    notReady = state
    let status = 0
    const response = {
      writeHead: (code: number) => {
        status = code
      },
      end: (body: string) => answers.push(`${status} ${body}`),
    }
    await handler({} as IncomingMessage, response as unknown as ServerResponse)
  }
  return { answers, lines: context.log.lines }
}

describe('the endpoint', () => {
  it('names what is not ready, sorted, in the body and in the log', async () => {
    const { answers, lines } = await ask('ready', [['kubernetes', 'erratic'], []])
    expect(answers).toEqual(['503 erratic,kubernetes', '200 OK'])
    expect(lines).toEqual(['[INFO] plugin/ready: Plugins not ready: "erratic,kubernetes"'])
  })

  it('does not ask again for what was ready once', async () => {
    expect((await ask('ready', [['a', 'b'], ['a'], ['b'], ['a'], [], ['a']])).answers).toEqual([
      '503 a,b',
      '503 a',
      '200 OK',
      '200 OK',
      '200 OK',
      '200 OK',
    ])
  })

  it('asks every time with `monitor continuously`', async () => {
    expect((await ask('ready {\n monitor continuously\n}', [[], ['a'], []])).answers).toEqual(['200 OK', '503 a', '200 OK'])
  })

  it('says that it shuts down', async () => {
    expect((await ask('ready', [[]], true)).answers).toEqual(['503 Shutting down'])
  })
})
