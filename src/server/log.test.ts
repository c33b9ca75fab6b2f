import { expect, test } from 'vitest'
import { stdoutSink } from './log.js'

test('a reader of standard output that has stopped costs log lines, not memory', () => {
  const written: string[] = []
  const output = { writableLength: 0, write: (text: string) => written.push(text) > 0, on: () => output } as never as NodeJS.WriteStream
  const stuck = output as unknown as { writableLength: number }
  const sink = stdoutSink(output)
  sink.write('one\n')
  stuck.writableLength = 4 << 20
  sink.write('two\n')
  sink.write('three\n')
  stuck.writableLength = 0
  sink.write('four\n')
  expect(written).toEqual(['one\n', '[WARNING] 10 characters of log were dropped: standard output was not read\n', 'four\n'])
})
