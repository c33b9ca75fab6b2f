import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FakeLog, FakeMetrics, realClock } from '../../../src/plugins/testing.js'
import { FakeKubeApi, namespace, service } from '../../../test/fakes/kube-api.js'
import type { ClusterRecord, ObjectPut, StateRecord } from '../objects.js'
import { openAccess } from './access-open.js'
import { apiSource } from './api-source.js'
import { REFLECTOR_TIMES } from './reflector.js'
import { readSnapshot, writeSnapshot } from './snapshot.js'

let folder = ''
let path = ''
const cleanUp: (() => unknown)[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'snapshot-'))
  path = join(folder, 'cluster')
})
afterEach(async () => {
  for (const end of cleanUp.splice(0).reverse()) await end()
  rmSync(folder, { recursive: true })
})

const STATE: StateRecord = { op: 'state', synced: true, serial: 7, multiclusterSerial: 0, externalSerial: 0 }
const record = (name: string): ObjectPut => ({ op: 'put', kind: 'namespace', name })

describe('the file', () => {
  const records = Array.from({ length: 1203 }, (_, i) => record(`n${i}`))
  const write = () =>
    writeSnapshot(
      path,
      'id',
      1000,
      STATE,
      records.map((one) => JSON.stringify(one)),
    )
  const read = (identity = 'id', now = 2000) => readSnapshot(path, identity, now, 5000)

  it('gives back what was written, and nothing else is left beside it', async () => {
    await write()
    expect(await read()).toEqual({ savedAt: 1000, state: STATE, records })
    expect(readdirSync(folder)).toEqual(['cluster'])
  })

  it('is undefined where there is none', async () => {
    expect(await read()).toBeUndefined()
  })

  it.each<[string, (text: string) => string, RegExp]>([
    ['cut short', (text) => text.slice(0, text.length / 2), /damaged/],
    ['cut at a line', (text) => text.split('\n').slice(0, 600).join('\n'), /damaged/],
    ['one letter changed', (text) => text.replace('n700', 'n7OO'), /damaged: its contents/],
    ['a line lost', (text) => text.replace(/.*"n3".*\n/, ''), /damaged/],
    ['empty', () => '', /damaged/],
    ['something else', () => 'hello\nworld\n', /damaged/],
    ['another format', (text) => text.replace('"format":1', '"format":2'), /another format/],
  ])('is refused: %s', async (_what, change, message) => {
    await write()
    writeFileSync(path, change(readFileSync(path, 'utf8')))
    await expect(read()).rejects.toThrow(message)
  })

  it('is refused if it is of another source, or too old', async () => {
    await write()
    await expect(read('other')).rejects.toThrow('of another cluster')
    await expect(read('id', 7000)).rejects.toThrow('too old: saved 1970-01-01T00:00:01.000Z')
  })
})

describe('a source with a snapshot', () => {
  async function run(url: string) {
    const log = new FakeLog('kubernetes')
    const metrics = new FakeMetrics()
    const names = new Set<string>()
    let state: StateRecord | undefined
    const source = apiSource({
      key: 'k',
      options: {
        access: { kind: 'endpoint', url, tls: undefined },
        needs: { endpoints: false, pods: false, podNames: false, podLabels: false, zones: false, multicluster: false },
        labels: undefined,
        namespaceLabels: undefined,
        qps: 0,
        burst: 0,
        maxInflight: 0,
        snapshot: { path, maxAge: 60_000 },
      },
      access: () => openAccess({ kind: 'endpoint', url, tls: undefined }, realClock),
      log,
      clock: realClock,
      metrics,
      times: { ...REFLECTOR_TIMES, backoff: { first: 10, longest: 50 } },
    })
    await source.start((part) => {
      for (const one of part as ClusterRecord[]) {
        if (one.op === 'state') state = one
        else if (one.op === 'put') names.add(one.name)
        else names.delete(one.name)
      }
    })
    let stopped: Promise<void> | undefined
    const stop = () => (stopped ??= Promise.resolve(source.stop()))
    cleanUp.push(stop)
    return { log, metrics, names, state: () => state, remark: () => source.remark?.(), stop }
  }
  const until = async (what: () => boolean): Promise<void> => {
    for (const end = Date.now() + 8000; !what(); ) {
      if (Date.now() > end) throw new Error(`not in time: ${what}`)
      await new Promise((resolve) => setTimeout(resolve, 3))
    }
  }

  it('serves the objects of its last run without the API server, marked, until all is listed', async () => {
    const api = await new FakeKubeApi().start()
    cleanUp.push(() => api.stop())
    for (const object of [namespace('prod'), service('prod', 'a', '10.0.0.1'), service('prod', 'gone', '10.0.0.2')]) api.put(object)
    const first = await run(api.url)
    await until(() => first.state()?.synced === true)
    await first.stop()
    const serial = first.state()!.serial

    await api.stop()
    const second = await run(api.url)
    expect([...second.names].sort()).toEqual(['a', 'gone', 'prod'])
    expect(second.state()).toMatchObject({ synced: true, serial })
    expect(second.state()!.staleSince).toBeGreaterThan(0)
    expect(second.log.lines[0]).toMatch(/Serving 3 objects of snapshot .*, until the API server has listed all/)
    expect(second.remark()).toMatch(/^kubernetes: serving a snapshot, \d+(s|ms) old$/)
    const served = () => second.metrics.values.get('cairndns_kubernetes_snapshot_served_timestamp_seconds{}')
    expect(served()).toBeGreaterThan(0)

    api.delete(service('prod', 'gone', '10.0.0.2'))
    api.put(service('prod', 'new', '10.0.0.3'))
    await api.start()
    await until(() => second.state()?.staleSince === undefined)
    expect([...second.names].sort()).toEqual(['a', 'new', 'prod'])
    expect([second.remark(), served()]).toEqual([undefined, 0])
  })

  it('starts without a damaged one, and says so', async () => {
    writeFileSync(path, 'x')
    const { log, state } = await run('http://127.0.0.1:1')
    expect(log.lines[0]).toMatch(/\[ERROR\] plugin\/kubernetes: Snapshot .* is not used: damaged/)
    expect(state()?.synced ?? false).toBe(false)
  })

  it('goes on where the file cannot be written, and says so once', async () => {
    const api = await new FakeKubeApi().start()
    cleanUp.push(() => api.stop())
    path = join(folder, 'no', 'such', 'folder')
    const { log, stop, state } = await run(api.url)
    await until(() => state()?.synced === true)
    await stop()
    expect(log.lines.filter((line) => line.includes('cannot be written'))).toHaveLength(1)
  })
})
