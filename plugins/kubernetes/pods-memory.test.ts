/** What a pod costs under `pods verified`, in a serving thread and in the control thread. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { FakeClock } from '../../src/plugins/testing.js'
import { ClusterIndex } from './cluster-index.js'
import type { PodPut } from './objects.js'
import { ClusterStore } from './source/store.js'

const PODS = 20_000
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Names as a Deployment gives them; every text fresh, as out of a parser. */
const pod = (i: number): PodPut =>
  JSON.parse(
    JSON.stringify({
      op: 'put',
      kind: 'pod',
      namespace: `namespace-${i % 50}`,
      name: `service-${i % 1000}-7d9c5b6f4-${(i * 7919).toString(36).padStart(5, '0')}`,
      address: `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`,
    }),
  ) as PodPut

/** The least of three: the heap also holds what the engine and the runner do beside. */
const octetsEach = (fill: () => unknown): number => Math.min(measure(fill), measure(fill), measure(fill))

function measure(fill: () => unknown): number {
  const used = (): number => {
    collect()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const before = used()
  const kept = fill()
  const each = (used() - before) / PODS
  expect(kept).toBeDefined()
  return each
}

it('is less than 200 octets in either thread', () => {
  const inIndex = octetsEach(() => {
    const index = new ClusterIndex()
    for (let i = 0; i < PODS; i++) index.apply(pod(i))
    return index
  })
  const inStore = octetsEach(() => {
    const store = new ClusterStore(() => undefined, new FakeClock())
    for (let i = 0; i < PODS; i++) store.put(pod(i))
    store.flush()
    return store
  })
  expect(inIndex).toBeLessThan(200)
  expect(inStore).toBeLessThan(200)
})
