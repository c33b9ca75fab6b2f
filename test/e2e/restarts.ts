/** A restart while the API server cannot be reached: the snapshot answers, marked, until the first list is in. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { until } from '../support/process.js'
import { namespace, service, slice } from './harness/objects.js'
import { ApiProxy } from './harness/proxy.js'
import { type Subject, startSubject } from './harness/subject.js'
import type { World } from './world.js'

const NS = 'e2e-restart'
const name = (labels: string): string => `${labels}.${NS}.svc.cluster.local`
const EDE = 15
const STALE = 3

export function restarts(get: () => World): void {
  let folder = ''
  let proxy: ApiProxy
  const subjects: Subject[] = []
  const start = async (more = ''): Promise<Subject> => {
    const subject = await startSubject({
      kubernetes: `endpoint ${proxy.url}\n        snapshot ${folder}/snapshot\n        startup_timeout 1s\n        ${more}`,
    })
    subjects.push(subject)
    return subject
  }
  const marks = async (subject: Subject, owner: string): Promise<number[]> => {
    const { edns } = await subject.client.ask(owner, 'A', { size: 1232 })
    return (edns?.options ?? []).filter(({ code }) => code === EDE).map(({ data }) => Buffer.from(data).readUInt16BE(0))
  }

  beforeAll(async () => {
    const { api } = get()
    folder = mkdtempSync(join(tmpdir(), 'cairndns-e2e-restart-'))
    // One of its own: the other servers go on.
    proxy = await new ApiProxy(api.target).start()
    await api.create('namespaces', namespace(NS))
    for (const [owner, address] of [
      ['kept', '10.249.0.1'],
      ['doomed', '10.249.0.2'],
    ] as const) {
      await api.create('services', service(NS, owner, { clusterIP: 'None' }))
      await api.create('endpointslices', slice(NS, `${owner}-1`, owner, [{ address }]))
    }
  })
  afterAll(async () => {
    for (const subject of subjects) await subject.stop()
    await proxy.stop()
    rmSync(folder, { recursive: true, force: true })
    await get().api.delete('namespaces', '', NS)
  })

  it('a snapshot serves without the API server, ready and marked, and gives way to the first list', async () => {
    const { api } = get()
    const before = await start()
    await before.sees(['NOERROR', '10.249.0.2'], name('doomed'))
    expect(await marks(before, name('kept'))).toEqual([])
    await subjects.pop()!.stop()
    proxy.cut()
    await api.delete('services', NS, 'doomed')
    await api.patch('endpointslices', NS, 'kept-1', { endpoints: [{ addresses: ['10.249.0.3'] }] })

    const after = await start()
    const started = performance.now()
    await after.sees(['NOERROR', '10.249.0.1'], name('kept'))
    await after.sees(['NOERROR', '10.249.0.2'], name('doomed'))
    expect(await marks(after, name('kept'))).toEqual([STALE])
    expect(await marks(after, name('absent'))).toEqual([STALE])
    const { status, body } = await after.http(after.ready, '/ready')
    expect(status).toBe(200)
    expect(body).toMatch(/^OK\nkubernetes: serving a snapshot, .* old$/)
    expect((await after.http(after.metrics, '/metrics')).body).toMatch(/cairndns_kubernetes_snapshot_served_timestamp_seconds [1-9]/)
    expect(after.server.output()).toMatch(/WARNING.*Serving \d+ objects of snapshot/)
    console.log(`[e2e] answers and /ready from a snapshot ${(performance.now() - started).toFixed(0)} ms after the port was open`)

    proxy.mend()
    await after.sees(['NOERROR', '10.249.0.3'], name('kept'), 'A', 30_000)
    await after.sees(['NXDOMAIN'], name('doomed'), 'A', 30_000)
    await until(
      async () => (await after.http(after.ready, '/ready')).body === 'OK',
      30_000,
      () => 'the snapshot is still spoken of',
    )
    expect(await marks(after, name('kept'))).toEqual([])
    expect((await after.http(after.metrics, '/metrics')).body).toMatch(/cairndns_kubernetes_snapshot_served_timestamp_seconds 0/)
  })

  it('without one, or with one of other selectors, names are SERVFAIL until the API server is there', async () => {
    await subjects.pop()!.stop()
    proxy.cut()
    const subject = await start('labels app!=none')
    expect(subject.server.output()).toMatch(/Snapshot .* is not used: of another cluster, or of other selectors/)
    await subject.sees(['SERVFAIL'], name('kept'))
    expect((await subject.http(subject.ready, '/ready')).status).toBe(503)
    proxy.mend()
    await subject.sees(['NOERROR', '10.249.0.3'], name('kept'), 'A', 30_000)
  })
}
