import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { namespace, port, service, slice } from '../../test/fakes/kubernetes-rig.js'
import { addressText, dashed, octetsOf, pack, packedAt, packedCount, packedIndexOf, undashed } from './address.js'
import { AddressTable } from './address-table.js'
import { ClusterIndex, ClusterReplica } from './cluster-index.js'
import type { ClusterRecord } from './objects.js'

const address = fc.oneof(fc.ipV4(), fc.ipV6())

describe('packed addresses', () => {
  test('give back what was packed', () => {
    fc.assert(
      fc.property(fc.array(address, { maxLength: 8 }), (texts) => {
        const octets = texts.map(octetsOf)
        const list = pack(octets)
        expect(Array.from({ length: packedCount(list) }, (_, i) => packedAt(list, i))).toEqual(octets)
        for (const [i, one] of octets.entries()) expect(packedIndexOf(list, one)).toBe(octets.indexOf(octets[i]!))
      }),
    )
  })
  test('an address is not found across two entries', () => {
    expect(packedIndexOf(pack(['10.0.0.1', '0.1.10.0'].map(octetsOf)), octetsOf('0.0.1.0'))).toBe(-1)
    expect(packedIndexOf(pack([octetsOf('10.0.0.1')]), octetsOf('fd00::1'))).toBe(-1)
  })
  test('dashed names lead back to their address', () => {
    fc.assert(fc.property(address, (text) => undashed(dashed(octetsOf(text))) === octetsOf(text)))
  })
  test.each(['1-2-3', '01-2-3-4', '1-2-3-4-5', 'fe80--', 'fe80--00', 'a', ''])('%j is no dashed address', (label) => {
    expect(undashed(label)).toBe('')
  })
  test('a v4-mapped address is the IPv4 one', () => {
    expect(addressText(octetsOf('::ffff:102:304'))).toBe('1.2.3.4')
  })
})

test('an address table holds what a map of lists would', () => {
  const items = Array.from({ length: 6 }, (_, id) => ({ id, slot: -1 }))
  const step = fc.record({ add: fc.boolean(), item: fc.nat(5), octets: fc.nat(40).map((n) => octetsOf(`10.0.0.${n}`)) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      for (const item of items) item.slot = -1
      const table = new AddressTable<(typeof items)[number]>()
      const model = new Map<string, number[]>()
      for (const { add, item, octets } of steps) {
        const held = model.get(octets) ?? []
        if (add && !held.includes(item)) {
          table.add(octets, items[item]!)
          model.set(octets, [...held, item])
        } else if (!add && held.includes(item)) {
          table.remove(octets, items[item]!)
          model.set(
            octets,
            held.filter((id) => id !== item),
          )
        }
      }
      for (const [octets, held] of model)
        expect(
          table
            .find(octets)
            .map((item) => item.id)
            .sort(),
        ).toEqual([...held].sort())
      expect(table.size).toBe([...model.values()].flat().length)
    }),
  )
})

describe('the index', () => {
  const name = fc.constantFrom('a', 'b', 'c')
  const addresses = fc.uniqueArray(
    fc.nat(12).map((n) => `10.0.0.${n}`),
    { maxLength: 4 },
  )
  const path = fc.tuple(fc.constantFrom('n', 'm'), name).map((parts) => parts.join('/'))
  const kind = fc.constantFrom('slice', 'endpoints', 'service', 'serviceimport', 'mcslice', 'pod', 'namespace' as const)
  const record: fc.Arbitrary<ClusterRecord> = fc.oneof(
    fc.tuple(path, addresses).map(([at, list]) => service(at, list, [port('http', 80)])),
    fc.tuple(path, name, addresses).map(([at, owner, list]) => slice(at, owner, list)),
    fc.tuple(path, name, addresses).map(([at, owner, list]) => slice(at, owner, list, { kind: 'endpoints' })),
    fc
      .tuple(path, fc.nat(3))
      .map(([at, n]): ClusterRecord => ({ op: 'put', kind: 'pod', namespace: at[0]!, name: at[2]!, address: `10.0.0.${n}` })),
    fc.tuple(kind, path).map(([what, at]): ClusterRecord => ({ op: 'delete', kind: what, namespace: at[0]!, name: at[2]! })),
  )
  const view = (index: ClusterIndex) => ({
    services: [...index.services()].map((s) => [s.namespace, s.name, s.addresses, s.effective.map((x) => [x.name, x.addresses])]).sort(),
    reverse: Array.from({ length: 13 }, (_, n) => {
      const octets = octetsOf(`10.0.0.${n}`)
      return [
        index
          .servicesWithAddress(octets)
          .map((s) => `${s.namespace}/${s.name}`)
          .sort(),
        index
          .slicesWithAddress(octets)
          .map((s) => `${s.owner.namespace}/${s.name}/${s.standIn}`)
          .sort(),
        index
          .podsWithAddress(octets)
          .map((p) => `${p.namespace}/${p.name}`)
          .sort(),
      ]
    }),
  })

  test('after any changes is the one that the last puts alone would make', () => {
    fc.assert(
      fc.property(fc.array(record, { maxLength: 60 }), (records) => {
        const changed = new ClusterIndex()
        const last = new Map<string, ClusterRecord>()
        for (const one of records) {
          changed.apply(one)
          if (one.op === 'state') continue
          const key = `${one.kind} ${'namespace' in one ? one.namespace : ''}/${one.name}`
          last.delete(key)
          if (one.op === 'put') last.set(key, one)
        }
        const fresh = new ClusterIndex()
        for (const one of last.values()) fresh.apply(one)
        expect(view(changed)).toEqual(view(fresh))
      }),
      { numRuns: 300 },
    )
  })

  test('keeps nothing of what is gone', () => {
    const index = new ClusterIndex()
    index.apply(service('n/a', ['10.0.0.1']))
    index.apply(slice('n/a-1', 'a', ['10.1.0.1']))
    index.apply({ op: 'delete', kind: 'service', namespace: 'n', name: 'a' })
    expect(index.service('n', 'a')).toBeUndefined()
    expect(index.slicesWithAddress(octetsOf('10.1.0.1'))).toHaveLength(1)
    index.apply({ op: 'delete', kind: 'slice', namespace: 'n', name: 'a-1' })
    expect(index.slicesWithAddress(octetsOf('10.1.0.1'))).toEqual([])
  })

  test('passes over what cannot stand in a name or in an answer', () => {
    const index = new ClusterIndex()
    index.apply(service(`n/${'x'.repeat(64)}`, ['10.0.0.1']))
    index.apply(service('n/bad', ['10.0.0.1', 'nonsense']))
    index.apply(slice('n/bad-1', 'bad', ['nonsense', '10.1.0.1'], { hostnames: ['x', 'y'] }))
    const entry = index.service('n', 'bad')!
    expect([...index.services()]).toEqual([entry])
    expect(packedCount(entry.addresses)).toBe(1)
    expect(entry.slices[0]).toMatchObject({ addresses: pack([octetsOf('10.1.0.1')]), details: { hostnames: ['y'] } })
  })
})

test('a snapshot takes the place of what was there at the swap, not before', () => {
  const replica = new ClusterReplica()
  replica.apply([namespace('old')])
  replica.begin()
  replica.apply([namespace('new'), { op: 'state', synced: true, serial: 1, multiclusterSerial: 0, externalSerial: 0 }])
  expect([replica.index.hasNamespace('old'), replica.index.hasNamespace('new'), replica.synced]).toEqual([true, false, false])
  let told = 0
  replica.whenSynced(() => told++)
  replica.swap()
  expect([replica.index.hasNamespace('old'), replica.index.hasNamespace('new'), replica.synced, told]).toEqual([false, true, true, 1])
})
