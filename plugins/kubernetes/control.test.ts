import { describe, expect, it } from 'vitest'
import { parseCorefile } from '../../src/corefile/parse.js'
import { fakeContext } from '../../src/plugins/testing.js'
import { control } from './control.js'
import { parseOptions, sourceKey } from './options.js'

function start(body: string, checking = false) {
  const uses = parseCorefile(`. {\n kubernetes cluster.local {\n${body}\n }\n}`, 'Corefile').blocks[0]!.directives
  const ctx = fakeContext('kubernetes', { checking })
  control(uses, ctx)
  return { ctx, key: sourceKey(parseOptions(uses, ctx).source) }
}

describe('the control half', () => {
  it('registers a source under the key that the replica asks for', () => {
    const { ctx, key } = start('endpoint http://127.0.0.1:8080')
    expect(ctx.sources.map((source) => source.key)).toEqual([key])
    expect(start('manifests /').ctx.sources).toHaveLength(1)
  })

  it('has the same key for options that do not concern the source, and another one for those that do', () => {
    const { key } = start('endpoint http://127.0.0.1:8080')
    expect(start('endpoint http://127.0.0.1:8080\nttl 30\nnamespaces a b\npods insecure\nfallthrough').key).toBe(key)
    for (const other of ['pods verified', 'labels a=b', 'namespace_labels a', 'noendpoints', 'zonal', 'apiserver_qps 3'])
      expect(start(`endpoint http://127.0.0.1:8080\n${other}`).key).not.toBe(key)
    expect(start('endpoint http://127.0.0.1:8081').key).not.toBe(key)
  })

  it.each([
    ['', /unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined/],
    ['endpoint https://a\ntls /no/such/a /b /c', /no such file or directory, open '\/c'/],
    ['kubeconfig /no/such/config', /no such file or directory/],
    ['endpoint ftp://x', /invalid endpoint "ftp:\/\/x"/],
  ])('fails at the start with %j, but lets check pass', async (body, message) => {
    const [source] = start(body).ctx.sources
    await expect(Promise.resolve(source!.start(() => undefined))).rejects.toThrow(message)
    expect(start(body, true).ctx.sources).toEqual([])
  })

  it('wants manifests to be there', () => {
    const body = 'manifests /no/such/thing'
    expect(() => start(body)).toThrow('manifests: no such file or folder: /no/such/thing')
    expect(start(body, true).ctx.notes).toEqual(['manifests: no such file or folder: /no/such/thing'])
  })
})
