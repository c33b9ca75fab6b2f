import { networkInterfaces } from 'node:os'
import { describe, expect, it } from 'vitest'
import { setUp } from '../testing.js'
import bind from './index.js'

/** An interface of this machine that has an IPv4 loopback address; it is called lo or lo0. */
const [loopback, addresses] = Object.entries(networkInterfaces()).find(([, infos]) => infos?.some((i) => i.address === '127.0.0.1'))!

const bound = (text: string): readonly string[] | undefined => setUp(bind, text).context.block.bind

describe('set-up', () => {
  it.each([
    ['bind', 'plugin/bind: at least one address or interface name is expected'],
    ['bind 1.2.3.invalid', 'plugin/bind: not a valid IP address or interface name: "1.2.3.invalid"'],
    ['bind ::1 1.2.3.4 ::5 127.9.9.0 noone', 'not a valid IP address or interface name: "noone"'],
    ['bind fe80::1%eth0', 'not a valid IP address'],
    ['bind 127.0.0.1 {\n foo\n}', 'plugin/bind: invalid option "foo"'],
    ['bind 127.0.0.1 {\n except\n}', 'at least one address or interface must be given to except subdirective'],
  ])('%j is refused', (text, error) => {
    expect(() => setUp(bind, text)).toThrow(error)
  })

  it('adds up the addresses of all uses', () => {
    expect(bound('bind 127.0.0.1 ::1\nbind 127.0.0.2')).toEqual(['127.0.0.1', '::1', '127.0.0.2'])
  })

  it('takes the addresses of an interface, without the exceptions of the same use', () => {
    expect(bound(`bind ${loopback}`)).toHaveLength(addresses!.length)
    expect(bound(`bind ${loopback} {\n except 127.0.0.1\n}`)).not.toContain('127.0.0.1')
    expect(bound(`bind ${loopback} {\n except 127.0.0.1\n}\nbind 127.0.0.1`)).toContain('127.0.0.1')
    expect(bound(`bind 127.0.0.1 127.0.0.9 {\n except ${loopback}\n}`)).toEqual(['127.0.0.9'])
  })

  it('only notes an interface that the checking machine lacks, but refuses what can be none', () => {
    const { context } = setUp(bind, 'bind net17', { checking: true })
    expect(context.notes).toEqual(["no interface 'net17' on this machine"])
    expect(() => setUp(bind, 'bind 1.2.3.400', { checking: true })).toThrow('not a valid IP address')
  })
})
