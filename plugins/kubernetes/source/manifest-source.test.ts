import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { FakeLog, realClock } from '../../../src/plugins/testing.js'
import type { ClusterRecord, ObjectPut } from '../objects.js'
import { type ManifestOptions, manifestParser } from './manifest-parse.js'
import { manifestSource } from './manifest-source.js'

const OPTIONS: ManifestOptions = {
  labels: undefined,
  namespaceLabels: undefined,
  needs: { endpoints: true, pods: true, podNames: false, podLabels: false, zones: false, multicluster: true },
}

const SERVICE = `
apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec:
  clusterIP: 10.0.0.1
  ports:
    - { name: http, port: 80 }
`

describe('parsing', () => {
  const parse = async (text: string, over: Partial<ManifestOptions> = {}) => (await manifestParser({ ...OPTIONS, ...over })).parse(text)
  const names = (records: readonly ObjectPut[]) => records.map((r) => `${r.kind} ${'namespace' in r ? r.namespace : ''}/${r.name}`)

  it('reads documents, lists, typed lists and JSON', async () => {
    const text = `---\n${SERVICE}---\n---\nkind: Deployment\nmetadata: {name: x}\n---\nkind: List\nitems:\n- kind: Namespace\n  metadata: {name: shop}\n- kind: ServiceList\n  items:\n  - metadata: {name: db}\n    spec: {clusterIP: None}\n`
    expect(names((await parse(text)).records)).toEqual(['service shop/web', 'namespace /shop', 'service default/db'])
    const json = JSON.stringify({
      kind: 'List',
      items: [
        { kind: 'Namespace', metadata: { name: 'a' } },
        { kind: 'Namespace', metadata: {} },
      ],
    })
    expect(await parse(json)).toEqual({
      records: [{ op: 'put', kind: 'namespace', name: 'a' }],
      complaints: [{ line: 1, message: 'Namespace: metadata.name: missing' }],
    })
    const twice = '{"kind":"Namespace","metadata":{"name":"a"}}\n---\n{"kind":"Namespace","metadata":{"name":"b"}}'
    expect(names((await parse(twice)).records)).toEqual(['namespace /a', 'namespace /b'])
  })

  it('says in which line an object is wrong, and takes the others', async () => {
    const text = `${SERVICE}---\nkind: Service\nmetadata:\n  name: bad\nspec:\n  clusterIP: 10.0.0.2\n  ports:\n    - port: http\n---\nnothing: here\n---\njust text\n`
    const { records, complaints } = await parse(text)
    expect(names(records)).toEqual(['service shop/web'])
    expect(complaints).toEqual([
      { line: 16, message: 'Service: spec.ports[0].port: expected a number from 1 to 65535, found "http"' },
      { line: 18, message: 'an object without kind' },
      { line: 20, message: 'an object without kind' },
    ])
  })

  it.each([
    ['kind: Service\n  metadata: x\n', 1],
    ['a: [1, 2\nb: 3\n', 2],
    ['{"kind": "Service",\n "metadata": }\n x', 3],
    ['a: &a [x]\nb: *unknown\n', 1],
  ])('refuses text that is no YAML, with its line: %j', async (text, line) => {
    await expect(parse(text)).rejects.toMatchObject({ code: 'KUBE_MANIFEST', line })
  })

  it('reads values as Kubernetes does (YAML 1.1)', async () => {
    const text = `kind: EndpointSlice
metadata: {name: a, namespace: ns, labels: {kubernetes.io/service-name: s}}
addressType: IPv4
endpoints:
- {addresses: [10.1.0.1], conditions: {ready: no}}
- {addresses: [10.1.0.2, 10.1.0.3], conditions: {}, hostname: h}
- {addresses: [10.1.0.4]}
ports: [{name: x, port: 80, protocol: UDP}, {}]`
    expect((await parse(text)).records).toEqual([
      {
        op: 'put',
        kind: 'slice',
        namespace: 'ns',
        name: 'a',
        service: 's',
        addresses: ['10.1.0.2', '10.1.0.3', '10.1.0.4'],
        hostnames: ['h', 'h', ''],
        ports: [
          { name: 'x', protocol: 'UDP', port: 80 },
          { name: '', protocol: 'TCP', port: -1 },
        ],
      },
    ])
  })

  it('turns Endpoints into one record per set of ports', async () => {
    const text = `kind: Endpoints
metadata: {name: s, namespace: ns}
subsets:
- {addresses: [{ip: 10.1.0.1, hostname: a}], notReadyAddresses: [{ip: 10.1.0.9}], ports: [{port: 80}]}
- {addresses: [{ip: 10.1.0.2}], ports: [{port: 81}]}
- {addresses: [{ip: 10.1.0.3}], ports: [{port: 80}]}`
    const { records } = await parse(text)
    expect(records).toMatchObject([
      { kind: 'endpoints', name: 's/0', service: 's', addresses: ['10.1.0.1', '10.1.0.3'], hostnames: ['a', ''] },
      { kind: 'endpoints', name: 's/1', service: 's', addresses: ['10.1.0.2'] },
    ])
  })

  it('applies selectors and needs', async () => {
    const pod = '---\nkind: Pod\nmetadata: {name: p}\nstatus: {podIP: 10.1.0.1}\n'
    const text = `${SERVICE}---\nkind: Namespace\nmetadata: {name: ns, labels: {a: b}}\n${pod}`
    const none = { text: 'a=b', matches: (labels: Readonly<Record<string, string>>) => labels.a === 'b' }
    expect(names((await parse(text, { labels: none })).records)).toEqual(['namespace /ns'])
    expect(names((await parse(text, { namespaceLabels: none })).records)).toEqual(['service shop/web', 'namespace /ns', 'pod default/p'])
    expect(names((await parse(text, { needs: { ...OPTIONS.needs, pods: false } })).records)).toEqual(['service shop/web', 'namespace /ns'])
  })

  it('does not let aliases grow without end', async () => {
    const bomb = [
      'a0: &a0 [x, x, x, x, x, x, x, x, x]',
      ...Array.from({ length: 9 }, (_, i) => `a${i + 1}: &a${i + 1} [${`*a${i}, `.repeat(9)}]`),
    ]
    await expect(parse(bomb.join('\n'))).rejects.toMatchObject({ code: 'KUBE_MANIFEST' })
  })
})

describe('the source', () => {
  const cleanUp: (() => unknown)[] = []
  afterEach(async () => {
    for (const end of cleanUp.splice(0).reverse()) await end()
  })

  const folder = () => {
    const path = mkdtempSync(join(tmpdir(), 'manifests-'))
    cleanUp.push(() => rmSync(path, { recursive: true }))
    return path
  }

  const run = async (...paths: string[]) => {
    const log = new FakeLog('kubernetes')
    const held = new Map<string, ObjectPut>()
    const emitted: ClusterRecord[] = []
    const source = manifestSource({ key: 'k', paths, options: OPTIONS, log, clock: realClock, times: { poll: 30, settle: 5 } })
    cleanUp.push(() => source.stop())
    await source.start((part) => {
      emitted.push(...part)
      for (const r of part) {
        if (r.op === 'put') held.set(`${r.kind} ${'namespace' in r ? r.namespace : ''}/${r.name}`, r)
        else if (r.op === 'delete') held.delete(`${r.kind} ${r.namespace}/${r.name}`)
      }
    })
    return { log, held, emitted, keys: () => [...held.keys()].sort(), source }
  }

  const until = async (what: () => boolean) => {
    const end = performance.now() + 5000
    while (!what()) {
      if (performance.now() > end) throw new Error(`not in time: ${what}`)
      await new Promise((resolve) => setTimeout(resolve, 3))
    }
  }

  it('is synced at once, and implies namespaces where there are none', async () => {
    const dir = folder()
    writeFileSync(join(dir, 'web.yaml'), SERVICE)
    writeFileSync(join(dir, 'README.md'), 'not read')
    const r = await run(dir)
    expect(r.keys()).toEqual(['namespace /shop', 'service shop/web'])
    expect(r.emitted.at(-1)).toMatchObject({ op: 'state', synced: true })
    expect([...r.source.snapshot()].flat()).toHaveLength(3)
    writeFileSync(join(dir, 'ns.json'), '{"kind":"Namespace","metadata":{"name":"other"}}')
    await until(() => r.keys().join() === 'namespace /other,service shop/web')
  })

  it('follows changes, additions and removals, and emits only what differs', async () => {
    const dir = folder()
    writeFileSync(join(dir, 'a.yaml'), `${SERVICE}---${SERVICE.replace('web', 'db')}`)
    const r = await run(dir)
    const before = r.emitted.length
    writeFileSync(join(dir, 'a.yaml'), `${SERVICE.replace('10.0.0.1', '10.0.0.2')}---${SERVICE.replace('web', 'db')}`)
    await until(() => r.emitted.length > before)
    const news = r.emitted.slice(before).filter(({ op }) => op !== 'state')
    expect(news).toMatchObject([{ op: 'put', name: 'web', addresses: ['10.0.0.2'] }])
    writeFileSync(join(dir, 'b.yml'), SERVICE.replace('web', 'more'))
    await until(() => r.held.has('service shop/more'))
    unlinkSync(join(dir, 'a.yaml'))
    await until(() => r.keys().join() === 'namespace /shop,service shop/more')
  })

  it('keeps the last good state of a file that cannot be read any more', async () => {
    const dir = folder()
    const file = join(dir, 'a.yaml')
    writeFileSync(file, SERVICE)
    writeFileSync(join(dir, 'b.yaml'), SERVICE.replace('web', 'db'))
    const r = await run(dir)
    writeFileSync(file, 'kind: [')
    writeFileSync(join(dir, 'b.yaml'), SERVICE.replace('web', 'cart'))
    await until(() => r.held.has('service shop/cart') && r.log.lines.length > 0)
    expect(r.keys()).toEqual(['namespace /shop', 'service shop/cart', 'service shop/web'])
    expect(r.log.lines).toEqual([
      expect.stringMatching(/^\[ERROR\] plugin\/kubernetes: .*a\.yaml:1 - .*; the last good state of this file is kept$/),
    ])
    renameSync(dir, `${dir}-away`)
    await until(() => r.log.lines.length > 1)
    expect(r.held.size).toBe(3)
    renameSync(`${dir}-away`, dir)
    writeFileSync(file, SERVICE.replace('web', 'again'))
    await until(() => r.keys().join() === 'namespace /shop,service shop/again,service shop/cart')
  })

  it('follows the links of a mounted ConfigMap', async () => {
    const dir = folder()
    const mount = (name: string, service: string) => {
      mkdirSync(join(dir, name))
      writeFileSync(join(dir, name, 'a.yaml'), SERVICE.replace('web', service))
      symlinkSync(name, join(dir, '..next'))
      renameSync(join(dir, '..next'), join(dir, '..data'))
    }
    mount('..1', 'one')
    symlinkSync('..data/a.yaml', join(dir, 'a.yaml'))
    const r = await run(dir)
    expect(r.keys()).toEqual(['namespace /shop', 'service shop/one'])
    mount('..2', 'two')
    await until(() => r.keys().join() === 'namespace /shop,service shop/two')
  })

  it('reports a bad object with file and line and serves the rest', async () => {
    const dir = folder()
    const file = join(dir, 'a.yaml')
    writeFileSync(file, `${SERVICE}---\nkind: Service\nmetadata: {name: bad}\nspec: {clusterIP: 1.2.3}\n`)
    const r = await run(file, file)
    expect(r.keys()).toEqual(['namespace /shop', 'service shop/web'])
    expect(r.log.lines).toEqual([
      `[ERROR] plugin/kubernetes: ${file}:12 - ignoring a bad object: Service: spec.clusterIP: "1.2.3" is no IP address`,
    ])
  })
})
