import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { FileReplica, FileSource } from './file-source.js'
import { FakeClock } from './testing.js'

const folder = mkdtempSync(path.join(tmpdir(), 'cairndns-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it.each([0, 1, 700, 3000])(
  'gives a new thread the whole of a file that becomes one of %i rows while the thread is being filled',
  (after) => {
    const file = path.join(folder, 'rows')
    const write = (text: string, time: number) => {
      writeFileSync(file, text)
      utimesSync(file, time, time)
    }
    const lines = (count: number, name: string) => Array.from({ length: count }, (_, i) => `${name} ${i}`)
    write(lines(1200, 'old').join('\n'), 1000)
    const clock = new FakeClock()
    const source = new FileSource<string>({
      key: 'rows',
      path: file,
      interval: 1000,
      clock,
      parse: (text) => text.split('\n').filter((line) => line !== ''),
      onRead: () => undefined,
      onError: (error) => {
        throw error
      },
    })
    const replica = new FileReplica<string, readonly string[]>((rows) => [...rows])
    source.start((part) => replica.apply(part))
    replica.begin()
    let parts = 0
    for (const part of source.snapshot()) {
      replica.apply(part)
      if (++parts !== 2) continue
      write(lines(after, 'new').join('\n'), 2000)
      clock.advance(1000)
    }
    replica.swap()
    expect(replica.value).toEqual(lines(after, 'new'))
    source.stop()
  },
)
