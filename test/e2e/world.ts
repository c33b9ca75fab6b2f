/** What the suite runs against: a control plane of its own, or the cluster of KUBECONFIG. */
import { KubeConfig } from '@kubernetes/client-node'
import { Api } from './harness/api.js'
import { type ControlPlane, startControlPlane } from './harness/control-plane.js'
import { ApiProxy } from './harness/proxy.js'
import { type Subject, startSubject } from './harness/subject.js'

export interface World {
  readonly api: Api
  /** undefined: somebody else's cluster, whose parts are left alone. */
  readonly own: ControlPlane | undefined
  readonly proxy: ApiProxy
  /** Ours, reading through `proxy`. */
  readonly ours: Subject
  /** The same Corefile in CoreDNS; undefined: COREDNS is not set. */
  readonly theirs: Subject | undefined
  stop(): Promise<void>
}

const OPTIONS = 'pods verified\n        ttl 5'

export async function startWorld(): Promise<World> {
  const binaries = process.env.E2E_BINARIES
  const own = binaries ? await startControlPlane(binaries) : undefined
  const api = own?.api ?? clusterApi()
  const proxy = await new ApiProxy(api.target).start()
  const ours = await startSubject({ kubernetes: `endpoint ${proxy.url}\n        ${OPTIONS}` })
  const command = process.env.COREDNS
  const theirs = command ? await startSubject({ kubernetes: `endpoint ${proxy.url}\n        ${OPTIONS}`, command }) : undefined
  return {
    api,
    own,
    proxy,
    ours,
    theirs,
    async stop() {
      await ours.stop()
      await theirs?.stop()
      await proxy.stop()
      await own?.stop()
    },
  }
}

function clusterApi(): Api {
  const config = new KubeConfig()
  config.loadFromDefault()
  const server = config.getCurrentCluster()?.server
  if (server === undefined) throw new Error('KUBECONFIG names no cluster')
  return new Api({
    base: new URL(server),
    async options() {
      const options = {}
      await config.applyToHTTPSOptions(options)
      return options
    },
  })
}
