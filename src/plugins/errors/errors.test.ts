import { describe, expect, it } from 'vitest'
import { RCODE } from '../../dns/index.js'
import { type Plugin, ServeError } from '../contract.js'
import { FakeClock, query, setUp } from '../testing.js'
import errors from './index.js'

describe('set-up', () => {
  it.each([
    ['errors', undefined],
    ['errors stdout', undefined],
    ['errors {\n stacktrace\n}', undefined],
    ['errors {\n consolidate 1m error1\n consolidate 5s error2 info show_first\n}', undefined],
    ['errors visible', 'plugin/errors: Corefile:2 - Error during parsing: invalid log file: visible'],
    ['errors a b', "Wrong argument count or unexpected line ending after 'b'"],
    ['errors\nerrors', 'plugin/errors: this plugin can only be used once per Server Block'],
    ['errors {\n log visible\n}', 'Unknown field log'],
    ['errors {\n consolidate 1m\n}', "Wrong argument count or unexpected line ending after '1m'"],
    ['errors {\n consolidate 1m .* extra\n}', 'unknown option in consolidate: extra'],
    ['errors {\n consolidate 1 .*\n}', 'time: missing unit in duration "1"'],
    ['errors {\n consolidate 1m ())\n}', 'Corefile:3 - Error during parsing: error parsing regexp: unexpected ): `())`'],
    ['errors {\n consolidate 1m a warning error\n}', 'multiple log levels specified in consolidate'],
    ['errors {\n consolidate 1m a show_first info\n}', 'log level must come before show_first in consolidate'],
    ['errors {\n consolidate 1m a info show_first x\n}', "unexpected line ending after 'x'"],
  ])('%j', (text, error) => {
    if (error === undefined) expect(() => setUp(errors, text)).not.toThrow()
    else expect(() => setUp(errors, text)).toThrow(error)
  })

  it('turns on stack traces for the block', () => {
    expect(setUp(errors, 'errors {\n stacktrace\n}').context.block.stacktrace).toBe(true)
  })
})

const fail = (plugin: Plugin, message: string, rcode?: number): void => {
  expect(() =>
    plugin.serveDNS!(query('Example.org.', 'AAAA'), () => {
      throw new ServeError(message, rcode)
    }),
  ).toThrow(message)
}

describe('serving', () => {
  it('prints rcode, name, type and message of what is thrown and of what is rejected, and passes it on', async () => {
    const { plugin, context } = setUp(errors, 'errors')
    fail(plugin, 'upstream\nlied', RCODE.REFUSED)
    await expect(plugin.serveDNS!(query('a.example.', 'TYPE666'), () => Promise.reject(new Error('late')))).rejects.toThrow('late')
    expect(context.log.lines).toEqual([
      '[ERROR] plugin/errors: 5 example.org. AAAA: upstream?lied',
      '[ERROR] plugin/errors: 2 a.example. TYPE666: late',
    ])
  })

  it('prints an error of a question asked on behalf of the client once, by the name of the client', () => {
    const { plugin, context } = setUp(errors, 'errors')
    const client = query('www.example.', 'A')
    const inner = client.derive(query('target.example.', 'A').name)
    const error = new ServeError('gone')
    const refuse = (): never => {
      throw error
    }
    expect(() => plugin.serveDNS!(client, () => plugin.serveDNS!(inner, refuse))).toThrow('gone')
    expect(context.log.lines).toEqual(['[ERROR] plugin/errors: 2 www.example. A: gone'])
  })

  it('leaves crashes to the server, which prints them with or without errors', () => {
    const { plugin, context } = setUp(errors, 'errors')
    const crash = (): never => {
      throw new TypeError('x is undefined')
    }
    expect(() => plugin.serveDNS!(query('a.', 'A'), crash)).toThrow('x is undefined')
    expect(context.log.lines).toEqual([])
  })

  it('sums up errors alike after the period, by the first pattern that matches', () => {
    const clock = new FakeClock()
    const { plugin, context } = setUp(errors, 'errors {\n consolidate 90s "^read .* timeout$" warning\n consolidate 1s read info\n}', {
      clock,
    })
    for (let i = 0; i < 3; i++) fail(plugin, 'read udp: i/o timeout')
    fail(plugin, 'read refused')
    expect(context.log.lines).toEqual([])
    clock.advance(1000)
    expect(context.log.lines).toEqual(["[INFO] plugin/errors: 1 errors like 'read' occurred in last 1s"])
    clock.advance(89_000)
    expect(context.log.lines.at(-1)).toBe("[WARNING] plugin/errors: 3 errors like '^read .* timeout$' occurred in last 1m30s")
  })

  it('shows the first at once with show_first, and sums up only if there were more', () => {
    const clock = new FakeClock()
    const { plugin, context } = setUp(errors, 'errors {\n consolidate 1s bad warning show_first\n}', { clock })
    fail(plugin, 'bad')
    clock.advance(1000)
    expect(context.log.lines).toEqual(['[WARNING] plugin/errors: 2 example.org. AAAA: bad'])
    fail(plugin, 'bad')
    fail(plugin, 'bad')
    plugin.onShutdown!('exit')
    expect(context.log.lines.slice(2)).toEqual(["[WARNING] plugin/errors: 2 errors like 'bad' occurred in last 1s"])
    clock.advance(2000)
    expect(context.log.lines).toHaveLength(3)
  })
})
