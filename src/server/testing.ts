/**
 * A whole server in one process, for tests: control and serving half over a direct channel, on loopback, on ports that the system
 * picks. Public as "cairndns/testing", together with the helpers for a single plugin.
 */
import { randomInt } from 'node:crypto'
import { CLASS, Message, Name, typeNumber } from '../dns/index.js'
import { realClock } from '../plugins/clock.js'
import type { PluginModule } from '../plugins/contract.js'
import { loadModule, pluginTable } from '../plugins/load.js'
import { exchange } from './client.js'
import type { ConfigInput } from './config.js'
import { Control } from './control.js'
import { Loggers } from './log.js'
import type { PluginEntry } from './protocol.js'
import { directSpawn } from './spawn.js'

export * from '../plugins/testing.js'

export interface ServerOptions {
  /** Text of the Corefile. Port 0 (`.:0`) is a free one; a key without a port means that too. */
  readonly corefile: string
  /** Name of the Corefile in errors, and where relative imports start; "Corefile" if not given. */
  readonly file?: string
  /** Values for `{$NAME}`; the process's environment if not given. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Modules to serve beside, or instead of, the built-in ones, by directive. New ones go to the front of the chain, or ahead of `before`. */
  readonly plugins?: Readonly<Record<string, PluginModule | { readonly module: PluginModule; readonly before: string }>>
  /** Table of further plugins, as `--plugin-cfg`. */
  readonly pluginCfg?: string
  /** Serving threads, whatever `multisocket` says. Here they all live in the test's own thread. */
  readonly threads?: number
}

export interface AskOptions {
  /** The server's first port if not given. */
  readonly port?: number
  readonly host?: string
  readonly proto?: 'udp' | 'tcp'
  readonly class?: number
  readonly rd?: boolean
  readonly cd?: boolean
  readonly dnssecOk?: boolean
  /** EDNS size; without it and without `dnssecOk` there is no OPT. */
  readonly size?: number
  /** Milliseconds; 5000 if not given. */
  readonly timeout?: number
}

export interface TestServer {
  /** Of the first line in `listening`. */
  readonly port: number
  /** Zones and ports as the start-up banner names them: "example.org.:34567". */
  readonly listening: readonly string[]
  /** Port of an HTTP endpoint by its address in the Corefile ("localhost:0", ":0"). */
  httpPort(address: string): number | undefined
  /** All that was logged so far, line by line. */
  readonly logs: readonly string[]
  query(name: string, type?: string, options?: AskOptions): Promise<Message>
  /** Changes over to this Corefile; resolves to the reason if it could not. */
  reload(corefile: string): Promise<Error | undefined>
  /** Prometheus text. */
  metrics(): Promise<string>
  /** Names of plugins that are not ready. */
  notReady(): Promise<readonly string[]>
  close(): Promise<void>
}

/** Starts a server; rejects with the error that a start from the command line would print. */
export async function startServer(options: ServerOptions): Promise<TestServer> {
  const { env, file = 'Corefile' } = options
  const logs: string[] = []
  const loggers = new Loggers({ write: (text) => void logs.push(...text.split('\n').slice(0, -1)), flush: () => undefined })
  const { entries, load } = withModules(pluginTable(options.pluginCfg), options.plugins ?? {})
  const input = (text: string): ConfigInput => ({ name: file, read: () => text })
  const control = new Control({
    input: input(options.corefile),
    port: '0',
    plugins: entries,
    threads: options.threads,
    spawn: directSpawn('0', entries, { loadModule: load }),
    loggers,
    clock: realClock,
    loadModule: load,
    quiet: true,
    exit: (code) => void logs.push(`exit ${code}`),
    ...(env === undefined ? {} : { env }),
  })
  await control.start()
  return {
    get port() {
      return portOf(control.listening)
    },
    get listening() {
      return control.listening
    },
    logs,
    httpPort: (address) => control.http.port(address),
    query: (name, type = 'A', ask = {}) => question(name, type, { port: portOf(control.listening), ...ask }),
    reload: (corefile) => control.reload(input(corefile)),
    metrics: async () => (await control.metricsText()).body,
    notReady: () => control.notReady(),
    close: () => control.stop(),
  }
}

const portOf = (listening: readonly string[]): number =>
  Number(/:(\d+)(?: on .*)?$/.exec(listening.find((line) => !line.startsWith('Warning')) ?? '')?.[1])

function question(name: string, type: string, ask: AskOptions & { readonly port: number }): Promise<Message> {
  const number = typeNumber(type)
  if (number === undefined) throw new Error(`unknown type ${type}`)
  const { size, dnssecOk = false, rd = true, cd = false } = ask
  const edns =
    size === undefined && !dnssecOk ? undefined : { size: size ?? 4096, extendedRcode: 0, version: 0, dnssecOk, z: 0, options: [] }
  const message = Message.query(Name.parse(name), number, { id: randomInt(65_536), rd, cd, edns }, ask.class ?? CLASS.IN)
  return exchange(message.toBuffer(), {
    host: ask.host ?? '127.0.0.1',
    port: ask.port,
    proto: ask.proto ?? 'udp',
    timeout: ask.timeout ?? 5_000,
  })
}

/** Puts the test's own modules into the table. */
function withModules(table: readonly PluginEntry[], modules: NonNullable<ServerOptions['plugins']>) {
  const own = new Map<string, PluginModule>()
  const entries = [...table]
  for (const [directive, value] of Object.entries(modules)) {
    const before = 'before' in value ? value.before : undefined
    own.set(directive, 'before' in value ? value.module : value)
    const entry: PluginEntry = { directive, specifier: `test:${directive}`, builtin: false }
    const known = entries.findIndex((e) => e.directive === directive)
    const place = entries.findIndex((e) => e.directive === before)
    if (known !== -1) entries[known] = entry
    else entries.splice(Math.max(0, place), 0, entry)
  }
  const load = async (entry: PluginEntry): Promise<PluginModule> => own.get(entry.directive) ?? (await loadModule(entry))
  return { entries, load }
}
