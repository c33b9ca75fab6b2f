/** A server block as it is built and as it serves. */

import { placedError, type ServerBlock } from '../corefile/tree.js'
import { Name } from '../dns/index.js'
import { blockSettings } from '../plugins/block-settings.js'
import type { BlockConfig, Handler, Plugin, Query, ZoneKey } from '../plugins/contract.js'
import { isWildcard, joinHostPort } from './listeners/addresses.js'

/** Plugins that open their listener to class CHAOS, as in CoreDNS. */
const CHAOTIC: ReadonlySet<string> = new Set(['chaos', 'forward'])
const DEFAULT_PORTS: Readonly<Record<string, string>> = { tls: '853', https: '443', grpc: '443', quic: '853', https3: '443' }

/** Milliseconds, where a block does not say otherwise. */
export const DEFAULT_TIMEOUTS = { read: 3000, write: 5000, idle: 10_000 } as const

export interface Block {
  readonly config: MutableConfig
  /** In the order of the chain. */
  readonly plugins: Plugin[]
  handler: Handler | undefined
  filters: readonly Plugin[]
  /** The block's `metadata` plugin, which asks the others. */
  collector: Plugin | undefined
  readonly finishers: ((bytes: Buffer, query: Query) => Buffer)[]
  chaos: boolean
  /** Whether answers may be given again without the chain. */
  standing: boolean
}

export interface MutableConfig extends BlockConfig {
  servers: readonly string[]
}

/** A block without plugins yet. `port` is the default of dns:// keys. */
export function makeBlock(source: ServerBlock, index: number, port: string): Block {
  const keys = source.keys.map((key) => (key.port === '' ? { ...key, port: DEFAULT_PORTS[key.transport] ?? port } : key))
  const zones = keys.map((key) => key.zone)
  return {
    config: {
      keys,
      zones,
      zoneNames: zones.map((zone) => Name.parse(zone)),
      transport: keys[0]!.transport,
      index,
      servers: [],
      directives: source.directives,
      ...blockSettings(),
    },
    plugins: [],
    handler: undefined,
    filters: [],
    collector: undefined,
    finishers: [],
    chaos: false,
    standing: false,
  }
}

/** After set-up of all its plugins. */
export function completeBlock(block: Block): void {
  const { config, plugins } = block
  block.filters = plugins.filter((plugin) => plugin.filter !== undefined)
  if (block.filters.length > 1) throw new Error('multiple views defined in server block')
  block.collector = plugins.find(({ name }) => name === 'metadata')
  block.standing = mayStand(block)
  block.chaos = config.chaos || plugins.some(({ name }) => CHAOTIC.has(name))
  config.servers = [...new Set(config.keys.flatMap((key) => hostsOf(config).map((host) => label(key, host))))]
}

/** Nothing is done to the octets behind the chain or depends on each query, and the first plugin does not say no to everything. */
function mayStand({ plugins, finishers, collector }: Block): boolean {
  const first = plugins.find(({ serveDNS }) => serveDNS !== undefined)
  return first?.stands !== undefined && finishers.length === 0 && collector === undefined
}

/** Where the block listens; "" is the wildcard. */
export const hostsOf = (config: BlockConfig): readonly string[] => config.bind ?? ['']

/** The `server` label: "dns://:53", "tls://127.0.0.1:853". */
export const label = (key: ZoneKey, host: string): string => `${key.transport}://${joinHostPort(host, key.port)}`

/** A zone on an address, for messages: "dns://example.org.:53 on 127.0.0.1". */
const described = (key: ZoneKey, host: string): string => `${key.transport}://${key.zone}:${key.port}${host === '' ? '' : ` on ${host}`}`

/**
 * No two blocks may serve the same zone on the same address, and the wildcard overlaps each single address. Blocks with a filter may share a
 * zone with others. Throws in CoreDNS's words.
 */
export function checkOverlaps(blocks: readonly Block[]): void {
  const exact = new Set<string>()
  /** Any use of zone and port, by the last address. */
  const anywhere = new Map<string, string>()
  for (const { config, filters } of blocks) {
    for (const key of config.keys) {
      for (const host of hostsOf(config)) {
        const own = described(key, host)
        const unbound = described(key, '')
        if (exact.has(own)) {
          if (filters.length > 0) continue
          throw placedError(`cannot serve ${own} - it is already defined`, key.pos, key.text)
        }
        const other = anywhere.get(unbound)
        if (other !== undefined && (host === '' || exact.has(unbound)))
          throw placedError(`cannot serve ${own} - zone overlap listener capacity with ${host === '' ? other : unbound}`, key.pos, key.text)
        if (filters.length > 0) continue
        exact.add(own)
        anywhere.set(unbound, own)
      }
    }
  }
}

/** Lines of the start-up banner for one listener: zones in order, with a warning for odd ones. */
export function bannerLines(transport: string, host: string, port: number, zones: readonly string[]): string[] {
  const scheme = transport === 'dns' ? '' : `${transport}://`
  return [...zones].sort().flatMap((zone) => {
    const line = `${scheme}${zone}:${port}${isWildcard(host) && host === '' ? '' : ` on ${host}`}`
    return preferredSyntax(zone) ? [line] : [`Warning: Domain ${JSON.stringify(zone)} does not follow RFC1035 preferred syntax`, line]
  })
}

/** What hosts are called (RFC 1035 §2.3.1), the root and reverse zones. Others are served, but are seldom meant. */
export const preferredSyntax = (zone: string): boolean =>
  zone === '.' || /\.(in-addr|ip6)\.arpa\.$/.test(zone) || /^(?:[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+$/.test(zone)
