/** The kubernetes directive: names of a cluster's services and pods. */
import type { PluginModule } from '../../src/plugins/contract.js'
import { ClusterReplica } from './cluster-index.js'
import { Kubernetes } from './kubernetes.js'
import { parseOptions, sourceKey } from './options.js'

const module: PluginModule = {
  name: 'kubernetes',
  apiVersion: 1,
  setup(uses, ctx) {
    const options = parseOptions(uses, ctx)
    const key = sourceKey(options.source)
    // Blocks and generations that watch the same share one index.
    const replica = ctx.shared(
      key,
      () => new ClusterReplica(),
      () => undefined,
    )
    ctx.replica(key, replica)
    return new Kubernetes(options, replica, ctx)
  },
  // Sources, YAML and all that talks to an API server: several MiB that a serving thread has no use for.
  loadControl: async () => (await import('./control.js')).control,
}
export default module
