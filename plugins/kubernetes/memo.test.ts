import { describe, expect, test } from 'vitest'
import { alias, gone, namespace, port, rig, service, slice, synced } from '../../test/fakes/kubernetes-rig.js'
import type { ClusterRecord } from './objects.js'

const http = [port('http', 80)]
const before: ClusterRecord[] = [
  namespace('memo'),
  service('memo/web', ['10.0.0.1'], http),
  service('memo/db', ['None'], http),
  slice('memo/db-1', 'db', ['10.1.0.1', '10.1.0.2'], { ports: http, hostnames: ['db-0', 'db-1'] }),
  alias('memo/out', 'target.memo.svc.cluster.local'),
  service('memo/target', ['10.0.0.9'], http),
  synced,
]
const later: ClusterRecord = { op: 'state', synced: true, serial: 1_700_000_007, multiclusterSerial: 0, externalSerial: 0 }
const NAMES = ['web', 'db', 'db-0.db', 'out', 'new', '_http._tcp.db'].map((name) => `${name}.memo.svc.cluster.local.`)

/** Answers of a plugin that is asked for the first time: other letters are never remembered. */
const shouted = (name: string): string => name.toUpperCase()

describe('an answer that is remembered is given up when', () => {
  test.each<[string, ClusterRecord[]]>([
    ['nothing has changed', []],
    ['the service gets another address', [service('memo/web', ['10.0.0.7'], http)]],
    ['the service goes', [gone('service', 'memo/web')]],
    ['the service goes and comes back', [gone('service', 'memo/web'), service('memo/web', ['10.0.0.8'], http)]],
    ['the service becomes headless', [service('memo/web', ['None'], http)]],
    ['a slice comes', [slice('memo/db-2', 'db', ['10.1.0.3'], { ports: http })]],
    ['a slice changes', [slice('memo/db-1', 'db', ['10.1.0.2'], { ports: http, hostnames: ['db-0'] })]],
    ['a slice goes', [gone('slice', 'memo/db-1')]],
    ['a slice moves to another service', [slice('memo/db-1', 'web', ['10.1.0.1'], { ports: http })]],
    ['the namespace goes', [gone('namespace', '/memo')]],
    ['what was absent comes', [service('memo/new', ['10.0.0.5'], http)]],
    ['the alias gets another target', [alias('memo/out', 'web.memo.svc.cluster.local')]],
    ['the target of an alias changes', [service('memo/target', ['10.0.0.6'], http)]],
    ['the serial alone moves on', [later]],
  ])('%s', async (_, changes) => {
    const { text, apply } = rig('kubernetes cluster.local', before)
    const ask = async (type: string): Promise<string[]> => {
      const answers: string[] = []
      for (const name of NAMES) for (let i = 0; i < 4; i++) answers.push((await text(name, type)).toLowerCase())
      return answers
    }
    for (const type of ['A', 'AAAA', 'SRV']) {
      await ask(type)
      apply(...changes)
      const fresh: string[] = []
      for (const name of NAMES) for (let i = 0; i < 4; i++) fresh.push((await text(shouted(name), type)).toLowerCase())
      expect(await ask(type)).toEqual(fresh)
    }
  })
})

test('two plugins in one thread do not mix up what they remember', async () => {
  const one = rig('kubernetes cluster.local', [namespace('memo'), service('memo/both', ['10.0.0.1'], http), synced])
  const other = rig('kubernetes cluster.local', [namespace('memo'), service('memo/both', ['10.0.0.2'], http), synced])
  for (let i = 0; i < 4; i++) {
    expect(await one.text('both.memo.svc.cluster.local.', 'A')).toContain('A 10.0.0.1 ')
    expect(await other.text('both.memo.svc.cluster.local.', 'A')).toContain('A 10.0.0.2 ')
  }
})

test('the flags of the reply are those of the query in hand', async () => {
  const { ask } = rig('kubernetes cluster.local', [namespace('memo'), service('memo/flags', ['10.0.0.1'], http), synced])
  for (let i = 0; i < 3; i++) await ask('flags.memo.svc.cluster.local.', 'A')
  const reply = await ask('flags.memo.svc.cluster.local.', 'A', { id: 4711, rd: false, cd: true })
  expect([reply.id, reply.rd, reply.cd, reply.aa, reply.qr]).toEqual([4711, false, true, true, true])
})
