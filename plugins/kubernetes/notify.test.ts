import { expect, test } from 'vitest'
import type { Name } from '../../src/dns/index.js'
import { FakeClock } from '../../src/plugins/testing.js'
import { namespace, rig, service, synced } from '../../test/fakes/kubernetes-rig.js'
import type { ClusterRecord, StateRecord } from './objects.js'

const changed = (serial: number): ClusterRecord => ({ ...(synced as StateRecord), serial })

function setUp(option: string, thread = 0) {
  const told: string[] = []
  const transfer = {
    name: 'transfer',
    async notify(zone: Name) {
      told.push(zone.toString())
    },
  }
  const clock = new FakeClock()
  const made = rig(`kubernetes cluster.local in-addr.arpa {\n ${option}\n}`, [namespace('a'), service('a/b', ['10.0.0.1']), synced], {
    clock,
    siblings: [transfer],
    thread: { index: thread, count: 2 },
  })
  void made.plugin.onStartup()
  return { ...made, clock, told }
}

test('secondaries hear of changes, once in each interval, by one of the threads', () => {
  const { apply, clock, told } = setUp('notify 5s')
  clock.advance(5000)
  expect(told).toEqual(['cluster.local.'])
  clock.advance(60_000)
  expect(told).toHaveLength(1)
  for (let i = 1; i < 100; i++) apply(changed(1_700_000_000 + i))
  clock.advance(5000)
  expect(told).toHaveLength(2)
  expect(setUp('notify 5s', 1).told).toEqual([])
})

test('nothing is sent without the option, after a shutdown, or out of a snapshot', () => {
  const off = setUp('ttl 5')
  off.clock.advance(60_000)
  expect(off.told).toEqual([])
  const { plugin, clock, told } = setUp('notify')
  plugin.onShutdown()
  clock.advance(60_000)
  expect(told).toEqual([])
  const stale = setUp('notify')
  stale.apply({ ...(synced as StateRecord), staleSince: 1 })
  stale.clock.advance(60_000)
  expect(stale.told).toEqual([])
})
