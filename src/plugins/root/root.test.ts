import { tmpdir } from 'node:os'
import { expect, it } from 'vitest'
import { setUp } from '../testing.js'
import root from './index.js'

it('sets the folder of the block', () => {
  expect(setUp(root, `root ${tmpdir()}`).context.block.root).toBe(tmpdir())
})

it.each([
  ['root', "plugin/root: Corefile:2 - Error during parsing: Wrong argument count or unexpected line ending after 'root'"],
  ['root a b', "Wrong argument count or unexpected line ending after 'b'"],
  ['root {\n /tmp\n}', 'Wrong argument count'],
])('refuses %j', (text, error) => {
  expect(() => setUp(root, text)).toThrow(error)
})

it('warns of a folder that is not there, since it may come later; `check` notes it', () => {
  const { context } = setUp(root, 'root /does/not/exist')
  expect(context.log.lines).toEqual(['[WARNING] plugin/root: Root path does not exist: /does/not/exist'])
  expect(setUp(root, 'root /does/not/exist', { checking: true }).context.notes).toEqual(['Root path does not exist: /does/not/exist'])
})
