/** Set-up of `forward`. See README.md for its syntax. */

import { Name } from '../../src/dns/index.js'
import { type Directive, type PluginModule, type SetupContext, splitTransport, wrongCount, zonesOf } from '../../src/plugins/contract.js'
import { Forward, type ForwardSetup } from './forward.js'
import { readOptions } from './options.js'
import { type HostTarget, isHost, readTargets, type Target } from './targets.js'
import { readTls } from './tls.js'

const forward: PluginModule = {
  name: 'forward',
  apiVersion: 1,
  setup(uses, ctx) {
    const lines = uses.map((use) => readUse(use, ctx))
    return lines.map((line, i) => new Forward({ ...line, hasNext: i < lines.length - 1 }, ctx))
  },
}

export default forward

function readUse(use: Directive, ctx: SetupContext): Omit<ForwardSetup, 'hasNext'> {
  const [fromArg, ...to] = use.args
  if (fromArg === undefined) throw ctx.error(wrongCount(use), use)
  const from = readFrom(fromArg.text, ctx)
  if (to.length === 0) throw ctx.error(wrongCount(use), use)
  const options = readOptions(use, ctx)
  const targets = readTargets(use, to, ctx)
  if (targets.length === 0) {
    if (!ctx.checking) throw ctx.fail('no valid upstream addresses found', use)
    ctx.note('no valid upstream addresses found', use)
  }
  for (const target of targets) checkServerName(target, options.tlsServerName, use, ctx)
  return { use, from, options, targets, tls: readTls(options.tls, ctx) }
}

function readFrom(text: string, ctx: SetupContext): Name {
  let zones: Name[]
  try {
    zones = zonesOf(text).map((zone) => Name.parse(zone))
  } catch {
    throw ctx.fail(`unable to normalize '${text}'`)
  }
  const first = zones[0]
  if (first === undefined) throw ctx.fail(`unable to normalize '${text}'`)
  if (zones.length > 1)
    ctx.warn(`Unsupported CIDR notation: '${splitTransport(text).address}' expands to multiple zones. Using only '${first}'.`)
  return first
}

function checkServerName(target: Target | HostTarget, global: string, use: Directive, ctx: SetupContext): void {
  if (target.transport !== 'tls' || target.serverName === '' || global === '') return
  const shown = isHost(target) ? `${target.hostName}:${target.port}` : target.label
  throw ctx.fail(
    `both forward ('${global}') and proxy level ('${target.serverName}') TLS servernames are set for upstream proxy 'tls://${shown}'`,
    use,
  )
}
