/** Finds the external name inside a search-expanded one: `github.corp.example.<ns>.svc.<zone>` carries `github.corp.example`. */
import type { Name } from '../../src/dns/index.js'
import type { Options } from './options.js'

export interface Match {
  /** What stands before the suffix. */
  readonly external: Name
  /** The zone (or search domain) that the suffix belongs to. */
  readonly zone: Name
}

/** How often a search list may have been appended. */
const MAX_DEPTH = 3

/**
 * A function made once per block. It gives undefined for what is not under a suffix, or carries nothing external. Of the suffixes that fit
 * the longest counts whose rest is listed: in `a.corp.example.svc.<zone>`, the second step of a walk, `example` could be read as the
 * namespace, but then `a.corp` is nobody's name.
 */
export function matcher(options: Options): (name: Name) => Match | undefined {
  const zones = new Map(options.zones.map((zone) => [zone.key, zone]))
  const search = new Map(options.search.map((domain) => [domain.key, domain]))
  const isExternal = (name: Name): boolean => options.domains.some((domain) => name.isUnder(domain))

  /** What stands before a suffix of `name`. A client that appended its list twice leaves another suffix there: that is peeled off as well. */
  const peel = (name: Name, depth: number): Match | undefined => {
    const starts = labelStarts(name.key)
    let best: Match | undefined
    let bestStart = starts.length
    const consider = (start: number, zone: Name): void => {
      if (start < 1 || start >= bestStart) return
      const before = name.before(name.strip(start))
      const inner = depth < MAX_DEPTH ? peel(before, depth + 1) : undefined
      const external = inner?.external ?? before
      if (inner === undefined && !isExternal(external)) return
      best = { external, zone }
      bestStart = start
    }
    for (let i = 1; i < starts.length; i++) {
      const rest = name.key.slice(starts[i])
      const domain = search.get(rest)
      if (domain !== undefined) consider(i, domain)
      const zone = zones.get(rest)
      if (zone === undefined) continue
      consider(i, zone)
      if (name.key.slice(starts[i - 1], starts[i]) !== '\x03svc') continue
      consider(i - 1, zone)
      consider(i - 2, zone)
    }
    return best
  }

  return (name) => {
    const match = peel(name, 0)
    if (match === undefined || match.external.labelCount < 2 || hasUnderscore(match.external.key)) return undefined
    return options.except.some((domain) => match.external.isUnder(domain)) ? undefined : match
  }
}

function labelStarts(key: string): readonly number[] {
  const starts: number[] = []
  for (let at = 0; at < key.length; at += key.charCodeAt(at) + 1) starts.push(at)
  return starts
}

function hasUnderscore(key: string): boolean {
  for (let at = 0; at < key.length; at += key.charCodeAt(at) + 1) if (key[at + 1] === '_') return true
  return false
}
