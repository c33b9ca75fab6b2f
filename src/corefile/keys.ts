/** Keys of server blocks: transport, zone and port, and CIDR prefixes as the reverse zones they stand for (RFC 2317's neighbours). */
import { isIPv4, isIPv6 } from 'node:net'
import { quote } from './quote.js'
import { type Argument, CorefileError, nearest, type Position, type Transport, type ZoneKey } from './tree.js'

const transports = ['tls', 'dns', 'quic', 'grpc', 'https3', 'https', 'unix'] as const

/** A transport that an address may name; `unix` is for upstreams and sinks, never for a server. */
export type AddressTransport = (typeof transports)[number]

/** Cuts a known scheme off; without one it is plain DNS. An unknown scheme stays part of the address, as in CoreDNS. */
export function splitTransport(text: string): { transport: AddressTransport; address: string; explicit: boolean } {
  for (const transport of transports) {
    if (text.startsWith(`${transport}://`)) return { transport, address: text.slice(transport.length + 3), explicit: true }
  }
  return { transport: 'dns', address: text, explicit: false }
}

/**
 * Splits "zone:port" or "prefix/bits:port". `zones` are not normalised yet (see `normalizeZone`); a prefix off an octet (nibble)
 * boundary gives up to 128 (8) of them. Throws a plain Error in CoreDNS's words.
 */
export function splitZonePort(text: string): { zones: string[]; port: string } {
  const colon = text.lastIndexOf(':')
  if (colon === text.length - 1) throw new Error(`expecting data after last colon: ${quote(text)}`)
  const number = colon < 0 ? undefined : portNumber(text.slice(colon + 1))
  const zone = number === undefined ? text : text.slice(0, colon)
  const length = Buffer.byteLength(zone)
  if (length > 255) throw new Error(`specified zone is too long: ${length} > 255`)
  if (!isDomainName(zone)) throw new Error(`zone is not a valid domain name: ${zone}`)
  return { zones: reverseZones(zone) ?? [zone], port: number === undefined ? '' : String(number) }
}

/** Lower case and with a final dot. */
export function normalizeZone(zone: string): string {
  const full = isFullyQualified(zone) ? zone : `${zone}.`
  if (/^[\0-\x7f]*$/.test(full)) return full.toLowerCase()
  return Array.from(full, (character) => [...character.toLowerCase()][0] ?? character).join('')
}

/** The zones that one key stands for. Throws CorefileError. */
export function zoneKeys(key: Argument, warn: (message: string, pos: Position) => void): ZoneKey[] {
  const { transport, address } = splitTransport(key.text)
  const fail = (message: string): CorefileError => new CorefileError(message, key.pos, key.text)
  if (transport === 'unix') throw fail(`unix:// is no transport to serve: ${quote(key.text)}`)
  let split: { zones: string[]; port: string }
  try {
    split = splitZonePort(address)
  } catch (error) {
    throw fail(`error inspecting server blocks: ${(error as Error).message}`)
  }
  // CoreDNS fails on such a port once it listens.
  if (Number(split.port) < 0 || Number(split.port) > 65535) throw fail(`address ${split.port}: invalid port`)
  return split.zones.map((zone) => {
    checkZone(zone, key, warn)
    return { zone: normalizeZone(zone), transport: transport as Transport, port: split.port, text: key.text, pos: key.pos }
  })
}

function checkZone(zone: string, key: Argument, warn: (message: string, pos: Position) => void): void {
  const scheme = /^([a-z0-9+]+):\/\//i.exec(zone)?.[1]
  if (scheme !== undefined) {
    const hint = nearest(scheme, transports)
    warn(
      `'${scheme}://' is no known transport, '${zone}' is served as a zone${hint === undefined ? '' : `; did you mean '${hint}://'?`}`,
      key.pos,
    )
  } else if (/^\d+\.\d+\.\d+\.\d+(\/\d+)?$/.test(zone) || (zone.includes(':') && zone.includes('/'))) {
    warn(`'${zone}' is served as a domain name, it is no address with a prefix length`, key.pos)
  } else if (/[^\0-\x7f]/.test(zone)) {
    warn(`'${zone}' is not ASCII: queries carry the xn-- form of such a name, write that`, key.pos)
  }
}

/** Go's strconv.Atoi: a sign is allowed, and a number beyond 64 bits is none. */
function portNumber(text: string): bigint | undefined {
  if (!/^[+-]?[0-9]+$/.test(text) || text.length > 100) return undefined
  const magnitude = BigInt(text.replace(/^[+-]/, ''))
  const value = text.startsWith('-') ? -magnitude : magnitude
  return value === BigInt.asIntN(64, value) ? value : undefined
}

function isFullyQualified(zone: string): boolean {
  if (!zone.endsWith('.')) return false
  const backslashes = /\\*$/.exec(zone.slice(0, -1))?.[0].length ?? 0
  return backslashes % 2 === 0
}

/** Labels of 1 to 63 octets, at most 255 in all, escapes `\DDD` and `\X` counted as one octet (RFC 1035 §5.1). */
export function isDomainName(zone: string): boolean {
  if (zone === '' || zone.length > 1024) return false
  if (zone === '.') return true
  const full = Buffer.from(isFullyQualified(zone) ? zone : `${zone}.`)
  let total = 1
  let label = 0
  for (let at = 0; at < full.length; at++) {
    if (full[at] !== 0x2e) {
      if (full[at] === 0x5c) at += isDecimalEscape(full, at + 1) ? 3 : 1
      if (at >= full.length) return false
      label++
      continue
    }
    if (label === 0 || label > 63) return false
    total += label + 1
    label = 0
  }
  return label === 0 && total <= 255
}

function isDecimalEscape(text: Buffer, at: number): boolean {
  for (let i = at; i < at + 3; i++) {
    const octet = text[i]
    if (octet === undefined || octet < 0x30 || octet > 0x39) return false
  }
  return true
}

/**
 * The reverse zones of an address prefix in CIDR notation, or undefined if `text` is none. One that does not end on a label's border
 * becomes all zones of the next longer border. Throws for the IPv6 spellings that CoreDNS refuses.
 */
export function reverseZones(text: string): string[] | undefined {
  const slash = text.indexOf('/')
  const digits = text.slice(slash + 1)
  if (slash < 0 || !/^[0-9]+$/.test(digits)) return undefined
  const address = text.slice(0, slash)
  const bits = Number(digits)
  if (isIPv4(address)) {
    if (bits > 32) return undefined
    return zonesOf(address.split('.').map(Number), bits, 8).map((labels) => `${[...labels, 'in-addr', 'arpa'].join('.')}.`)
  }
  if (!isIPv6(address) || address.includes('%') || bits > 128) return undefined
  if (text.startsWith(':') || text.startsWith('0')) throw new Error(`invalid CIDR ${text}`)
  const nibbles = [...ipv6Groups(address)].flatMap((group) =>
    [...group.toString(16).padStart(4, '0')].map((digit) => Number.parseInt(digit, 16)),
  )
  return zonesOf(nibbles, bits, 4).map((labels) => `${[...labels.map((digit) => digit.toString(16)), 'ip6', 'arpa'].join('.')}.`)
}

/** Labels, least significant first, of every zone below the prefix on the next border. `width`: bits of a label. */
function zonesOf(parts: readonly number[], bits: number, width: number): number[][] {
  const whole = Math.floor(bits / width)
  const head = parts.slice(0, whole).reverse()
  const rest = bits % width
  if (rest === 0) return [head]
  const size = 2 ** (width - rest)
  const first = Math.floor((parts[whole] ?? 0) / size) * size
  return Array.from({ length: size }, (_, i) => [first + i, ...head])
}

/** The eight 16-bit groups of a valid IPv6 address. */
function ipv6Groups(address: string): number[] {
  const dotted = /(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address)
  let text = address
  if (dotted !== null) {
    const [a, b, c, d] = dotted.slice(1).map(Number) as [number, number, number, number]
    text = `${address.slice(0, dotted.index)}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
  }
  const [left = '', right] = text.split('::')
  const groups = (part: string): number[] => (part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16)))
  const before = groups(left)
  if (right === undefined) return before
  const after = groups(right)
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after]
}
