/** What the loop guard needs of a `forward`. */
import type { Name } from '../../dns/index.js'
import type { BlockConfig, Directive, Plugin } from '../contract.js'

export interface Guarded extends Plugin {
  readonly from: Name
  readonly use: Directive
  readonly upstreams: readonly { readonly label: string; readonly file: string | undefined }[]
  /** Whether a query for this name is its own. */
  matches(name: Name): boolean
  /** Asks one upstream by itself; rejects if it does not answer. */
  put(label: string, name: Name, type: number): Promise<void>
  suspend(label: string, reason: string): void
  resume(label: string): void
}

export const isGuarded = (plugin: Plugin): plugin is Guarded =>
  ['put', 'suspend', 'resume', 'matches'].every((member) => typeof Reflect.get(plugin, member) === 'function')

/** Octets that the two numbers of a probe name may take. */
const ROOM = 42
const LONGEST = 255

/** Where probe names lie so that the block lets this `forward` have them: the narrower of its FROM and the block's first zone. */
export function probeZone(forward: Guarded, block: BlockConfig): Name | undefined {
  const zone = block.zoneNames[0]
  if (zone === undefined) return undefined
  const narrower = forward.from.isUnder(zone) ? forward.from : zone.isUnder(forward.from) ? zone : undefined
  return narrower === undefined || narrower.wire.length + ROOM > LONGEST ? undefined : narrower
}
