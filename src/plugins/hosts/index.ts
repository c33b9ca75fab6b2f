/** `hosts`: set-up of both halves. The file is read in the control thread; serving threads have a copy. */
import { statSync } from 'node:fs'
import type { ControlContext, Directive, Plugin, PluginModule, SetupContext } from '../contract.js'
import { FileReplica, FileSource, firstValue } from '../file-source.js'
import { Hosts } from './handler.js'
import { type HostsOptions, parseOptions } from './options.js'
import { entriesOf, type HostsRow, HostsTable, parseHosts } from './table.js'

const module: PluginModule = {
  name: 'hosts',
  apiVersion: 1,
  setup(uses: readonly Directive[], ctx: SetupContext): Plugin {
    const options = parseOptions(uses, ctx)
    if (options.given) lookAtFile(options, uses[0]!, ctx)
    const key = keyOf(options)
    const inline = new HostsTable(parseHosts(options.inline.join('\n'), options.zones), options.reverse)
    let replica: FileReplica<HostsRow, HostsTable> | undefined
    const start = (): Promise<void> => {
      replica = ctx.shared(key, () => new FileReplica<HostsRow, HostsTable>((rows) => new HostsTable(rows, options.reverse)), ignore)
      ctx.replica(key, replica)
      return firstValue(replica, ctx.clock)
    }
    return new Hosts(options, { file: () => replica?.value ?? HostsTable.empty, inline }, start)
  },
  control(uses, ctx) {
    const options = parseOptions(uses, ctx)
    ctx.source(sourceOf(options, ctx))
    return undefined
  },
}
export default module

const ignore = (): void => undefined

/** All that the rows depend on, so that a reload which leaves them alone keeps them. */
const keyOf = ({ file, zones, reverse, reload, inline }: HostsOptions): string =>
  `hosts ${JSON.stringify([file, zones, reverse, reload, inline])}`

/** A file that is missing may appear later; one that may not be looked at is an error. */
function lookAtFile(options: HostsOptions, use: Directive, ctx: SetupContext): void {
  const remark = (text: string): void => {
    if (ctx.checking) ctx.note(text, use.args[0])
    else if (ctx.thread.index === 0) ctx.log.warning(text)
  }
  try {
    if (statSync(options.file).isDirectory()) remark(`Hosts file "${options.path}" is a directory`)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT') throw ctx.error(`unable to access hosts file '${options.path}': ${message}`, use.args[0])
    remark(`File does not exist: ${options.path}`)
  }
}

function sourceOf(options: HostsOptions, ctx: ControlContext): FileSource<HostsRow> {
  const entries = ctx.metrics.gauge('coredns_hosts_entries', 'The combined number of entries in hosts and Corefile.', ['hostsfile'])
  const reloaded = ctx.metrics.gauge('coredns_hosts_reload_timestamp_seconds', 'The timestamp of the last reload of hosts file.', [])
  const inline = entriesOf(parseHosts(options.inline.join('\n'), options.zones), options.reverse)
  let trouble = ''
  return new FileSource<HostsRow>({
    key: keyOf(options),
    path: options.file,
    interval: options.reload,
    clock: ctx.clock,
    parse: (text) => parseHosts(text, options.zones),
    onRead(rows, modified) {
      trouble = ''
      const count = entriesOf(rows, options.reverse)
      ctx.log.debug(`Parsed hosts file into ${count} entries`)
      entries.with(options.path).set(inline + count)
      reloaded.with().set(modified / 1000)
    },
    onError(error) {
      // A file that has gone keeps its rows, as in CoreDNS; said once, not at every look.
      if (error.message !== trouble) ctx.log.debug(`reading hosts file ${options.path}: ${error.message}`)
      trouble = error.message
    },
  })
}
