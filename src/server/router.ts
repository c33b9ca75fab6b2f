/** Which block answers: the longest zone of the listener that covers the name, its views in order. */
import { type Name, TYPE } from '../dns/index.js'
import type { Plugin, Query } from '../plugins/contract.js'
import type { Block } from './block.js'

/** One zone of a block on one listener. */
export interface Site {
  /** Presentation form, lower-case. */
  readonly zone: string
  readonly name: Name
  readonly block: Block
}

export class Router {
  /** Whether classes other than IN are let in. */
  readonly chaos: boolean
  readonly sites: readonly Site[]
  readonly #zones = new Map<string, Site[]>()

  constructor(sites: readonly Site[]) {
    this.sites = sites
    this.chaos = sites.some(({ block }) => block.chaos)
    for (const site of sites) {
      const same = this.#zones.get(site.name.key)
      if (same === undefined) this.#zones.set(site.name.key, [site])
      else same.push(site)
    }
  }

  /** Sets zone, view and metadata of the query. undefined: refused. */
  route(query: Query): Block | undefined {
    const key = query.name.key
    let child: Site | undefined
    for (let at = 0; at < key.length; at += key.charCodeAt(at) + 1) {
      const sites = this.#zones.get(at === 0 ? key : key.slice(at))
      if (sites === undefined) continue
      const site = this.#choose(sites, query)
      if (site === REFUSE) return undefined
      if (site === undefined) continue
      if (query.type !== TYPE.DS) return enter(site, query)
      // DS lives at the parent (RFC 4035 §2.4): go on looking, come back here if no block serves a parent.
      child = site
    }
    if (child !== undefined) return enter(child, query)
    const root = this.#zones.get('')
    if (root === undefined) return undefined
    const site = this.#choose(root, query)
    return site === undefined || site === REFUSE ? undefined : enter(site, query)
  }

  #choose(sites: readonly Site[], query: Query): Site | typeof REFUSE | undefined {
    for (const site of sites) {
      const { block } = site
      if (block.handler === undefined) {
        // At the root a block without plugins is passed over, as in CoreDNS; elsewhere it ends the search.
        if (site.name.isRoot && !query.name.isRoot) continue
        return REFUSE
      }
      if (block.collector !== undefined) collect(block.collector, query)
      if (passes(block.filters, query)) return site
    }
    return undefined
  }
}

const REFUSE = Symbol('refuse')

function enter(site: Site, query: Query): Block {
  query.zone = site.zone
  query.view = site.block.config.viewName
  return site.block
}

function collect(plugin: Plugin, query: Query): void {
  // A derived query shares the map of the client's, whose values describe the client's question.
  if (query.internal) query.metadata = new Map(query.metadata)
  plugin.metadata?.(query)
}

function passes(filters: readonly Plugin[], query: Query): boolean {
  for (const plugin of filters) if (!plugin.filter!(query)) return false
  return true
}
