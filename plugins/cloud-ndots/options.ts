/** Reads the `cloud_ndots` directive. */
import fs from 'node:fs'
import { Name } from '../../src/dns/index.js'
import type { Argument, Directive, SetupContext } from '../../src/plugins/contract.js'

export interface Options {
  /** Zones whose search suffixes are recognised, as lower-case names. */
  readonly zones: readonly Name[]
  /** Those of them that `kubernetes` serves in this block. */
  readonly clusterZones: ReadonlySet<string>
  readonly domains: readonly Name[]
  readonly except: readonly Name[]
  /** Further domains that the nodes' resolv.conf appends. */
  readonly search: readonly Name[]
  /** Seconds: the `ttl` of the block's `kubernetes`, 30 where there is none. The added CNAME and denials live no longer. */
  readonly ttlCap: number
}

const OPTIONS = ['domains', 'auto', 'search', 'except', 'auto_namespaces'] as const

export function readOptions(uses: readonly Directive[], ctx: SetupContext): Options {
  const use = uses[0]!
  if (uses.length > 1) throw ctx.error('cloud_ndots may be used once in a server block', uses[1])
  const named = use.args.map((arg) => readZone(arg, ctx))
  const lists = { domains: [] as Name[], except: [] as Name[], search: [] as Name[] }
  for (const option of use.block ?? []) {
    switch (option.name) {
      case 'domains':
      case 'except':
        lists[option.name].push(...words(option, ctx).map((arg) => readName(arg, ctx)))
        break
      case 'search':
        lists.search.push(...readSearch(option, ctx))
        break
      case 'auto':
      case 'auto_namespaces':
        throw ctx.error(`'${option.name}' is known, but not built yet; list the external domains with 'domains'`, option)
      default:
        throw ctx.error(`unknown property '${option.name}'`, option, OPTIONS)
    }
    if (option.block !== undefined) throw ctx.error(`'${option.name}' takes no block`, option)
  }
  if (lists.domains.length === 0) throw ctx.error("neither 'domains' nor 'auto' is given: nothing would be rewritten", use)
  const cluster = clusterZones(ctx)
  const zones = unique([...named, ...(cluster ?? ctx.block.zoneNames.filter((zone) => !isReverse(zone) && !zone.isRoot))])
  if (zones.length === 0) throw ctx.error("no zone to look at: name one, or serve one with 'kubernetes'", use)
  for (const [i, zone] of named.entries()) {
    if (!ctx.block.zoneNames.some((key) => zone.isUnder(key)))
      ctx.warn(`queries for ${zone} never reach cloud_ndots: no key of this server block covers it`, use.args[i])
  }
  return { ...lists, zones, clusterZones: new Set(cluster?.map((zone) => zone.key)), ttlCap: clusterTtl(ctx) }
}

function words(option: Directive, ctx: SetupContext): readonly Argument[] {
  if (option.args.length === 0) throw ctx.error(`Wrong argument count or unexpected line ending after '${option.name}'`, option)
  return option.args
}

function readName(arg: Argument, ctx: SetupContext): Name {
  const name = Name.tryParse(arg.text)
  if (name === undefined || name.isRoot) throw ctx.error(`'${arg.text}' is not a domain name`, arg)
  return Name.fromKey(name.key)
}

function readZone(arg: Argument, ctx: SetupContext): Name {
  const name = Name.tryParse(arg.text)
  if (name === undefined) throw ctx.error(`'${arg.text}' is not a domain name`, arg)
  if (name.isRoot || isReverse(name))
    throw ctx.error(`'${arg.text}' has no search suffixes: neither the root nor a reverse zone can be named`, arg)
  return Name.fromKey(name.key)
}

/** Names, `none`, or one resolv.conf-like file whose last `search` line counts (resolv.conf(5)). */
function readSearch(option: Directive, ctx: SetupContext): readonly Name[] {
  const [first] = words(option, ctx)
  if (option.args.length > 1 || first === undefined || !/[/\\]/.test(first.text)) {
    if (option.args.length === 1 && first?.text === 'none') return []
    return option.args.map((arg) => readName(arg, ctx))
  }
  let text: string
  try {
    text = fs.readFileSync(ctx.path(first.text), 'utf8')
  } catch (error) {
    if (!ctx.checking) throw ctx.error(`search file '${first.text}' can't be read: ${(error as NodeJS.ErrnoException).code}`, first)
    ctx.note(`search file '${first.text}' is not on this machine`, first)
    return []
  }
  let found: readonly string[] = []
  for (const line of text.split('\n')) {
    const [word, ...rest] = line.trim().split(/\s+/)
    if (word === 'search' || word === 'domain') found = rest
  }
  return found.flatMap((word) => {
    const name = Name.tryParse(word)
    if (name === undefined || name.isRoot) ctx.warn(`'${word}' in ${first.text} is not a domain name`, first)
    return name === undefined || name.isRoot ? [] : [Name.fromKey(name.key)]
  })
}

const REVERSE = [Name.parse('in-addr.arpa.'), Name.parse('ip6.arpa.')]
const isReverse = (name: Name): boolean => REVERSE.some((zone) => name.isUnder(zone))

/** Non-reverse zones of the block's `kubernetes`, or undefined if there is none. */
function clusterZones(ctx: SetupContext): readonly Name[] | undefined {
  const uses = ctx.block.directives.filter((directive) => directive.name === 'kubernetes')
  if (uses.length === 0) return undefined
  const zones = uses.flatMap((use) =>
    use.args.length === 0 ? ctx.block.zoneNames : use.args.flatMap((arg) => Name.tryParse(arg.text) ?? []),
  )
  return zones.filter((zone) => !isReverse(zone) && !zone.isRoot).map((zone) => Name.fromKey(zone.key))
}

/** CoreDNS's default for `kubernetes` is 5; without a `kubernetes` the cap is 30. */
function clusterTtl(ctx: SetupContext): number {
  const use = ctx.block.directives.find((directive) => directive.name === 'kubernetes')
  if (use === undefined) return 30
  const ttl = Number(use.block?.find((option) => option.name === 'ttl')?.args[0]?.text ?? 5)
  return Number.isInteger(ttl) && ttl >= 0 ? ttl : 5
}

function unique(names: readonly Name[]): readonly Name[] {
  return [...new Map(names.map((name) => [name.key, name])).values()]
}
