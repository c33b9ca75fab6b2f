/** TO addresses of a `forward` line: addresses, resolv.conf-like files, host names; each with where it came from. */
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import {
  type Argument,
  type Directive,
  isAddress,
  joinHostPort,
  quote,
  type SetupContext,
  splitHostPort,
  splitTransport,
} from '../../src/plugins/contract.js'

export type UpstreamTransport = 'dns' | 'tls' | 'https'

/** One upstream server. */
export interface Target {
  readonly transport: UpstreamTransport
  /** Address to connect to; a link-local one keeps its scope ("fe80::1%eth0"). */
  readonly host: string
  readonly port: number
  /** "10.0.0.10:53" or "[2001:db8::1]:53": what CoreDNS calls the upstream in metrics and metadata. */
  readonly label: string
  /** From `%name` of a tls:// address; "" if there is none. */
  readonly serverName: string
  /** The file it was read from, if it was. */
  readonly file: string | undefined
}

/** A host name that has to be looked up before it is a target. */
export interface HostTarget {
  readonly hostName: string
  readonly transport: UpstreamTransport
  readonly port: number
  readonly serverName: string
}

/** CoreDNS counts TO words, not what a file or a name stands for. */
const MAX_TO = 15

const DEFAULT_PORT: Readonly<Record<UpstreamTransport, number>> = { dns: 53, tls: 853, https: 443 }

/** Reads all TO words in their order. A file without nameservers gives nothing. */
export function readTargets(use: Directive, words: readonly Argument[], ctx: SetupContext): (Target | HostTarget)[] {
  for (const word of words) {
    const { transport, address } = splitTransport(word.text)
    if (transport === 'https' && address.includes('/'))
      throw ctx.fail(`paths are not allowed in HTTPS upstream addresses (the /dns-query path is used by default): ${word.text}`, word)
  }
  const targets = words.flatMap((word) => readWord(word, ctx))
  if (words.length > MAX_TO) throw ctx.fail(`more than ${MAX_TO} TOs configured: ${words.length}`, use)
  return targets
}

/** The same upstream named twice counts once, the first time. */
export function withoutDoubles(targets: readonly Target[]): Target[] {
  const seen = new Set<string>()
  return targets.filter((target) => !seen.has(target.label) && seen.add(target.label))
}

function readWord(word: Argument, ctx: SetupContext): (Target | HostTarget)[] {
  const { transport, address } = splitTransport(word.text)
  if (address === '') throw ctx.fail(`invalid address: ${quote(word.text)}`, word)
  const split = splitPort(address)
  const { host, zone } = splitZone(split.host)
  if (isIP(host) !== 0) {
    const known = supported(transport, word, ctx)
    return [target(known, host, port(split.port, known, word, ctx), known === 'dns' ? scopeOf(host, zone) : zone)]
  }
  const file = readResolvConf(address, word, ctx)
  if (file !== undefined) return file
  const known = supported(transport, word, ctx)
  if (!isHostName(host)) throw ctx.fail(`not an IP address, file, or valid domain: ${quote(word.text)}`, word)
  ctx.note(`${quote(host)} is no address; a start looks it up as a host name`, word)
  return [{ hostName: host, transport: known, port: port(split.port, known, word, ctx), serverName: zone }]
}

function supported(transport: string, word: Argument, ctx: SetupContext): UpstreamTransport {
  if (transport === 'dns' || transport === 'tls' || transport === 'https') return transport
  throw ctx.fail(`'${transport}' is not supported as a destination protocol in forward: ${word.text}`, word)
}

/** "host:port", "[host]:port" or a bare host; `port` is "" in the last case. The zone may stand inside or behind the brackets. */
function splitPort(address: string): { host: string; port: string } {
  try {
    return splitHostPort(address)
  } catch {
    // Several colons, or none: an address without a port.
    return { host: address.replace(/^\[|\]$/g, ''), port: '' }
  }
}

/** Cuts "%zone" off: the scope of an IPv6 address, or the server name of a TLS upstream. */
function splitZone(host: string): { host: string; zone: string } {
  const percent = host.lastIndexOf('%')
  if (percent < 0) return { host, zone: '' }
  return { host: host.slice(0, percent).replace(/^\[|\]$/g, ''), zone: host.slice(percent + 1).replace(/\]$/, '') }
}

const scopeOf = (host: string, zone: string): string => (/^fe[89ab]/i.test(host) ? zone : '')

function port(text: string, transport: UpstreamTransport, word: Argument, ctx: SetupContext): number {
  if (text === '') return DEFAULT_PORT[transport]
  const value = Number(text)
  if (!/^\d+$/.test(text) || value > 65_535) throw ctx.fail(`invalid port ${quote(text)} in ${quote(word.text)}`, word)
  return value
}

export function target(transport: UpstreamTransport, host: string, portNumber: number, zone: string, file?: string): Target {
  const scope = transport === 'dns' && zone !== '' ? `%${zone}` : ''
  return {
    transport,
    host: host + scope,
    port: portNumber,
    label: joinHostPort(host, portNumber),
    serverName: transport === 'dns' ? '' : zone,
    file,
  }
}

const isHostName = (text: string): boolean => text.length <= 255 && /^(?=.)([^./\s]{1,63}\.)*[^./\s]{1,63}\.?$/.test(text)

/** Nameservers of a resolv.conf-like file; undefined if there is no such file and the word may be a host name. */
function readResolvConf(path: string, word: Argument, ctx: SetupContext): Target[] | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' && !path.includes('/')) return undefined
    const message = `not an IP address or file ${quote(path)}: failed to open file ${quote(path)}: ${describe(code)}`
    if (!ctx.checking) throw ctx.fail(message, word)
    ctx.note(message, word)
    return []
  }
  const targets = nameservers(text, path, (line) => ctx.warn(`${path}: ${quote(line)} is no address, this nameserver is left out`, word))
  if (targets.length === 0) ctx.warn(`${path} names no nameserver`, word)
  return targets
}

const describe = (code: string | undefined): string =>
  code === 'ENOENT' ? 'no such file or directory' : code === 'EACCES' ? 'permission denied' : (code ?? 'unreadable')

/** `nameserver` lines of resolv.conf(5). The scope of a link-local address is kept to connect with. */
export function nameservers(text: string, file: string, invalid: (line: string) => void): Target[] {
  const targets: Target[] = []
  for (const line of text.split('\n')) {
    const [keyword, address] = line.trim().split(/\s+/)
    if (keyword !== 'nameserver' || address === undefined) continue
    if (!isAddress(address)) {
      invalid(line.trim())
      continue
    }
    const { host, zone } = splitZone(address)
    targets.push(target('dns', host, 53, scopeOf(host, zone), file))
  }
  return targets
}

export const isHost = (entry: Target | HostTarget): entry is HostTarget => 'hostName' in entry
