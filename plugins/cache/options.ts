/** The `cache` directive as written: options with CoreDNS's defaults, bounds and error texts. */
import {
  type Argument,
  type Directive,
  normalizeZone,
  ONCE,
  parseDuration,
  parseInteger,
  type SetupContext,
  wrongCount,
  zonesOrDefault,
} from '../../src/plugins/contract.js'

export interface Limits {
  /** Entries; what CoreDNS would hold in its 256 shards. */
  readonly capacity: number
  /** Seconds. */
  readonly maxTtl: number
  readonly minTtl: number
}

export interface CacheOptions {
  readonly zones: readonly string[]
  readonly success: Limits
  readonly denial: Limits
  /** Seconds that failures are kept; 0: not at all. */
  readonly servfail: number
  /** Queries without a gap that make an entry popular; 0: no prefetching. */
  readonly prefetch: number
  /** Milliseconds: the longest gap. */
  readonly prefetchGap: number
  /** Per cent of the TTL that are left when prefetching begins. */
  readonly prefetchPercentage: number
  /** Seconds that an expired entry may still be served; 0: never. */
  readonly staleUpTo: number
  readonly verify: boolean
  /** Milliseconds to wait for the verification; 0: as long as it takes. */
  readonly verifyTimeout: number
  /** Seconds: TTL of stale answers. */
  readonly staleTtl: number
  /** Milliseconds between attempts to refresh after one that failed; 0: at once. */
  readonly staleRecheck: number
  readonly preferPositive: boolean
  readonly notSuccess: readonly string[]
  readonly notDenial: readonly string[]
  readonly keepTtl: boolean
  /** Queries for a name that is being asked for already wait for that answer (ours; on by default). */
  readonly coalesce: boolean
}

type Draft = { -readonly [K in keyof CacheOptions]: CacheOptions[K] }

const OPTIONS = ['success', 'denial', 'prefetch', 'serve_stale', 'serve_stale_policy', 'servfail', 'disable', 'keepttl', 'coalesce']
const SHARDS = 256

/** A capacity as CoreDNS takes it: a multiple of 256, at least 1,024. */
const capacityOf = (entries: number): number => Math.max(Math.trunc(entries / SHARDS), 4) * SHARDS

/** Throws a CorefileError for what CoreDNS refuses. */
export function parseOptions(uses: readonly Directive[], ctx: SetupContext): CacheOptions {
  const use = uses[0]!
  if (uses[1] !== undefined) throw ctx.fail(ONCE, uses[1])
  const reader = new Reader(ctx)
  let args = use.args
  let ttl: number | undefined
  if (args[0] !== undefined && /^[+-]?\d+$/.test(args[0].text)) {
    ttl = reader.ttl(args[0])
    args = args.slice(1)
  }
  const invalid = (arg: string, error: Error): void => ctx.warn(`'${arg}' is not a zone and left out: ${error.message}`, use)
  const draft: Draft = {
    zones: zonesOrDefault(
      args.map((arg) => arg.text),
      ctx.block.zones,
      invalid,
    ),
    success: { capacity: capacityOf(10_000), maxTtl: ttl ?? 3600, minTtl: 5 },
    denial: { capacity: capacityOf(10_000), maxTtl: ttl ?? 1800, minTtl: 5 },
    servfail: 5,
    prefetch: 0,
    prefetchGap: 60_000,
    prefetchPercentage: 10,
    staleUpTo: 0,
    verify: false,
    verifyTimeout: 0,
    staleTtl: 0,
    staleRecheck: 0,
    preferPositive: false,
    notSuccess: [],
    notDenial: [],
    keepTtl: false,
    coalesce: true,
  }
  for (const option of use.block ?? []) reader.option(option, draft)
  const policy = use.block?.find((option) => option.name === 'serve_stale_policy')
  if (policy !== undefined && !use.block?.some((option) => option.name === 'serve_stale'))
    throw ctx.fail('serve_stale_policy requires serve_stale', policy)
  return draft
}

class Reader {
  readonly #ctx: SetupContext
  #policySeen = false

  constructor(ctx: SetupContext) {
    this.#ctx = ctx
  }

  option(option: Directive, draft: Draft): void {
    switch (option.name) {
      case 'success':
      case 'denial':
        draft[option.name] = this.#limits(option, draft[option.name])
        return
      case 'prefetch':
        this.#prefetch(option, draft)
        return
      case 'serve_stale':
        this.#serveStale(option, draft)
        return
      case 'serve_stale_policy':
        this.#policy(option, draft)
        return
      case 'servfail':
        draft.servfail = this.#servfail(option)
        return
      case 'disable':
        this.#disable(option, draft)
        return
      case 'keepttl':
        if (option.args.length > 0) throw this.#ctx.error(wrongCount(option), option)
        draft.keepTtl = true
        return
      case 'coalesce': {
        const word = this.#one(option).text
        if (word !== 'on' && word !== 'off') throw this.#ctx.fail(`coalesce must be "on" or "off", not "${word}"`, option)
        draft.coalesce = word === 'on'
        return
      }
      default:
        throw this.#ctx.error(wrongCount(option), option, OPTIONS)
    }
  }

  ttl(arg: Argument): number {
    const ttl = this.#integer(arg)
    if (ttl <= 0) throw this.#ctx.fail(`cache TTL can not be zero or negative: ${ttl}`, arg)
    return ttl
  }

  #limits(option: Directive, old: Limits): Limits {
    const [capacity, ttl, minTtl] = option.args
    if (capacity === undefined) throw this.#ctx.error(wrongCount(option), option)
    const limits = {
      capacity: capacityOf(this.#integer(capacity)),
      maxTtl: ttl === undefined ? old.maxTtl : this.ttl(ttl),
      minTtl: minTtl === undefined ? old.minTtl : this.#integer(minTtl),
    }
    if (limits.minTtl < 0) throw this.#ctx.fail(`cache min TTL can not be negative: ${limits.minTtl}`, minTtl)
    return limits
  }

  #prefetch(option: Directive, draft: Draft): void {
    const [amount, gap, percentage] = option.args
    if (amount === undefined || option.args.length > 3) throw this.#ctx.error(wrongCount(option), option)
    draft.prefetch = this.#integer(amount)
    if (draft.prefetch < 0) throw this.#ctx.fail(`prefetch amount should be positive: ${draft.prefetch}`, amount)
    if (gap !== undefined) draft.prefetchGap = this.#duration(gap)
    if (percentage === undefined) return
    const last = percentage.text.at(-1)
    if (last !== '%') throw this.#ctx.fail(`last character of percentage should be \`%\`, but is: '${last}'`, percentage)
    draft.prefetchPercentage = this.#integer({ ...percentage, text: percentage.text.slice(0, -1) })
    if (draft.prefetchPercentage < 10 || draft.prefetchPercentage > 90)
      throw this.#ctx.fail(`percentage should fall in range [10, 90]: ${draft.prefetchPercentage}`, percentage)
  }

  #serveStale(option: Directive, draft: Draft): void {
    const [upTo, mode, ...rest] = option.args
    if (option.args.length > 5) throw this.#ctx.error(wrongCount(option), option)
    Object.assign(draft, { staleUpTo: 3600, staleTtl: 0, staleRecheck: 0, verify: false, verifyTimeout: 0 })
    if (upTo !== undefined) {
      const ms = this.#duration(upTo)
      if (ms < 0) throw this.#ctx.fail('invalid negative duration for serve_stale', upTo)
      draft.staleUpTo = Math.trunc(ms / 1000)
    }
    if (mode === undefined) return
    const word = mode.text.toLowerCase()
    if (word !== 'immediate' && word !== 'verify') throw this.#ctx.fail(`invalid value for serve_stale refresh mode: ${word}`, mode)
    draft.verify = word === 'verify'
    const timeout = draft.verify ? rest.shift() : undefined
    if (timeout !== undefined) {
      draft.verifyTimeout = this.#duration(timeout, 'invalid serve_stale verify timeout: ')
      if (draft.verifyTimeout < 0) throw this.#ctx.fail('invalid negative timeout for serve_stale verify', timeout)
    }
    const [ttl, recheck, surplus] = rest
    if (surplus !== undefined) throw this.#ctx.error(wrongCount(option), option)
    if (ttl !== undefined) draft.staleTtl = this.#staleTtl(ttl)
    if (recheck !== undefined) draft.staleRecheck = this.#recheck(recheck)
  }

  #staleTtl(arg: Argument): number {
    const ms = this.#duration(arg, 'invalid serve_stale response TTL: ')
    if (ms < 0) throw this.#ctx.fail('invalid negative response TTL for serve_stale', arg)
    if (ms % 1000 !== 0) throw this.#ctx.fail('serve_stale response TTL must be a whole number of seconds', arg)
    if (ms / 1000 > 0xffffffff) throw this.#ctx.fail('serve_stale response TTL exceeds the DNS TTL range', arg)
    return ms / 1000
  }

  #recheck(arg: Argument): number {
    const ms = this.#duration(arg, 'invalid serve_stale failure recheck: ')
    if (ms < 0) throw this.#ctx.fail('invalid negative failure recheck for serve_stale', arg)
    if (ms > 300_000) throw this.#ctx.fail('serve_stale failure recheck cannot exceed 5 minutes', arg)
    return ms
  }

  #policy(option: Directive, draft: Draft): void {
    if (this.#policySeen) throw this.#ctx.fail('serve_stale_policy can only be specified once', option)
    this.#policySeen = true
    const policy = this.#one(option)
    if (policy.text.toLowerCase() !== 'prefer_positive') throw this.#ctx.fail(`invalid serve_stale_policy: ${policy.text}`, policy)
    draft.preferPositive = true
  }

  #servfail(option: Directive): number {
    const arg = this.#one(option)
    const ms = this.#duration(arg)
    if (ms < 0) throw this.#ctx.fail('invalid negative ttl for servfail', arg)
    if (ms > 300_000) throw this.#ctx.fail('caching SERVFAIL responses over 5 minutes is not permitted', arg)
    return ms / 1000
  }

  #disable(option: Directive, draft: Draft): void {
    const [which, ...zones] = option.args
    if (which === undefined) throw this.#ctx.error(wrongCount(option), option)
    const names = zones.length === 0 ? ['.'] : zones.map((zone) => normalizeZone(zone.text))
    if (which.text === 'denial') draft.notDenial = names
    else if (which.text === 'success') draft.notSuccess = names
    else throw this.#ctx.fail('cache type for disable must be "success" or "denial"', which)
  }

  #one(option: Directive): Argument {
    const arg = option.args[0]
    if (arg === undefined || option.args.length > 1) throw this.#ctx.error(wrongCount(option), option)
    return arg
  }

  #integer(arg: Argument): number {
    return this.#read(arg, '', () => parseInteger(arg.text))
  }

  #duration(arg: Argument, prefix = ''): number {
    return this.#read(arg, prefix, () => parseDuration(arg.text))
  }

  #read(arg: Argument, prefix: string, parse: () => number): number {
    try {
      return parse()
    } catch (error) {
      throw this.#ctx.fail(prefix + (error as Error).message, arg)
    }
  }
}
