import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { parseCorefile } from '../corefile/index.js'
import { FakeLog } from '../plugins/testing.js'
import { directPair } from './channel.js'
import type { Channel, FromServing, ToServing } from './protocol.js'
import type { ServingHandle } from './thread.js'
import { ServingThreads, WATCH } from './threads.js'

const corefile = parseCorefile('.:53 {\n whoami\n}\n', 'Corefile')

/** A serving half that answers as it is told. */
class FakeThread implements ServingHandle {
  readonly channel: Channel<ToServing, FromServing>
  readonly serving: Channel<FromServing, ToServing>
  readonly got: ToServing[] = []
  fail: string | undefined
  silent = false
  unshared: string | undefined
  #exit: ((error: Error | undefined) => void) | undefined

  constructor() {
    const [control, serving] = directPair<ToServing, FromServing>()
    this.channel = control
    this.serving = serving
    serving.onMessage((message) => this.#take(message))
    serving.post({ kind: 'online', task: 7 })
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
      else if (message.ports !== undefined) this.#prepared(generation)
    } else if (message.kind === 'open') this.#prepared(message.generation)
    else if (message.kind === 'share') this.serving.post({ kind: 'shared', error: this.unshared })
    else if (message.kind === 'commit') this.serving.post({ kind: 'committed', generation: message.generation })
    else if (message.kind === 'beat') this.serving.post({ kind: 'heartbeat', notReady: ['kubernetes'], inFlight: 0 })
    else if (message.kind === 'stop') this.serving.post({ kind: 'stopped' })
  }
  #prepared(generation: number): void {
    this.serving.post({ kind: 'prepared', generation, listening: ['.:53'], warnings: [], ports: [['dns://:53', 53]] })
  }
  kinds(): string[] {
    return this.got.map(({ kind }) => kind)
  }
}

function rig(waited?: () => number) {
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
  return { threads: new ServingThreads(spawn, events, log, waited), fakes, log, ended, retired }
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] }))
afterEach(() => void vi.useRealTimers())

test('a configuration is prepared and committed in every thread', async () => {
  const { threads, fakes } = rig()
  await threads.start()
  expect(await threads.prepare(1, corefile, 2)).toMatchObject({ listening: ['.:53'] })
  await threads.commit(1, corefile)
  expect(fakes.map((fake) => fake.kinds())).toEqual([
    ['share', 'prepare', 'commit'],
    ['prepare', 'open', 'commit'],
  ])
  expect(fakes[0]!.got[1]).toMatchObject({ count: 2, claim: 'first', ports: [] })
  expect(fakes[1]!.got[0]).toMatchObject({ count: 2, claim: 'join', ports: undefined })
  expect(fakes[1]!.got[1]).toMatchObject({ ports: [['dns://:53', 53]] })
  expect(await threads.notReady()).toEqual(['kubernetes'])
  await threads.stop(0)
})

test("one thread's failure is the failure", async () => {
  const { threads, fakes } = rig()
  await threads.start()
  await threads.prepare(1, corefile, 2)
  await threads.commit(1, corefile)
  fakes[1]!.fail = 'listen tcp :54: bind: address already in use'
  await expect(threads.prepare(2, corefile, 2)).rejects.toThrow('listen tcp :54: bind: address already in use')
  threads.abort(2)
  await vi.advanceTimersByTimeAsync(1)
  for (const fake of fakes) expect(fake.kinds().at(-1)).toBe('abort')
})

test('a generation is retired once every thread has drained it', async () => {
  const { threads, fakes, retired } = rig()
  await threads.start()
  for (const id of [1, 2]) {
    await threads.prepare(id, corefile, 2)
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
  await threads.prepare(1, corefile, 1)
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
  const prepared = threads.prepare(1, corefile, 1)
  await vi.advanceTimersByTimeAsync(1)
  fakes[0]!.die(new Error('boom'))
  await expect(prepared).rejects.toThrow('serving thread ended: boom')
})

test('a thread without a sign of life is unhealthy, and then replaced', async () => {
  const { threads, fakes, log } = rig()
  await threads.start()
  await threads.prepare(1, corefile, 1)
  await threads.commit(1, corefile)
  await vi.advanceTimersByTimeAsync(WATCH.silent + 100)
  expect(threads.healthy()).toBe(false)
  await vi.advanceTimersByTimeAsync(WATCH.hung)
  expect(log.lines.join('\n')).toContain('has given no sign of life for 5 s')
  expect(fakes).toHaveLength(2)
  await threads.stop(0)
})

test('a thread that is not let run is left alone, and replaced once it hangs', async () => {
  let starved = true
  let since = 0
  const { threads, fakes } = rig(() => (starved ? performance.now() - since : 0))
  await threads.start()
  await threads.prepare(1, corefile, 1)
  await threads.commit(1, corefile)
  await vi.advanceTimersByTimeAsync(4 * WATCH.hung)
  expect(fakes).toHaveLength(1)
  starved = false
  since = performance.now()
  await vi.advanceTimersByTimeAsync(WATCH.hung)
  expect(fakes).toHaveLength(2)
  await threads.stop(0)
})

/** With two threads that serve generation 1. */
async function pair() {
  const all = rig()
  await all.threads.start()
  await all.threads.prepare(1, corefile, 2)
  await all.threads.commit(1, corefile)
  return all
}

test('more threads: they serve what is served before they take part in what comes', async () => {
  const { threads, fakes } = rig()
  await threads.start()
  await threads.prepare(1, corefile, 1)
  await threads.commit(1, corefile)
  await threads.prepare(2, corefile, 2)
  await threads.commit(2, corefile)
  expect(fakes[0]!.kinds()).toEqual(['prepare', 'commit', 'share', 'prepare', 'commit'])
  expect(fakes[1]!.kinds()).toEqual(['prepare', 'commit', 'prepare', 'open', 'commit'])
  expect(fakes[1]!.got[0]).toMatchObject({ generation: 1, claim: 'join' })
})

test('more threads for a configuration that is taken back end with it', async () => {
  const { threads, fakes, ended } = rig()
  await threads.start()
  await threads.prepare(1, corefile, 1)
  await threads.commit(1, corefile)
  fakes[0]!.fail = 'no'
  await expect(threads.prepare(2, corefile, 2)).rejects.toThrow('no')
  threads.abort(2)
  await vi.advanceTimersByTimeAsync(1)
  expect(ended).toEqual([1])
  expect(fakes[1]!.kinds().at(-1)).toBe('stop')
  expect(fakes[0]!.kinds().at(-1)).toBe('unshare')
  expect(threads.healthy()).toBe(true)
})

test('fewer threads: those beyond end after the others have changed over, and are not replaced', async () => {
  const { threads, fakes, ended, retired, log } = await pair()
  await threads.prepare(2, corefile, 1)
  expect(fakes[1]!.kinds()).toEqual(['prepare', 'open', 'commit'])
  await threads.commit(2, corefile)
  fakes[0]!.serving.post({ kind: 'retired', generation: 1 })
  await vi.advanceTimersByTimeAsync(WATCH.silent)
  expect(fakes[1]!.kinds().at(-1)).toBe('stop')
  expect([ended, retired]).toEqual([[1], [1]])
  expect(fakes).toHaveLength(2)
  expect(log.lines).toEqual([])
})

test('where addresses cannot be shared one thread serves, and says why', async () => {
  const { threads, fakes, log } = rig()
  await threads.start()
  fakes[0]!.unshared = 'for a reason'
  await threads.prepare(1, corefile, 4)
  await threads.commit(1, corefile)
  expect(fakes).toHaveLength(1)
  expect(log.lines.join()).toContain('serving with one thread, not 4: for a reason')
})

test('a thread that is dead does not keep a reload from going through, and comes back with it', async () => {
  const { threads, fakes } = await pair()
  fakes[1]!.die(undefined)
  await threads.prepare(2, corefile, 2)
  await threads.commit(2, corefile)
  await vi.advanceTimersByTimeAsync(WATCH.firstBackoff)
  expect(fakes[2]!.got[0]).toMatchObject({ kind: 'prepare', generation: 2, claim: 'join', ports: [['dns://:53', 53]] })
  expect(threads.healthy()).toBe(true)
})

test('a thread that comes back in the middle of a reload catches up with it', async () => {
  const { threads, fakes } = await pair()
  fakes[1]!.die(undefined)
  await threads.prepare(2, corefile, 2)
  await vi.advanceTimersByTimeAsync(WATCH.firstBackoff)
  await threads.commit(2, corefile)
  await vi.advanceTimersByTimeAsync(1)
  expect(fakes[2]!.got.map((message) => ('generation' in message ? `${message.kind} ${message.generation}` : message.kind))).toEqual([
    'prepare 1',
    'commit 1',
    'prepare 2',
    'commit 2',
  ])
})

test('a thread that dies between its word and the commit is replaced, and the commit goes through', async () => {
  const { threads, fakes } = await pair()
  await threads.prepare(2, corefile, 2)
  fakes[1]!.silent = true
  const committed = threads.commit(2, corefile)
  await vi.advanceTimersByTimeAsync(1)
  fakes[1]!.die(new Error('boom'))
  await committed
  await vi.advanceTimersByTimeAsync(WATCH.firstBackoff)
  expect(fakes[2]!.kinds()).toEqual(['prepare', 'commit'])
})

test('a thread that is being replaced takes no queries: readiness is that of the others', async () => {
  const { threads, fakes } = await pair()
  fakes[1]!.die(undefined)
  expect(await threads.notReady()).toEqual(['kubernetes'])
  expect(threads.healthy()).toBe(false)
  fakes[0]!.die(undefined)
  expect(await threads.notReady()).toEqual(['server'])
})

test('a thread that does not end is cut off', async () => {
  const { threads, fakes } = rig()
  await threads.start()
  fakes[0]!.silent = true
  const stopped = threads.stop(1_000)
  await vi.advanceTimersByTimeAsync(3_000)
  await stopped
})
