import { expect, test } from 'vitest'
import type { Source } from '../plugins/contract.js'
import type { ToServing } from './protocol.js'
import { Sources } from './sources.js'

type Message = Extract<ToServing, { kind: 'source' }>

class FakeSource implements Source<number> {
  readonly key = 'numbers'
  readonly state: number[] = []
  running = 0
  #emit: ((part: readonly number[]) => void) | undefined
  start(emit: (part: readonly number[]) => void): void {
    this.running++
    this.#emit = emit
  }
  stop(): void {
    this.running--
  }
  *snapshot(): Iterable<readonly number[]> {
    for (let i = 0; i < this.state.length; i += 2) yield this.state.slice(i, i + 2)
  }
  add(value: number): void {
    this.state.push(value)
    this.#emit?.([value])
  }
}

const settle = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
}
const short = (messages: readonly Message[]): string =>
  messages.map(({ op, part }) => `${op}${part.length > 0 ? `(${part.join()})` : ''}`).join(' ')

test('a subscriber gets the state in parts, then what comes after it, numbered', async () => {
  const sources = new Sources(() => undefined)
  const source = new FakeSource()
  sources.use(1, source as Source)
  await sources.start(1)
  for (const value of [1, 2, 3, 4, 5]) source.add(value)
  const got: Message[] = []
  sources.subscribe('numbers', 0, (message) => got.push(message))
  source.add(6)
  await settle()
  source.add(7)
  expect(short(got)).toBe('begin apply(1,2) apply(6) apply(3,4) apply(5,6) swap apply(7)')
  expect(got.map(({ number }) => number)).toEqual([0, 1, 2, 3, 4, 5, 6])
})

test('a subscription may come before its source', async () => {
  const sources = new Sources(() => undefined)
  const got: Message[] = []
  sources.subscribe('numbers', 0, (message) => got.push(message))
  sources.use(1, new FakeSource() as Source)
  await settle()
  expect(short(got)).toBe('begin swap')
})

test('a source of the same key runs on over a reload, and stops with its last generation', async () => {
  const sources = new Sources(() => undefined)
  const [first, second] = [new FakeSource(), new FakeSource()]
  sources.use(1, first as Source)
  await sources.start(1)
  sources.use(2, second as Source)
  await sources.start(2)
  await sources.release(1)
  expect([first.running, second.running]).toEqual([1, 0])
  await sources.release(2)
  expect(first.running).toBe(0)
})

test('a thread that has ended is sent nothing more', async () => {
  const sources = new Sources(() => undefined)
  const source = new FakeSource()
  sources.use(1, source as Source)
  await sources.start(1)
  const got: Message[] = []
  sources.subscribe('numbers', 0, (message) => got.push(message))
  await settle()
  sources.drop(0)
  source.add(1)
  await settle()
  expect(short(got)).toBe('begin swap')
})
