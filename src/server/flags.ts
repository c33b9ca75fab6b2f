/** CoreDNS's flags, read as Go reads them: one dash or two, `-name value` or `-name=value`, the first other word ends them. */

/** What each flag is for; a placeholder marks those that take a value. */
export const FLAGS: readonly { readonly name: string; readonly value?: string; readonly help: string; readonly hidden?: boolean }[] = [
  { name: 'conf', value: 'string', help: 'Corefile to load (default "Corefile")' },
  { name: 'dns.port', value: 'string', help: 'Default port (default "53")' },
  { name: 'hints', value: 'string', help: 'File to print after the start: what to try', hidden: true },
  { name: 'p', value: 'string', help: 'Default port (default "53")' },
  { name: 'pidfile', value: 'string', help: 'Path to write pid file' },
  { name: 'plugin-cfg', value: 'string', help: 'Table of further plugins and their places in the order, as plugin.cfg' },
  { name: 'plugins', help: 'List installed plugins' },
  { name: 'quiet', help: 'Quiet mode (no initialization output)' },
  { name: 'threads', value: 'int', help: 'Serving threads (default: as multisocket says, else 1)' },
  { name: 'transport', value: 'string', help: 'How UDP is moved: auto, batch (recvmmsg and sendmmsg) or dgram (default "auto")' },
  { name: 'version', help: 'Show version' },
]

export interface Flags {
  readonly values: ReadonlyMap<string, string>
  readonly switches: ReadonlySet<string>
  readonly rest: readonly string[]
}

/** A mistake on the command line: exit code 2, with the usage. */
export class UsageError extends Error {}
/** `-help` or `-h`. */
export class HelpAsked extends Error {}

const TRUE: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True'])
const FALSE: ReadonlySet<string> = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False'])

export function parseFlags(args: readonly string[]): Flags {
  const values = new Map<string, string>()
  const switches = new Set<string>()
  let i = 0
  for (; i < args.length; i++) {
    const word = args[i]!
    if (word === '--') {
      i++
      break
    }
    if (word.length < 2 || !word.startsWith('-')) break
    const [, name, value] = /^--?([^=]*)(?:=([\s\S]*))?$/.exec(word) ?? []
    if (name === undefined || name === '' || name.startsWith('-')) throw new UsageError(`bad flag syntax: ${word}`)
    const flag = FLAGS.find((known) => known.name === name)
    if (flag === undefined) {
      if (name === 'help' || name === 'h') throw new HelpAsked()
      throw new UsageError(`flag provided but not defined: -${name}`)
    }
    if (flag.value === undefined) {
      if (value === undefined || TRUE.has(value)) switches.add(name)
      else if (FALSE.has(value)) switches.delete(name)
      else throw new UsageError(`invalid boolean value ${JSON.stringify(value)} for -${name}: parse error`)
      continue
    }
    const given = value ?? args[++i]
    if (given === undefined) throw new UsageError(`flag needs an argument: -${name}`)
    // -p is short for -dns.port: the last one given counts.
    values.set(name === 'p' ? 'dns.port' : name, given)
  }
  return { values, switches, rest: args.slice(i) }
}

export function usage(program: string): string {
  const lines = FLAGS.filter(({ hidden }) => hidden !== true).map(
    ({ name, value, help }) => `  -${name}${value === undefined ? '' : ` ${value}`}\n    \t${help}`,
  )
  const commands = [
    `  ${program} check CONF...\n    \tParse and set up Corefiles without serving them`,
    `  ${program} query NAME [TYPE] [@SERVER]\n    \tAsk a DNS server`,
  ]
  return `Usage of ${program}:\n${lines.join('\n')}\nCommands:\n${commands.join('\n')}\n`
}
