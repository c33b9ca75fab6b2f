/** Which block answers: the longest zone of the listener that covers the name, its views in order. */
import { type Name, TYPE } from '../dns/index.js'
import type { Plugin, Query } from '../plugins/contract.js'
import type { Block } from './block.js'
import { StandingAnswers } from './standing.js'

/** One zone of a block on one listener. */
export interface Site {
  /** Presentation form, lower-case. */
  readonly zone: string
  readonly name: Name
  readonly block: Block
}

/** Blocks that serve one zone, in the order of their views. */
interface ZoneSites {
  readonly zone: Name
  readonly sites: Site[]
}

/** So many zones are looked through one by one in less time than one is looked up. */
const FEW = 8

export class Router {
  /** Whether classes other than IN are let in. */
  readonly chaos: boolean
  readonly sites: readonly Site[]
  /** Most labels first. */
  readonly #zones: readonly ZoneSites[]
  readonly #byKey = new Map<string, ZoneSites>()
  /** undefined: here none can stand. */
  readonly answers: StandingAnswers | undefined

  constructor(sites: readonly Site[]) {
    this.sites = sites
    this.chaos = sites.some(({ block }) => block.chaos)
    // A filter decides anew for each query.
    const standing = sites.some(({ block }) => block.standing) && sites.every(({ block }) => block.filters.length === 0)
    this.answers = standing ? new StandingAnswers() : undefined
    for (const site of sites) {
      const same = this.#byKey.get(site.name.key)
      if (same === undefined) this.#byKey.set(site.name.key, { zone: site.name, sites: [site] })
      else same.sites.push(site)
    }
    this.#zones = [...this.#byKey.values()].sort((a, b) => b.zone.labelCount - a.zone.labelCount)
  }

  /** Sets zone, view and metadata of the query. undefined: refused. */
  route(query: Query): Block | undefined {
    const { name, type } = query
    let child: Site | undefined
    const zones = this.#zones.length <= FEW ? this.#zones : this.#covering(name.key)
    for (let i = 0; i < zones.length; i++) {
      const { zone, sites } = zones[i]!
      if (!name.isUnder(zone)) continue
      if (zone.isRoot && child !== undefined) break
      const site = this.#choose(sites, query)
      if (site === REFUSE) return undefined
      if (site === undefined) continue
      if (type !== TYPE.DS || zone.isRoot) return enter(site, query)
      // DS lives at the parent (RFC 4035 §2.4): go on looking, come back here if no block serves a parent.
      child = site
    }
    return child === undefined ? undefined : enter(child, query)
  }

  /** The zones that a name is in, most labels first. */
  #covering(key: string): ZoneSites[] {
    const found: ZoneSites[] = []
    for (let at = 0; ; at += key.charCodeAt(at) + 1) {
      const zone = this.#byKey.get(key.slice(at))
      if (zone !== undefined) found.push(zone)
      if (at >= key.length) return found
    }
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
