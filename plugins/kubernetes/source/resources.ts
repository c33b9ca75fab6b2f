/** The resources of the API that a source may watch. */
import type { ObjectKind } from '../objects.js'
import type { SourceOptions } from '../options.js'

export interface Resource {
  /** As in the path of the API and the `resource` label of metrics. */
  readonly name: 'services' | 'endpointslices' | 'namespaces' | 'pods' | 'serviceimports'
  readonly path: string
  /** As log lines of CoreDNS name it. */
  readonly typeName: string
  /** Selectors of its requests: labelSelector, fieldSelector. */
  readonly query: Readonly<Record<string, string>>
  /** Kinds of records that its objects become. */
  readonly kinds: readonly ObjectKind[]
}

/** Finished pods have no name any more, although they may still be listed with an address. */
const LIVE_PODS = 'status.phase!=Succeeded,status.phase!=Failed,status.phase!=Unknown'
export const MCS_SERVICE_LABEL = 'multicluster.kubernetes.io/service-name'

/** What these options ask for. Every selector is the API server's work. */
export function resourcesFor(options: SourceOptions): Resource[] {
  const { needs } = options
  const labels = selector(options.labels?.text)
  const resources: Resource[] = [
    { name: 'services', path: '/api/v1/services', typeName: '*v1.Service', query: labels, kinds: ['service'] },
    {
      name: 'namespaces',
      path: '/api/v1/namespaces',
      typeName: '*v1.Namespace',
      query: selector(options.namespaceLabels?.text),
      kinds: ['namespace'],
    },
  ]
  if (needs.endpoints || needs.multicluster) resources.push(slices(options))
  if (needs.pods) {
    resources.push({
      name: 'pods',
      path: '/api/v1/pods',
      typeName: '*v1.Pod',
      query: { ...labels, fieldSelector: LIVE_PODS },
      kinds: ['pod'],
    })
  }
  if (needs.multicluster) {
    resources.push({
      name: 'serviceimports',
      path: '/apis/multicluster.x-k8s.io/v1alpha1/serviceimports',
      typeName: '*v1alpha1.ServiceImport',
      // As CoreDNS does it: imports are selected by `namespace_labels`.
      query: selector(options.namespaceLabels?.text),
      kinds: ['serviceimport'],
    })
  }
  return resources
}

/** One watch serves both kinds of slices: those of the multi-cluster API are among the others. */
function slices({ needs, labels }: SourceOptions): Resource {
  const imported = needs.endpoints ? [] : [MCS_SERVICE_LABEL]
  const text = [...(labels === undefined ? [] : [labels.text]), ...imported].join(',')
  return {
    name: 'endpointslices',
    path: '/apis/discovery.k8s.io/v1/endpointslices',
    typeName: '*v1.EndpointSlice',
    query: selector(text),
    kinds: [...(needs.endpoints ? (['slice'] as const) : []), ...(needs.multicluster ? (['mcslice'] as const) : [])],
  }
}

const selector = (text: string | undefined): Record<string, string> => (text ? { labelSelector: text } : {})
