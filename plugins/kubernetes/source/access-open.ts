/** Opens the access that the options name. */
import type { RequestOptions } from 'node:https'
import type { Clock } from '../../../src/plugins/contract.js'
import type { Access } from '../options.js'
import { AccessError, type ApiAccess, baseUrl } from './access.js'
import { kubeconfigAccess } from './access-kubeconfig.js'
import { FileCache } from './file-cache.js'

/** What a process finds around itself; tests bring their own. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Folder with `token` and `ca.crt`. */
  readonly serviceAccount: string
}

/** CAIRNDNS_SERVICE_ACCOUNT names another folder than the one that is mounted into every pod. */
export const SURROUNDINGS: Surroundings = {
  env: process.env,
  serviceAccount: process.env.CAIRNDNS_SERVICE_ACCOUNT || '/var/run/secrets/kubernetes.io/serviceaccount',
}

/** Rejects with AccessError where the access cannot work: files that are missing, a pod without service account. */
export async function openAccess(
  access: Exclude<Access, { kind: 'manifests' }>,
  clock: Clock,
  around: Surroundings = SURROUNDINGS,
): Promise<ApiAccess> {
  try {
    switch (access.kind) {
      case 'endpoint':
        return endpointAccess(access.url, access.tls, clock)
      case 'cluster':
        return clusterAccess(around, clock)
      case 'kubeconfig':
        return await kubeconfigAccess(access.file, access.context)
    }
  } catch (error) {
    throw error instanceof AccessError ? error : new AccessError((error as Error).message, { cause: error })
  }
}

type TlsFiles = Extract<Access, { kind: 'endpoint' }>['tls']

/** `endpoint URL`, with or without `tls`. A file name that is "" is left out. */
function endpointAccess(url: string, tls: TlsFiles, clock: Clock): ApiAccess {
  const base = baseUrl(url, tls === undefined ? 'http' : 'https')
  if (tls === undefined || base.protocol === 'http:') return { base, options: () => ({}), refused: () => undefined, authority: () => '' }
  if ((tls.cert === '') !== (tls.key === '')) throw new AccessError('tls: a certificate needs its key, and a key its certificate')
  const files = new FileCache(clock)
  const options = (): RequestOptions => ({
    ...(tls.ca !== '' && { ca: files.read(tls.ca) }),
    ...(tls.cert !== '' && { cert: files.read(tls.cert), key: files.read(tls.key) }),
  })
  // What is missing shows at the start, not at the first request.
  options()
  return { base, options, refused: () => files.forget(), authority: () => (tls.ca === '' ? '' : String(files.read(tls.ca))) }
}

/** The service account of the pod that this process runs in. Tokens are renewed on disk. */
function clusterAccess({ env, serviceAccount }: Surroundings, clock: Clock): ApiAccess {
  const host = env.KUBERNETES_SERVICE_HOST
  const port = env.KUBERNETES_SERVICE_PORT
  if (!host || !port) {
    throw new AccessError('unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined')
  }
  const files = new FileCache(clock)
  const options = (): RequestOptions => ({
    ca: files.read(`${serviceAccount}/ca.crt`),
    headers: { authorization: `Bearer ${files.read(`${serviceAccount}/token`).trim()}` },
  })
  options()
  return {
    base: baseUrl(`https://${host.includes(':') ? `[${host}]` : host}:${port}`, 'https'),
    options,
    refused: () => files.forget(),
    authority: () => String(files.read(`${serviceAccount}/ca.crt`)),
  }
}
