/**
 * Small readers of arguments for plugins' set-up, with the results and the words of the Go functions that CoreDNS reads them with.
 * All throw a plain Error: the caller knows the position.
 */
import { isIP } from 'node:net'
import { normalizeZone, splitTransport, splitZonePort } from './keys.js'
import { quote } from './quote.js'

const nanoseconds: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3, // U+00B5
  μs: 1e3, // U+03BC
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
}

/** 2^63 ns, about 292 years: where Go's Duration ends. */
const LONGEST = 2n ** 63n

/**
 * A duration as Go's time.ParseDuration reads it ("1h2m3.5s", "-300ms", "0"), in milliseconds; fractions of one are kept. Throws an
 * Error such as `time: invalid duration "x"`, `time: missing unit in duration "5"`, `time: unknown unit "d" in duration "1d"`.
 */
export function parseDuration(text: string): number {
  const negative = text.startsWith('-')
  let rest = text.replace(/^[+-]/, '')
  if (rest === '0') return 0
  const invalid = (): Error => new Error(`time: invalid duration ${durationQuote(text)}`)
  if (rest === '' || text.length > 1024) throw invalid()
  let total = 0n
  while (rest !== '') {
    const [all, whole = '', fraction = ''] = /^([0-9]*)(?:\.([0-9]*))?/.exec(rest) ?? ['']
    if (whole === '' && fraction === '') throw invalid()
    if (BigInt(whole === '' ? 0 : whole) > LONGEST) throw invalid()
    rest = rest.slice(all.length)
    const unit = /^[^.0-9]*/.exec(rest)?.[0] ?? ''
    if (unit === '') throw new Error(`time: missing unit in duration ${durationQuote(text)}`)
    const scale = Object.hasOwn(nanoseconds, unit) ? nanoseconds[unit] : undefined
    if (scale === undefined) throw new Error(`time: unknown unit ${durationQuote(unit)} in duration ${durationQuote(text)}`)
    rest = rest.slice(unit.length)
    total += BigInt(whole === '' ? 0 : whole) * BigInt(scale) + BigInt(fractionOf(fraction, scale))
    if (total > LONGEST) throw invalid()
  }
  if (!negative && total === LONGEST) throw invalid()
  const value = Number(total) / 1e6
  return negative && value !== 0 ? -value : value
}

/** Rounded down as Go does it: digits beyond what 64 bits hold are dropped. */
function fractionOf(digits: string, scale: number): number {
  const kept = digits.slice(0, 18)
  return kept === '' ? 0 : Math.trunc(Number(kept) * (scale / 10 ** kept.length))
}

/** The time package quotes by itself: every octet outside printable ASCII as \xHH. */
function durationQuote(text: string): string {
  let out = ''
  for (const octet of Buffer.from(text)) {
    if (octet === 0x22 || octet === 0x5c) out += `\\${String.fromCharCode(octet)}`
    else out += octet >= 0x20 && octet < 0x80 ? String.fromCharCode(octet) : `\\x${octet.toString(16).padStart(2, '0')}`
  }
  return `"${out}"`
}

/** An integer as strconv.Atoi reads it (64 bits; rounded beyond 2^53), and then within `min` and `max`, both included. */
export function parseInteger(text: string, min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY): number {
  if (!/^[+-]?[0-9]+$/.test(text)) throw new Error(`strconv.Atoi: parsing ${quote(text)}: invalid syntax`)
  const value = Number(text)
  if (Math.abs(value) >= 2 ** 63) throw new Error(`strconv.Atoi: parsing ${quote(text)}: value out of range`)
  if (value < min || value > max) throw new Error(`${value} is out of range: ${min} to ${max}`)
  return value === 0 ? 0 : value
}

/** An unsigned integer as strconv.ParseUint(text, 10, bits) reads it: no sign; `bits` up to 53. */
export function parseUnsigned(text: string, bits: number): number {
  if (!/^[0-9]+$/.test(text)) throw new Error(`strconv.ParseUint: parsing ${quote(text)}: invalid syntax`)
  const value = Number(text)
  if (value >= 2 ** Math.min(bits, 53)) throw new Error(`strconv.ParseUint: parsing ${quote(text)}: value out of range`)
  return value
}

/** A truth value as strconv.ParseBool reads it. */
export function parseBoolean(text: string): boolean {
  if (['1', 't', 'T', 'TRUE', 'true', 'True'].includes(text)) return true
  if (['0', 'f', 'F', 'FALSE', 'false', 'False'].includes(text)) return false
  throw new Error(`strconv.ParseBool: parsing ${quote(text)}: invalid syntax`)
}

/** Whether `text` is an IP address; a zone ("%eth0") may follow an IPv6 one. */
export function isAddress(text: string): boolean {
  const percent = text.lastIndexOf('%')
  const bare = percent < 0 ? text : text.slice(0, percent)
  return !bare.includes('%') && isIP(bare) !== 0
}

/** "host:port" with brackets around IPv6 as net.SplitHostPort takes it apart. Throws with its words. */
export function splitHostPort(text: string): { host: string; port: string } {
  const fail = (why: string): Error => new Error(`address ${text}: ${why}`)
  const colon = text.lastIndexOf(':')
  if (colon < 0) throw fail('missing port in address')
  let host = text.slice(0, colon)
  let checked = host
  if (text.startsWith('[')) {
    const end = text.indexOf(']')
    if (end < 0) throw fail("missing ']' in address")
    if (end + 1 === text.length) throw fail('missing port in address')
    if (end + 1 !== colon) throw fail(text[end + 1] === ':' ? 'too many colons in address' : 'missing port in address')
    host = text.slice(1, end)
    checked = host
    if (host.includes('[')) throw fail("unexpected '[' in address")
  } else {
    if (host.includes(':')) throw fail('too many colons in address')
    if (checked.includes('[')) throw fail("unexpected '[' in address")
    if (checked.includes(']')) throw fail("unexpected ']' in address")
  }
  const port = text.slice(colon + 1)
  if (port.includes('[')) throw fail("unexpected '[' in address")
  if (port.includes(']')) throw fail("unexpected ']' in address")
  return { host, port }
}

export function joinHostPort(host: string, port: string | number): string {
  return host.includes(':') || host.includes('%') ? `[${host}]:${port}` : `${host}:${port}`
}

/** An IP address with a port that may be left out, joined again. Throws as CoreDNS's parse.HostPort. */
export function parseHostPort(text: string, defaultPort: string | number): string {
  let split: { host: string; port: string }
  try {
    split = splitHostPort(text)
  } catch {
    // Not an address with a port, then: a bare address or nothing at all.
    if (!isAddress(text)) throw new Error(`must specify an IP address: \`${text}'`)
    return joinHostPort(text, defaultPort)
  }
  if (!isAddress(split.host)) throw new Error(`must specify an IP address: \`${split.host}'`)
  return joinHostPort(split.host, split.port === '' ? defaultPort : split.port)
}

/**
 * Zones that a plugin's arguments name, CIDR prefixes as their reverse zones, or the block's own where there are no arguments. As in
 * CoreDNS an argument that is no zone is left out; `invalid` is called with it.
 */
export function zonesOrDefault(
  args: readonly string[],
  blockZones: readonly string[],
  invalid?: (arg: string, error: Error) => void,
): string[] {
  if (args.length === 0) return [...blockZones]
  return args.flatMap((arg) => {
    try {
      return zonesOf(arg)
    } catch (error) {
      invalid?.(arg, error as Error)
      return []
    }
  })
}

/** The normalised zones of one argument, scheme and port cut off. Throws CoreDNS's words for what is no zone. */
export function zonesOf(text: string): string[] {
  return splitZonePort(splitTransport(text).address).zones.map(normalizeZone)
}
