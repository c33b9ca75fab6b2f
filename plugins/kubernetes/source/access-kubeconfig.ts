/**
 * `kubeconfig FILE [CONTEXT]`: every kind of user that client-node knows (certificates, tokens, exec, OIDC). The library costs a second
 * and some 70 MB, so it is loaded only here.
 */

import { readFileSync, statSync } from 'node:fs'
import type { RequestOptions } from 'node:https'
import type { KubeConfig } from '@kubernetes/client-node'
import { AccessError, type ApiAccess, baseUrl } from './access.js'

export async function kubeconfigAccess(file: string, context: string): Promise<ApiAccess> {
  const library = await import('@kubernetes/client-node')
  const load = () => loadConfig(new library.KubeConfig(), file, context)
  let config = load()
  let loaded = changedAt(file)
  const reload = (): void => {
    try {
      loaded = changedAt(file)
      config = load()
    } catch {
      // Being written just now, or gone: what was loaded before is tried on, and the next change or 401 comes here again.
    }
  }
  const server = config.getCurrentCluster()?.server ?? ''
  return {
    base: baseUrl(server, 'https'),
    async options() {
      // Certificates that were renewed in the file: an expired one need not be refused by a 401.
      if (changedAt(file) !== loaded) reload()
      const whole: RequestOptions = {}
      await config.applyToHTTPSOptions(whole)
      const { ca, cert, key, pfx, passphrase, rejectUnauthorized, servername, headers, auth, agent } = whole
      const given = { ca, cert, key, pfx, passphrase, rejectUnauthorized, servername, headers, auth }
      // Its agent is of use only where a proxy leads to the server; connections are ours otherwise.
      const proxy = config.getCurrentCluster()?.proxyUrl === undefined ? {} : { agent }
      return Object.fromEntries(Object.entries({ ...given, ...proxy }).filter(([, value]) => value !== undefined))
    },
    refused: reload,
    authority() {
      const { caData = '', caFile = '' } = config.getCurrentCluster() ?? {}
      return caData !== '' || caFile === '' ? caData : readFileSync(caFile, 'utf8')
    },
  }
}

/** 0: there is no such file at this moment. */
const changedAt = (file: string): number => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0

function loadConfig(config: KubeConfig, file: string, context: string): KubeConfig {
  config.loadFromFile(file)
  if (context !== '') config.setCurrentContext(context)
  const name = config.getCurrentContext()
  if (config.getContextObject(name) === null) throw new AccessError(`context ${JSON.stringify(name)} does not exist in ${file}`)
  if (config.getCurrentCluster() === null) throw new AccessError(`context ${JSON.stringify(name)} names no cluster of ${file}`)
  // The library refuses plain HTTP unless verification is off; there is nothing to verify.
  config.clusters = config.clusters.map((cluster) => (cluster.server.startsWith('http:') ? { ...cluster, skipTLSVerify: true } : cluster))
  return config
}
