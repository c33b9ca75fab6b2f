/** Turns of phrase that set-up errors and log lines of many plugins share. */
import type { Directive } from '../corefile/tree.js'
import { CLASS, className, typeName } from '../dns/index.js'

/** The error for a line with too few or too many arguments; it names the line's last word. */
export const wrongCount = (use: Directive): string =>
  `Wrong argument count or unexpected line ending after '${use.args.at(-1)?.text ?? use.name}'`

export const ONCE = 'this plugin can only be used once per Server Block'

/** A duration as Go prints it: 1m0s, 1.5s, 300ms, 2µs. */
export function formatDuration(ms: number): string {
  const nanoseconds = Math.round(Math.abs(ms) * 1e6)
  const sign = ms < 0 ? '-' : ''
  if (nanoseconds === 0) return '0s'
  if (nanoseconds < 1e3) return `${sign}${nanoseconds}ns`
  if (nanoseconds < 1e6) return `${sign}${nanoseconds / 1e3}µs`
  if (nanoseconds < 1e9) return `${sign}${nanoseconds / 1e6}ms`
  const minutes = Math.floor(nanoseconds / 60e9)
  const seconds = `${(nanoseconds - minutes * 60e9) / 1e9}s`
  if (minutes === 0) return sign + seconds
  const hours = Math.floor(minutes / 60)
  return hours === 0 ? `${sign}${minutes}m${seconds}` : `${sign}${hours}h${minutes % 60}m${seconds}`
}

/** The type of a question as log lines of CoreDNS have it. */
export const questionType = (type: number): string => (type === 0 ? 'None' : typeName(type))

/** The class of a question as log lines of CoreDNS have it: ANY is the name of a type there. */
export const questionClass = (value: number): string => (value === CLASS.ANY ? 'CLASS255' : className(value))
