import { describe, expect, it } from 'vitest'
import { RCODE } from '../../dns/index.js'
import { type Reply, ServeError } from '../contract.js'
import { FakeClock, query, setUp } from '../testing.js'
import cancel from './index.js'

it.each([
  ['cancel', undefined],
  ['cancel 1s', undefined],
  ['cancel 5', 'plugin/cancel: invalid duration: "5"'],
  ['cancel -1s', 'plugin/cancel: invalid negative duration: "-1s"'],
  ['cancel 0', 'plugin/cancel: invalid negative duration: "0"'],
  ['cancel 1s 2s', "plugin/cancel: Corefile:2 - Error during parsing: Wrong argument count or unexpected line ending after '2s'"],
  ['cancel {\n foo\n}', "unknown property 'foo'"],
])('set-up of %j', (text, error) => {
  if (error === undefined) expect(() => setUp(cancel, text)).not.toThrow()
  else expect(() => setUp(cancel, text)).toThrow(error)
})

describe('serving', () => {
  it('brings the deadline forward, never back', () => {
    const clock = new FakeClock(0)
    const { plugin } = setUp(cancel, 'cancel 1s', { clock })
    for (const [received, deadline] of [
      [0, 1000],
      [-4500, 500],
    ] as const) {
      const asked = query('a.', 'A', { received })
      void plugin.serveDNS!(asked, (q) => q.reply('x', RCODE.NOERROR))
      expect(asked.deadline).toBe(deadline)
    }
  })

  it('answers SERVFAIL soon after the time-out for a plugin that does not look at the deadline', async () => {
    const clock = new FakeClock(0)
    const { plugin } = setUp(cancel, 'cancel 1s', { clock })
    const result = Promise.resolve(plugin.serveDNS!(query('a.', 'A'), () => new Promise<Reply>(() => undefined)))
    const failed = expect(result).rejects.toThrow(ServeError)
    clock.advance(1010)
    await failed
  })

  it('passes on what comes in time, at once or later', async () => {
    const { plugin } = setUp(cancel, 'cancel 1s', { clock: new FakeClock(0) })
    const asked = query('a.', 'A')
    const reply = asked.reply('x', RCODE.NOERROR)
    expect(plugin.serveDNS!(asked, () => reply)).toBe(reply)
    expect(await plugin.serveDNS!(asked, () => Promise.resolve(reply))).toBe(reply)
    await expect(plugin.serveDNS!(asked, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  })
})
