/** A whole server whose datagrams are handed to it by the test, without sockets: for what is counted per query. */
import { realClock } from '../../src/plugins/clock.js'
import type { Clock, PluginModule } from '../../src/plugins/contract.js'
import { loadModule, pluginTable } from '../../src/plugins/load.js'
import { Control } from '../../src/server/control.js'
import type { Origin, PacketHandler } from '../../src/server/listeners/ports.js'
import { Loggers } from '../../src/server/log.js'
import { directSpawn } from '../../src/server/spawn.js'
import { dgramTransport, type Transport } from '../../src/server/transport.js'

export interface HandedServer {
  /** The datagram comes in; what is sent in the same turn goes to `sent`. */
  hand(data: Buffer, length: number): void
  /** The last reply and its length; other octets after the next one. */
  readonly sent: Buffer
  sentLength: number
  /** Replies so far. */
  replies: number
  /** Prometheus text. */
  metrics(): Promise<string>
  reload(corefile: string): Promise<Error | undefined>
  close(): Promise<void>
}

/** `modules` stand in for built-in plugins of the same directive, or come first in the chain; `over` stands in for parts of the transport. */
export async function handedServer(
  corefile: string,
  modules: Readonly<Record<string, PluginModule>>,
  over: Partial<Transport> = {},
  clock: Clock = realClock,
): Promise<HandedServer> {
  let handler: PacketHandler | undefined
  const transport: Transport = {
    ...dgramTransport,
    openDatagram: () => async (address, port, _claim, receive) => {
      handler = receive
      return { address, port, handler: receive, share: async () => undefined, close: () => undefined }
    },
    ...over,
  }
  const builtin = pluginTable().map((entry) => (entry.directive in modules ? { ...entry, builtin: false } : entry))
  const own = Object.keys(modules).filter((name) => builtin.every(({ directive }) => directive !== name))
  const table = [...own.map((name) => ({ directive: name, specifier: `test:${name}`, builtin: false })), ...builtin]
  const load = async (entry: (typeof table)[number]) => modules[entry.directive] ?? (await loadModule(entry))
  const control = new Control({
    input: { name: 'Corefile', read: () => corefile },
    port: '0',
    plugins: table,
    threads: 1,
    spawn: directSpawn('0', table, { loadModule: load, transport, clock, connectDatagram: transport.connectDatagram }),
    loggers: new Loggers({ write: () => undefined, flush: () => undefined }),
    clock,
    loadModule: load,
    quiet: true,
    exit: () => undefined,
  })
  await control.start()
  const origin: Origin & Origin['peer'] = {
    proto: 'udp',
    address: '127.0.0.1',
    port: 40_000,
    family: 4,
    localAddress: '127.0.0.1',
    localPort: 53,
    get peer() {
      return origin
    },
    room: () => undefined,
    retain: () => undefined,
    send(data, offset, length) {
      server.sentLength = data.copy(server.sent, 0, offset, offset + length)
      server.replies++
      return true
    },
    end: () => undefined,
    drained: () => undefined,
  }
  const server: HandedServer = {
    hand: (data, length) => handler?.(data, length, origin),
    sent: Buffer.alloc(4096),
    sentLength: 0,
    replies: 0,
    metrics: async () => (await control.metricsText()).body,
    reload: (text) => control.reload({ name: 'Corefile', read: () => text }),
    close: () => control.stop(),
  }
  return server
}
