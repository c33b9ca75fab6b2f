/** The kubernetes directive: names of a cluster's services and pods. */
import type { PluginModule } from '../../src/plugins/contract.js'
import { ClusterReplica } from './cluster-index.js'
import { control } from './control.js'
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
  control,
}
export default module
