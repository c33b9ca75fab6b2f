import { describe, expect, test } from 'vitest'
import { parseCorefile } from '../../src/corefile/index.js'
import { fakeBlock, fakeContext } from '../../src/plugins/testing.js'
import { parseOptions, sourceKey } from './options.js'

function parse(text: string, zones = ['cluster.local.']) {
  const corefile = parseCorefile(`. {\n${text}\n}\n`, 'Corefile')
  const ctx = fakeContext('kubernetes', { block: fakeBlock(zones) })
  const uses = corefile.blocks[0]!.directives
  return { options: parseOptions(uses, ctx), warnings: ctx.warnings }
}
const body = (...lines: string[]) => `kubernetes cluster.local {\n${lines.join('\n')}\n}`

describe('kubernetes options', () => {
  test('defaults', () => {
    expect(parse('kubernetes').options).toEqual({
      zones: ['cluster.local.'],
      primaryZone: 'cluster.local.',
      source: {
        access: { kind: 'cluster' },
        needs: { endpoints: true, pods: false, podNames: false, podLabels: false, zones: false, multicluster: false },
        labels: undefined,
        namespaceLabels: undefined,
        qps: 0,
        burst: 0,
        maxInflight: 0,
      },
      namespaces: undefined,
      pods: 'disabled',
      endpointPodNames: false,
      ttl: 5,
      ignoreEmptyService: false,
      fallthrough: undefined,
      multiclusterZones: [],
      zonal: false,
      startupTimeout: 5000,
    })
  })

  test('the stock block', () => {
    const { options } = parse(
      'kubernetes cluster.local in-addr.arpa ip6.arpa {\n pods insecure\n fallthrough in-addr.arpa ip6.arpa\n ttl 30\n}',
    )
    expect(options.zones).toEqual(['cluster.local.', 'in-addr.arpa.', 'ip6.arpa.'])
    expect(options).toMatchObject({ pods: 'insecure', ttl: 30, fallthrough: ['in-addr.arpa.', 'ip6.arpa.'] })
  })

  test('zones of a CIDR prefix; the primary zone is the first forward one', () => {
    const { options } = parse('kubernetes 10.0.0.0/16 Cluster.LOCAL')
    expect(options.zones).toEqual(['0.10.in-addr.arpa.', 'cluster.local.'])
    expect(options.primaryZone).toBe('cluster.local.')
  })

  test.each([
    [body('endpoint http://a:1 http://b:1'), { kind: 'endpoint', url: 'http://a:1', tls: undefined }],
    [body('endpoint https://a', 'tls c k ""'), { kind: 'endpoint', url: 'https://a', tls: { cert: 'c', key: 'k', ca: '' } }],
    [body('endpoint https://a', 'kubeconfig f ctx'), { kind: 'kubeconfig', file: 'f', context: 'ctx' }],
    [body('manifests a b', 'manifests c'), { kind: 'manifests', paths: ['a', 'b', 'c'] }],
  ])('%s', (text, access) => {
    expect(parse(text).options.source.access).toEqual(access)
  })

  test.each([
    'namespaces a b',
    'labels environment in (production, qa),application=nginx',
    'namespace_labels istio-injection=enabled',
    'endpoint_pod_names',
    'noendpoints',
    'ignore empty_service',
    'ignore',
    'multicluster',
    'multicluster cluster.local',
    'zonal',
    'startup_timeout 1s',
    'apiserver_qps 50.0',
    'apiserver_burst 100',
    'apiserver_max_inflight 25',
    'fallthrough',
    'pods verified',
    'ttl 0',
    'ttl 3600',
  ])('takes %s', (line) => {
    expect(parse(body(line)).warnings).toEqual([])
  })

  test.each(['upstream', 'upstream /etc/resolv.conf', 'resyncperiod 5m', 'transfer to *', 'endpoint a b'])('warns of %s', (line) => {
    expect(parse(body(line)).warnings).toHaveLength(1)
  })

  test.each([
    [body('endpoint'), /Corefile:3 - Error during parsing: Wrong argument count or unexpected line ending after 'endpoint'/],
    [body('labels'), /Wrong argument count/],
    [body('labels environment in (production, qa'), /unable to parse label selector value: 'environment in \(production, qa': /],
    [body('namespace_labels a>1'), /unable to parse namespace_label selector value: 'a>1'/],
    [body('noendpoints ixnay'), /unexpected line ending after 'ixnay'/],
    [body('pods pending'), /wrong value for pods: pending, {2}must be one of: disabled, verified, insecure/],
    [body('pods'), /Wrong argument count/],
    [body('ttl x'), /plugin\/kubernetes: strconv.Atoi: parsing "x": invalid syntax/],
    [body('ttl 3601'), /ttl must be in range \[0, 3600\]: 3601/],
    [body('ignore full_service'), /unable to parse ignore value: 'full_service'/],
    [body('kubeconfig'), /Wrong argument count/],
    [body('tls a b'), /Wrong argument count/],
    [body('apiserver_burst -5'), /apiserver_burst must be >= 0/],
    [body('apiserver_qps many'), /invalid apiserver_qps "many"/],
    [body('startup_timeout 5'), /failed to parse startup_timeout: 5, time: missing unit in duration "5"/],
    [body('namespaces a', 'namespace_labels b=c'), /namespaces and namespace_labels cannot both be set/],
    [
      body('multicluster test.local'),
      /is not authoritative for the multicluster zone test.local. \(authoritative zones: \[cluster.local.\]\)/,
    ],
    [body('zonal', 'noendpoints'), /zonal requires the endpoint cache/],
    [body('manifests a', 'endpoint http://b'), /manifests cannot be combined/],
    [body('endpoit http://a'), /unknown property 'endpoit'.*did you mean 'endpoint'/],
    ['kubernetes 10.in-addr.arpa', /non-reverse zone name must be used/],
    ['kubernetes cluster.local\nkubernetes test.local', /this plugin can only be used once per Server Block/],
  ])('refuses %s', (text, message) => {
    expect(() => parse(text)).toThrow(message)
  })

  test('a source is shared by uses that watch the same', () => {
    const key = (...lines: string[]) => sourceKey(parse(body('endpoint http://a', ...lines)).options.source)
    expect(key('ttl 5', 'namespaces a')).toBe(key('ttl 6', 'fallthrough'))
    expect(key()).not.toBe(key('pods verified'))
    expect(key('labels b=c,a=b')).toBe(key('labels a=b , b = c'))
    expect(key('labels b=c')).not.toBe(key())
  })
})
