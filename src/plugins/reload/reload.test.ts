import { describe, expect, it, vi } from 'vitest'
import type { ControlProcess } from '../contract.js'
import { directives, FakeClock, fakeContext, setUp } from '../testing.js'
import reload from './index.js'

describe('set-up', () => {
  it.each([
    ['reload', undefined],
    ['reload 10s', undefined],
    ['reload 2s 0s', undefined],
    ['reload 2s 1s', undefined],
    ['reload\nreload 1s', undefined],
    ['reload 1s', 'plugin/reload: interval value must be greater or equal to 2s'],
    ['reload 2s 0.1s', 'plugin/reload: jitter value must be 0 or greater or equal to 1s'],
    ['reload a', 'plugin/reload: time: invalid duration "a"'],
    ['reload 10s foo', 'plugin/reload: time: invalid duration "foo"'],
    ['reload 10s 5s foo', "Corefile:2 - Error during parsing: Wrong argument count or unexpected line ending after 'foo'"],
  ])('%j', (text, error) => {
    if (error === undefined) expect(setUp(reload, text).plugin).toBeNull()
    else expect(() => setUp(reload, text)).toThrow(error)
  })
})

function start(text: string, first = true) {
  const clock = new FakeClock()
  const file: { sha512: string; error: Error | undefined } = { sha512: 'aa', error: undefined }
  const process: ControlProcess = {
    ...fakeContext('reload').process,
    readConfig: vi.fn(() => ({ ...file })),
    reload: vi.fn(async () => undefined),
  }
  const context = fakeContext('reload', { clock, process, first })
  const part = reload.control!(directives(text), context)
  void part?.onStartup?.()
  /** Lets the poller's time pass, and what it waits for. */
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms)
    for (let i = 0; i < 4; i++) await Promise.resolve()
  }
  return { file, process, context, part, pass }
}

describe('the poller', () => {
  it('prints the hash of what runs', () => {
    expect(start('reload').context.log.lines).toEqual(['[INFO] plugin/reload: Running configuration SHA512 = aa'])
  })

  it('changes over when the hash has changed, and not before the interval', async () => {
    const { file, process, context, pass } = start('reload 2s 0s')
    await pass(2000)
    expect(process.reload).not.toHaveBeenCalled()
    file.sha512 = 'bb'
    await pass(1999)
    expect(process.reload).not.toHaveBeenCalled()
    await pass(1)
    expect(process.reload).toHaveBeenCalledTimes(1)
    expect([...context.metrics.values]).toEqual([['coredns_reload_version_info{hash="sha512",value="bb"}', 1]])
  })

  it('does not try the same bad file twice', async () => {
    const { file, process, context, pass } = start('reload 2s 0s')
    file.sha512 = 'bb'
    for (let i = 0; i < 3; i++) await pass(2000)
    expect(process.reload).toHaveBeenCalledTimes(1)
    file.sha512 = 'cc'
    await pass(2000)
    expect(process.reload).toHaveBeenCalledTimes(2)
    expect([...context.metrics.values.keys()]).toEqual(['coredns_reload_version_info{hash="sha512",value="cc"}'])
  })

  it('warns of a file that cannot be parsed, and goes on looking', async () => {
    const { file, process, context, pass } = start('reload 2s 0s')
    file.error = new Error('Corefile:3 - Unexpected EOF')
    await pass(2000)
    expect(context.log.lines.at(-1)).toBe('[WARNING] plugin/reload: Corefile parse failed: Corefile:3 - Unexpected EOF')
    file.error = undefined
    file.sha512 = 'bb'
    await pass(2000)
    expect(process.reload).toHaveBeenCalledTimes(1)
  })

  it('spreads the interval by half the jitter, which is at most half the interval', async () => {
    for (let i = 0; i < 20; i++) {
      const { process, pass } = start('reload 10s 1h')
      await pass(7499)
      expect(process.readConfig).toHaveBeenCalledTimes(1)
      await pass(5001)
      expect(process.readConfig).toHaveBeenCalledTimes(2)
    }
  })

  it('stops with its generation, and runs once though several blocks ask for it', async () => {
    const { file, process, part, pass } = start('reload 2s 0s')
    await part!.onShutdown!('reload')
    file.sha512 = 'bb'
    await pass(10_000)
    expect(process.reload).not.toHaveBeenCalled()
    expect(start('reload', false).part).toBeUndefined()
  })
})
