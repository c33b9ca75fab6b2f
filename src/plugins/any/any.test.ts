import { expect, test } from 'vitest'
import { formatRecord, Message } from '../../dns/index.js'
import type { Plugin } from '../contract.js'
import { directives, fakeContext, lastHandler, query } from '../testing.js'
import module from './index.js'

const setup = (text: string): Plugin => module.setup(directives(text), fakeContext('any')) as Plugin

test('answers ANY with one HINFO and lets everything else pass', async () => {
  const end = lastHandler((q) => q.reply('file', 0))
  const reply = Message.view(((await setup('any').serveDNS!(query('Example.org.', 'ANY'), end.next)) as Message).toBuffer())
  expect(reply.answers.map(formatRecord)).toEqual(['Example.org.\t8482\tIN\tHINFO\t"ANY obsoleted" "See RFC 8482"'])
  expect(reply.aa).toBe(false)
  expect(end.calls).toHaveLength(0)
  await setup('any').serveDNS!(query('example.org.', 'A'), end.next)
  expect(end.calls).toHaveLength(1)
})

test.each([
  ['any example.org', "Wrong argument count or unexpected line ending after 'example.org'"],
  ['any {\n x\n}', "unknown property 'x'"],
])('%s is refused', (text, message) => {
  expect(() => setup(text)).toThrow(message)
})
