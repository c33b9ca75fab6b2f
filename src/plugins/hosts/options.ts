/** The `hosts` directive as written. */
import { isAbsolute, join } from 'node:path'
import {
  type Argument,
  type ControlContext,
  type Directive,
  ONCE,
  parseDuration,
  parseInteger,
  type SetupContext,
  wrongCount,
  zonesOrDefault,
} from '../contract.js'

export interface HostsOptions {
  /** As CoreDNS names it in logs and labels. */
  readonly path: string
  /** Absolute. */
  readonly file: string
  readonly given: boolean
  readonly zones: readonly string[]
  /** Seconds. */
  readonly ttl: number
  readonly reverse: boolean
  /** Milliseconds; 0: never. */
  readonly reload: number
  /** Zones that fall through; empty: none. */
  readonly fallthrough: readonly string[]
  readonly fallthroughUnsupported: boolean
  /** Lines of hosts data in the Corefile. */
  readonly inline: readonly string[]
}

type Context = SetupContext | ControlContext

const PROPERTIES = ['fallthrough', 'fallthrough_unsupported', 'no_reverse', 'ttl', 'reload']

/** Throws CorefileError. */
export function parseOptions(uses: readonly Directive[], ctx: Context): HostsOptions {
  const use = uses[0]!
  if (uses[1] !== undefined) throw ctx.fail(ONCE, uses[1])
  const [file, ...zones] = use.args
  const path = file?.text ?? '/etc/hosts'
  const draft = {
    path: isAbsolute(path) || ctx.block.root === '' ? path : join(ctx.block.root, path),
    file: ctx.path(path),
    given: file !== undefined,
    zones: zonesOrDefault(
      zones.map((zone) => zone.text),
      ctx.block.zones,
    ),
    ttl: 3600,
    reverse: true,
    reload: 5000,
    fallthrough: [] as readonly string[],
    fallthroughUnsupported: false,
    inline: [] as string[],
  }
  for (const property of use.block ?? []) {
    switch (property.name) {
      case 'fallthrough':
        draft.fallthrough = zonesOrDefault(
          property.args.map((arg) => arg.text),
          ['.'],
        )
        break
      case 'fallthrough_unsupported':
        if (property.args.length > 0) throw ctx.error(wrongCount(property), property)
        draft.fallthroughUnsupported = true
        break
      case 'no_reverse':
        draft.reverse = false
        break
      case 'ttl':
        draft.ttl = ttlOf(property, ctx)
        break
      case 'reload':
        draft.reload = reloadOf(property, ctx)
        break
      default:
        // Once `fallthrough` has been seen CoreDNS takes no more lines of data.
        if (draft.fallthrough.length > 0) throw ctx.error(`unknown property '${property.name}'`, property, PROPERTIES)
        draft.inline.push([property.name, ...property.args.map((arg) => arg.text)].join(' '))
    }
  }
  if (draft.fallthroughUnsupported && draft.fallthrough.length === 0) throw ctx.error('fallthrough_unsupported requires fallthrough', use)
  return draft
}

function ttlOf(property: Directive, ctx: Context): number {
  const arg = property.args[0]
  if (arg === undefined) throw ctx.error('ttl needs a time in second', property)
  const ttl = attempt(arg, parseInteger, () => ctx.error('ttl needs a number of second', arg))
  if (ttl <= 0 || ttl > 65_535) throw ctx.error('ttl provided is invalid', arg)
  return ttl
}

function reloadOf(property: Directive, ctx: Context): number {
  const arg = property.args[0]
  if (arg === undefined || property.args.length > 1) throw ctx.error('reload needs a duration (zero seconds to disable)', property)
  const reload = attempt(arg, parseDuration, () => ctx.error(`invalid duration for reload '${arg.text}'`, arg))
  if (reload < 0) throw ctx.error(`invalid negative duration for reload '${arg.text}'`, arg)
  return reload
}

function attempt(arg: Argument, parse: (text: string) => number, otherwise: () => Error): number {
  try {
    return parse(arg.text)
  } catch {
    // The plugin's own words say what is expected; the parser's would only say that it is not a number.
    throw otherwise()
  }
}
