/** What other plugins of a block may ask of `kubernetes`; its plugin object, found by `ctx.find('kubernetes')`, implements it. */

import type { Name, RR } from '../../src/dns/index.js'
import type { Plugin } from '../../src/plugins/contract.js'

export interface KubernetesView {
  /** Its zones, reverse ones too, in the order written. */
  readonly zones: readonly Name[]
  /** `ttl`, in seconds. */
  readonly ttl: number
  /** All objects have been listed once. */
  synced(): boolean
  /** The namespace exists and is exposed. Folded name. */
  namespaceExists(namespace: string): boolean
  /** The service exists (ready or not), in a namespace that is exposed. Folded names. */
  serviceExists(namespace: string, name: string): boolean
  /** The SOA record of a zone, which need not be one of `zones`. */
  soa(zone: Name): RR
}

export const isKubernetesView = (plugin: Plugin | undefined): plugin is Plugin & KubernetesView =>
  plugin !== undefined && 'namespaceExists' in plugin
