import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { parseCorefile } from '../corefile/index.js'
import { FakeLog } from '../plugins/testing.js'
import { directPair } from './channel.js'
import type { Channel, FromServing, ToServing } from './protocol.js'
import { type ServingHandle, ServingThreads, WATCH } from './threads.js'

const corefile = parseCorefile('.:53 {\n whoami\n}\n', 'Corefile')

/** A serving half that answers as it is told. */
class FakeThread implements ServingHandle {
  readonly channel: Channel<ToServing, FromServing>
  readonly serving: Channel<FromServing, ToServing>
  readonly got: ToServing[] = []
  fail: string | undefined
  silent = false
  #exit: ((error: Error | undefined) => void) | undefined

  constructor() {
    const [control, serving] = directPair<ToServing, FromServing>()
    this.channel = control
    this.serving = serving
    serving.onMessage((message) => this.#take(message))
    serving.post({ kind: 'online' })
  }
  onExit(listener: (error: Error | undefined) => void): void {
    this.#exit = listener
  }
  async terminate(): Promise<void> {
    this.die(undefined)
  }
  die(error: Error | undefined): void {
    this.#exit?.(error)
  }
  #take(message: ToServing): void {
    this.got.push(message)
    if (this.silent) return
    if (message.kind === 'prepare') {
      const { generation } = message
      if (this.fail !== undefined) this.serving.post({ kind: 'failed', generation, error: { message: this.fail, stack: undefined } })
      else this.serving.post({ kind: 'prepared', generation, listening: ['.:53'], warnings: [] })
    } else if (message.kind === 'commit') this.serving.post({ kind: 'committed', generation: message.generation })
    else if (message.kind === 'beat') this.serving.post({ kind: 'heartbeat', notReady: ['kubernetes'], inFlight: 0 })
    else if (message.kind === 'stop') this.serving.post({ kind: 'stopped' })
  }
  kinds(): string[] {
    return this.got.map(({ kind }) => kind)
  }
}

function rig(count = 1) {
  const fakes: FakeThread[] = []
  const log = new FakeLog('')
  const ended: number[] = []
  const retired: number[] = []
  const spawn = (): ServingHandle => {
    const fake = new FakeThread()
    fakes.push(fake)
    return fake
  }
  const events = {
    message: () => undefined,
    ended: (thread: { number: number }) => void ended.push(thread.number),
    retired: (generation: number) => void retired.push(generation),
  }
  return { threads: new ServingThreads(count, spawn, events, log), fakes, log, ended, retired }
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] }))
afterEach(() => void vi.useRealTimers())

test('a configuration is prepared and committed in every thread', async () => {
  const { threads, fakes } = rig(2)
  await threads.start()
  expect(await threads.prepare(1, corefile)).toMatchObject({ listening: ['.:53'] })
  await threads.commit(1, corefile)
  for (const fake of fakes) expect(fake.kinds()).toEqual(['prepare', 'commit'])
  expect(await threads.notReady()).toEqual(['kubernetes'])
  await threads.stop(0)
})

test("one thread's failure is the failure", async () => {
  const { threads, fakes } = rig(2)
  await threads.start()
  fakes[1]!.fail = 'listen tcp :53: bind: address already in use'
  await expect(threads.prepare(1, corefile)).rejects.toThrow('listen tcp :53: bind: address already in use')
})

test('a generation is retired once every thread has drained it', async () => {
  const { threads, fakes, retired } = rig(2)
  await threads.start()
  for (const id of [1, 2]) {
    await threads.prepare(id, corefile)
    await threads.commit(id, corefile)
  }
  fakes[0]!.serving.post({ kind: 'retired', generation: 1 })
  await Promise.resolve()
  expect(retired).toEqual([])
  fakes[1]!.serving.post({ kind: 'retired', generation: 1 })
  await Promise.resolve()
  expect(retired).toEqual([1])
})

test('a thread that dies is replaced and takes over what is served, later each time', async () => {
  const { threads, fakes, log, ended } = rig()
  await threads.start()
  await threads.prepare(1, corefile)
  await threads.commit(1, corefile)
  fakes[0]!.die(new Error('out of memory'))
  expect(threads.healthy()).toBe(false)
  expect(log.lines.at(-1)).toContain('Serving thread 0 ended: out of memory. Starting another in 100 ms')
  await vi.advanceTimersByTimeAsync(100)
  expect(fakes[1]!.kinds()).toEqual(['prepare', 'commit'])
  expect(threads.healthy()).toBe(true)
  expect(log.lines.at(-1)).toContain('Serving thread 0 is back')
  fakes[1]!.die(undefined)
  await vi.advanceTimersByTimeAsync(150)
  expect(fakes).toHaveLength(2)
  await vi.advanceTimersByTimeAsync(100)
  expect(fakes).toHaveLength(3)
  expect(ended).toEqual([0, 1])
})

test('a thread that dies while it prepares makes the preparation fail', async () => {
  const { threads, fakes } = rig()
  await threads.start()
  fakes[0]!.silent = true
  const prepared = threads.prepare(1, corefile)
  fakes[0]!.die(new Error('boom'))
  await expect(prepared).rejects.toThrow('serving thread ended: boom')
})

test('a thread without a sign of life is unhealthy, and then replaced', async () => {
  const { threads, fakes, log } = rig()
  await threads.start()
  await threads.prepare(1, corefile)
  await threads.commit(1, corefile)
  await vi.advanceTimersByTimeAsync(WATCH.silent + 100)
  expect(threads.healthy()).toBe(false)
  await vi.advanceTimersByTimeAsync(WATCH.hung)
  expect(log.lines.join('\n')).toContain('has given no sign of life for 5 s')
  expect(fakes).toHaveLength(2)
  await threads.stop(0)
})

test('a thread that does not end is cut off', async () => {
  const { threads, fakes } = rig()
  await threads.start()
  fakes[0]!.silent = true
  const stopped = threads.stop(1_000)
  await vi.advanceTimersByTimeAsync(3_000)
  await stopped
})
