/** Tokens of service accounts. */
import type { Api, Json } from './api.js'

export type { Json }

/** A fresh token; with `secret` it ends when that secret does. */
export async function tokenOf(api: Api, namespace: string, account: string, secret?: string): Promise<string> {
  const bound = secret === undefined ? {} : { boundObjectRef: { kind: 'Secret', apiVersion: 'v1', name: secret } }
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`
  const { status } = await api.request('POST', path, { spec: { expirationSeconds: 3600, ...bound } })
  return status.token
}
