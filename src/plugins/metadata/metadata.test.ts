import { describe, expect, it } from 'vitest'
import type { Plugin } from '../contract.js'
import { fakeBlock, query, setUp } from '../testing.js'
import metadata from './index.js'

it.each([
  ['metadata', undefined],
  ['metadata example.com. net.', undefined],
  [
    'metadata\nmetadata',
    "plugin/metadata: Corefile:3 - Error during parsing: Wrong argument count or unexpected line ending after 'metadata'",
  ],
  ['metadata {\n foo\n}', 'Wrong argument count'],
])('set-up of %j', (text, error) => {
  if (error === undefined) expect(() => setUp(metadata, text)).not.toThrow()
  else expect(() => setUp(metadata, text)).toThrow(error)
})

describe('collecting', () => {
  const provider: Plugin = { name: 'test', metadata: (q) => void q.metadata?.set('test/name', () => q.name.toString()) }
  const collected = (text: string, name: string, zones = ['.']): string | undefined => {
    const { plugin } = setUp(metadata, text, { siblings: [provider, { name: 'other' }], block: fakeBlock(zones) })
    plugin.onStartup!()
    const asked = query(name, 'A')
    plugin.metadata!(asked)
    expect(asked.metadata).toBeDefined()
    return asked.metadata?.get('test/name')?.()
  }

  it('asks the plugins of the block', () => {
    expect(collected('metadata', 'www.example.org.')).toBe('www.example.org.')
  })

  it('keeps to its zones, or else the ones of the block', () => {
    expect(collected('metadata example.org net', 'www.EXAMPLE.org.')).toBe('www.EXAMPLE.org.')
    expect(collected('metadata example.org', 'example.com.')).toBeUndefined()
    expect(collected('metadata', 'example.com.', ['example.org.'])).toBeUndefined()
  })
})
