/** The API server goes away and comes back, forgets, refuses: answers go on, and catch up without a wrong one in between. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { until } from '../support/process.js'
import { alike } from './compare.js'
import { namespace, service, slice } from './harness/objects.js'
import type { World } from './world.js'

const NS = 'e2e-outage'
const name = (labels: string): string => `${labels}.${NS}.svc.cluster.local`
/** Milliseconds that the API server is away: longer than any back-off. E2E_SHORT spares most of it while tests are written. */
const AWAY = process.env.E2E_SHORT ? 10_000 : 60_000

export function outages(get: () => World): void {
  let stable = ''
  const fixed = ['10.246.0.1', '10.246.0.2']

  beforeAll(async () => {
    const { api, ours } = get()
    await api.create('namespaces', namespace(NS))
    stable = (await api.create('services', service(NS, 'stable', { ipFamilyPolicy: 'SingleStack' }))).spec.clusterIP
    await api.create('services', service(NS, 'fixed', { clusterIP: 'None' }))
    await api.create(
      'endpointslices',
      slice(
        NS,
        'fixed-1',
        'fixed',
        fixed.map((address) => ({ address })),
      ),
    )
    await api.create('services', service(NS, 'doomed', { clusterIP: 'None' }))
    await api.create('endpointslices', slice(NS, 'doomed-1', 'doomed', [{ address: '10.246.0.9' }]))
    await ours.sees(['NOERROR', '10.246.0.9'], name('doomed'))
    await ours.sees(['NOERROR', ...fixed], name('fixed'))
  })
  afterAll(() => get().api.delete('namespaces', '', NS))

  /** Asks for what does not change all the time while `work` is done; every answer has to be right. */
  async function unshaken(work: () => Promise<void>): Promise<number> {
    const { ours } = get()
    let asked = 0
    let done = false
    const wrong = new Set<string>()
    const loop = (async () => {
      while (!done) {
        const [one, two] = [await ours.answers(name('stable')), await ours.answers(name('fixed'))]
        asked += 2
        if (one.join() !== [stable, 'NOERROR'].sort().join()) wrong.add(one.join())
        if (two.join() !== [...fixed, 'NOERROR'].sort().join()) wrong.add(two.join())
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    })()
    try {
      await work()
    } finally {
      done = true
      await loop
    }
    expect([...wrong]).toEqual([])
    return asked
  }

  it(`stays right while the API server is away for ${AWAY / 1000} s, then catches up`, async () => {
    const { api, own, ours } = get()
    let caughtUp = 0
    const asked = await unshaken(async () => {
      await own!.stopApi()
      await new Promise((resolve) => setTimeout(resolve, AWAY))
      await own!.startApi()
      await api.create('services', service(NS, 'later', { clusterIP: 'None' }))
      await api.create('endpointslices', slice(NS, 'later-1', 'later', [{ address: '10.246.0.3' }]))
      caughtUp = await ours.sees(['NOERROR', '10.246.0.3'], name('later'), 'A', 60_000)
    })
    expect(asked).toBeGreaterThan(100)
    // The longest back-off, and what a busy machine takes to list.
    expect(caughtUp).toBeLessThan(15_000)
    console.log(
      `[e2e] API server away for ${AWAY / 1000} s: ${asked} right answers; caught up ${caughtUp.toFixed(0)} ms after it could be written to`,
    )
    await alike(get(), [
      [name('later'), 'A'],
      [name('fixed'), 'A'],
    ])
  })

  it('relists after compaction (410) by mark and sweep: nothing is missing for a moment, what went is gone', async () => {
    const { api, own, ours, proxy } = get()
    const since = proxy.requests.length
    await unshaken(async () => {
      // The proxy goes, not the API server: changes happen unseen, and etcd forgets them.
      proxy.cut()
      await api.delete('endpointslices', NS, 'doomed-1')
      await api.delete('services', NS, 'doomed')
      for (let i = 0; i < 30; i++) await api.patch('services', NS, 'stable', { metadata: { annotations: { turn: String(i) } } })
      await own!.compact()
      await own!.stopApi()
      await own!.startApi()
      proxy.mend()
      await ours.sees(['NXDOMAIN'], name('doomed'), 'A', 60_000)
    })
    expect(proxy.lists(since)).toBeGreaterThan(0)
    await alike(get(), [[name('doomed'), 'A']])
  })

  it('goes on behind a proxy that stalls: a watch that brings nothing is opened anew, without a list', async () => {
    const { api, ours, proxy } = get()
    // All kinds are back from the outage before: back-off ends after 4 s at the latest.
    await until(
      () => proxy.quiet > 6000,
      60_000,
      () => 'requests do not end',
    )
    const since = proxy.requests.length
    proxy.stall()
    await api.create('services', service(NS, 'unheard', { ipFamilyPolicy: 'SingleStack' }))
    const { spec } = await api.get(`/api/v1/namespaces/${NS}/services/unheard`)
    const took = await ours.sees(['NOERROR', spec.clusterIP], name('unheard'), 'A', 100_000)
    expect(proxy.lists(since)).toBe(0)
    console.log(`[e2e] stalled watch replaced after ${(took / 1000).toFixed(1)} s`)
  })

  it('a reload that leaves the kubernetes options alone makes no request', async () => {
    const { ours, proxy } = get()
    const { readFileSync, writeFileSync } = await import('node:fs')
    const before = proxy.requests.length
    writeFileSync(ours.server.corefile, readFileSync(ours.server.corefile, 'utf8').replace('errors\n', 'errors\n    log\n'))
    ours.server.signal('SIGUSR1')
    await ours.server.saw(/Reloading complete/, 30_000)
    await ours.sees(['NOERROR', ...fixed], name('fixed'))
    expect(proxy.requests.slice(before)).toEqual([])
  })

  it('5,000 services listed anew, with none missing meanwhile', async () => {
    const { api, own, ours, proxy } = get()
    const make = async (from: number): Promise<void> => {
      for (let i = from; i < 5000; i += 16) await api.create('services', service(NS, `many-${i}`, { clusterIP: 'None' }))
    }
    await Promise.all(Array.from({ length: 16 }, (_, i) => make(i)))
    await api.create('endpointslices', slice(NS, 'many-x', 'many-4999', [{ address: '10.246.9.9' }]))
    await ours.sees(['NOERROR', '10.246.9.9'], name('many-4999'), 'A', 60_000)
    const since = proxy.requests.length
    const started = performance.now()
    await unshaken(async () => {
      proxy.cut()
      await api.patch('endpointslices', NS, 'many-x', { endpoints: [{ addresses: ['10.246.9.10'] }] })
      await own!.compact()
      await own!.stopApi()
      await own!.startApi()
      proxy.mend()
      await ours.sees(['NOERROR', '10.246.9.10'], name('many-4999'), 'A', 90_000)
    })
    await until(
      () => proxy.lists(since) >= 1,
      10_000,
      () => 'nothing was listed again',
    )
    console.log(
      `[e2e] 5,000 services relisted, API server restart included: ${((performance.now() - started) / 1000).toFixed(1)} s; RSS ${ours.server.rss().toFixed(0)} MB`,
    )
  })
}
