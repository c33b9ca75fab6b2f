/** What config-only plugins edit of a server block, as it stands before any of them did. */
import type { BlockConfig } from './contract.js'

export type BlockSettings = Omit<BlockConfig, 'keys' | 'zones' | 'zoneNames' | 'transport' | 'index' | 'servers' | 'directives'>

export const blockSettings = (): BlockSettings => ({
  bind: undefined,
  root: '',
  debug: false,
  stacktrace: false,
  chaos: false,
  viewName: '',
  tls: undefined,
  timeouts: { read: 0, write: 0, idle: 0 },
  maxTcpQueries: undefined,
  httpsMaxConnections: undefined,
  sockets: undefined,
})
