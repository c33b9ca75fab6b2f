/** The options of one `forward` line: every one that CoreDNS 1.14.7 knows, its checks, defaults and wording, and ours beside them. */

import { Name, RCODE } from '../../src/dns/index.js'
import {
  type Argument,
  type Directive,
  formatDuration,
  isAddress,
  parseDuration,
  parseInteger,
  parseUnsigned,
  quote,
  type SetupContext,
  splitHostPort,
  zonesOf,
} from '../../src/plugins/contract.js'

export type PolicyName = 'random' | 'round_robin' | 'sequential'

export interface HealthOptions {
  /** Milliseconds between two probes of an upstream that does not answer. */
  interval: number
  recursionDesired: boolean
  domain: Name
}

export interface Options {
  except: Name[]
  forceTcp: boolean
  preferUdp: boolean
  /** Milliseconds; 0 keeps nothing idle. */
  expire: number
  /** Milliseconds from opening; 0: no limit. */
  maxAge: number
  /** 0: no limit. */
  maxIdle: number
  readTimeout: number
  /** 0: never down, never probed. */
  maxFails: number
  /** 0: no limit; undefined: twice the number of upstreams. */
  maxConnectAttempts: number | undefined
  policy: PolicyName
  health: HealthOptions
  /** 0: no limit. */
  maxConcurrent: number
  next: Set<number>
  nextOnNodata: boolean
  failover: Set<number>
  failfast: boolean
  sourceAddress: string | undefined
  dohMethod: 'GET' | 'POST'
  resolver: string[]
  /** 0–3 files: CA; CERT KEY; CERT KEY CA. */
  tls: readonly Argument[]
  tlsServerName: string
  /** Ours: milliseconds after which the next upstream is asked too; 'auto' by the upstream's p95; undefined: off, which is max(200 ms, 2 × p95). */
  hedge: number | 'auto' | undefined
  /** Ours: random letter case in questions (draft-vixie-dnsext-dns0x20). */
  randomCase: boolean
  /** Ours: DNS cookies (RFC 7873) with questions by UDP. */
  cookies: boolean
  /** Ours: the client's ECS option goes along. */
  ecsPass: boolean
}

export const defaults = (): Options => ({
  except: [],
  forceTcp: false,
  preferUdp: false,
  expire: 10_000,
  maxAge: 0,
  maxIdle: 0,
  readTimeout: 2000,
  maxFails: 2,
  maxConnectAttempts: undefined,
  policy: 'random',
  health: { interval: 500, recursionDesired: true, domain: Name.root },
  maxConcurrent: 0,
  next: new Set(),
  nextOnNodata: false,
  failover: new Set(),
  failfast: false,
  sourceAddress: undefined,
  dohMethod: 'POST',
  resolver: [],
  tls: [],
  tlsServerName: '',
  hedge: undefined,
  randomCase: false,
  cookies: false,
  ecsPass: false,
})

/** One option line: its arguments, the count of them checked in CoreDNS's words, and errors that say where. */
class Line {
  readonly #ctx: SetupContext
  readonly directive: Directive
  constructor(directive: Directive, ctx: SetupContext) {
    this.#ctx = ctx
    this.directive = directive
  }
  get args(): readonly Argument[] {
    return this.directive.args
  }
  get texts(): string[] {
    return this.args.map((arg) => arg.text)
  }
  fail(message: string, at: Directive | Argument = this.directive): Error {
    return this.#ctx.fail(message, at)
  }
  /** CoreDNS's ArgErr: it names the last word that it read. */
  wrongCount(after: string): Error {
    return this.#ctx.error(`Wrong argument count or unexpected line ending after '${after}'`, this.directive)
  }
  none(): void {
    const first = this.args[0]
    if (first !== undefined) throw this.wrongCount(first.text)
  }
  first(): Argument {
    const first = this.args[0]
    if (first === undefined) throw this.wrongCount(this.directive.name)
    return first
  }
  /** The only argument. CoreDNS takes a word that is left over for the next property. */
  one(): Argument {
    const extra = this.args[1]
    if (extra !== undefined) throw this.#ctx.error(`unknown property '${extra.text}'`, extra)
    return this.first()
  }
  some(): readonly Argument[] {
    if (this.args.length === 0) throw this.wrongCount(this.directive.name)
    return this.args
  }
  /** Runs a reader of the contract and gives its error a place. */
  read<T>(arg: Argument, reader: (text: string) => T): T {
    try {
      return reader(arg.text)
    } catch (error) {
      throw this.fail((error as Error).message, arg)
    }
  }
  duration(arg: Argument = this.one()): number {
    return this.read(arg, parseDuration)
  }
  notNegative(name: string): number {
    const arg = this.one()
    const value = this.duration(arg)
    if (value < 0) throw this.fail(`${name} can't be negative: ${arg.text}`, arg)
    return value
  }
  count(name: string): number {
    const arg = this.one()
    const value = this.read(arg, (text) => parseInteger(text))
    if (value < 0) throw this.fail(`${name} can't be negative: ${value}`, arg)
    return value
  }
  unsigned(): number {
    return this.read(this.one(), (text) => parseUnsigned(text, 32))
  }
  rcodes(): number[] {
    return this.some().map((arg) => {
      const code = rcodes.get(arg.text.toUpperCase())
      if (code === undefined) throw this.fail(`${arg.text} is not a valid rcode`, arg)
      return code
    })
  }
}

/** Rcodes by the names that CoreDNS's library has for them. */
const rcodes: ReadonlyMap<string, number> = new Map<string, number>([
  ...Object.entries(RCODE),
  ['DSOTYPENI', 11],
  ['BADSIG', 16],
  ['NOTIMPL', RCODE.NOTIMP],
])

const readers: Readonly<Record<string, (line: Line, options: Options) => void>> = {
  except(line, options) {
    for (const arg of line.some()) options.except.push(...zones(arg.text))
  },
  max_fails(line, options) {
    options.maxFails = line.unsigned()
  },
  max_connect_attempts(line, options) {
    options.maxConnectAttempts = line.unsigned()
  },
  health_check: readHealthCheck,
  force_tcp(line, options) {
    line.none()
    options.forceTcp = true
  },
  prefer_udp(line, options) {
    line.none()
    options.preferUdp = true
  },
  tls(line, options) {
    const fourth = line.args[3]
    if (fourth !== undefined) throw line.wrongCount(line.args.at(-1)?.text ?? '')
    options.tls = line.args
  },
  tls_servername(line, options) {
    options.tlsServerName = line.one().text
  },
  expire(line, options) {
    options.expire = line.notNegative('expire')
  },
  max_age(line, options) {
    options.maxAge = line.notNegative('max_age')
  },
  max_idle_conns(line, options) {
    options.maxIdle = line.count('max_idle_conns')
  },
  read_timeout(line, options) {
    const arg = line.one()
    options.readTimeout = line.duration(arg)
    if (options.readTimeout <= 0) throw line.fail(`read_timeout must be positive: ${arg.text}`, arg)
  },
  doh_method(line, options) {
    const method = line.one().text
    if (method !== 'POST' && method !== 'GET') throw line.fail('doh_method must be either POST or GET', line.one())
    options.dohMethod = method
  },
  policy(line, options) {
    const { text } = line.one()
    if (text !== 'random' && text !== 'round_robin' && text !== 'sequential') throw line.fail(`unknown policy '${text}'`, line.one())
    options.policy = text
  },
  max_concurrent(line, options) {
    options.maxConcurrent = line.count('max_concurrent')
  },
  next(line, options) {
    for (const code of line.rcodes()) options.next.add(code)
  },
  next_on_nodata(line, options) {
    line.none()
    options.nextOnNodata = true
  },
  failover(line, options) {
    for (const [i, code] of line.rcodes().entries()) {
      if (code === RCODE.NOERROR) throw line.fail('NoError cannot be used in failover', line.args[i])
      options.failover.add(code)
    }
  },
  failfast_all_unhealthy_upstreams(line, options) {
    line.none()
    options.failfast = true
  },
  resolver(line, options) {
    for (const arg of line.some()) {
      if (!isAddress(hostOf(arg.text))) throw line.fail(`resolver must be an IP address or IP:port: ${quote(arg.text)}`, arg)
    }
    options.resolver = line.texts
  },
  source_address(line, options) {
    const { text } = line.one()
    if (!isAddress(text) || text.includes('%')) throw line.fail(`invalid IP address: ${text}`, line.one())
    options.sourceAddress = text.replace(/^::ffff:(\d+\.\d+\.\d+\.\d+)$/i, '$1')
  },
  hedge(line, options) {
    const arg = line.one()
    if (arg.text === 'off') options.hedge = undefined
    else if (arg.text === 'auto') options.hedge = 'auto'
    else {
      options.hedge = line.duration(arg)
      if (options.hedge <= 0) throw line.fail(`hedge must be off, auto or a positive duration: ${arg.text}`, arg)
    }
  },
  random_case(line, options) {
    line.none()
    options.randomCase = true
  },
  cookies(line, options) {
    line.none()
    options.cookies = true
  },
  ecs(line, options) {
    const arg = line.one()
    if (arg.text !== 'pass' && arg.text !== 'strip') throw line.fail(`ecs must be pass or strip: ${arg.text}`, arg)
    options.ecsPass = arg.text === 'pass'
  },
}

/** Names of the options, for "did you mean". */
export const optionNames: readonly string[] = Object.keys(readers)

/** Options of the `proxy` plugin, which CoreDNS removed in 1.5.0, and what became of them. */
const proxyOptions: ReadonlyMap<string, string> = new Map([
  ['fail_timeout', 'probing decides when an upstream is back'],
  ['spray', 'upstreams are tried at random once all are down, as with spray'],
  ['protocol', "write 'force_tcp', or tls:// in front of the upstream"],
])

const proxyPolicies: ReadonlyMap<string, PolicyName> = new Map([
  ['first', 'sequential'],
  ['least_conn', 'random'],
])

export function readOptions(use: Directive, ctx: SetupContext): Options {
  const options = defaults()
  for (const directive of use.block ?? []) {
    const old = use.formerName === 'proxy' ? modern(directive, options, ctx) : directive
    if (old === undefined) continue
    const reader = Object.hasOwn(readers, old.name) ? readers[old.name] : undefined
    if (reader === undefined) throw ctx.error(`unknown property '${old.name}'`, old, optionNames)
    reader(new Line(old, ctx), options)
  }
  if (options.maxAge > 0 && options.maxAge < options.expire)
    throw ctx.fail(`max_age (${formatDuration(options.maxAge)}) must not be less than expire (${formatDuration(options.expire)})`, use)
  return options
}

/** A line of `proxy` as `forward` has it; undefined if there is nothing left of it. */
function modern(line: Directive, options: Options, ctx: SetupContext): Directive | undefined {
  const why = proxyOptions.get(line.name)
  if (why !== undefined) {
    if (line.name === 'protocol' && line.args[1]?.text === 'force_tcp') options.forceTcp = true
    else ctx.warn(`'${line.name}' of the old 'proxy' plugin is ignored: ${why}`, line)
    return undefined
  }
  if (line.name === 'health_check' && line.args[0]?.text.startsWith('/') === true) {
    ctx.warn("the HTTP health check of the old 'proxy' plugin is ignored: upstreams are probed by DNS", line)
    return undefined
  }
  const policy = line.name === 'policy' ? proxyPolicies.get(line.args[0]?.text ?? '') : undefined
  if (policy === undefined) return line
  ctx.warn(`policy '${line.args[0]?.text}' of the old 'proxy' plugin is read as '${policy}'`, line)
  options.policy = policy
  return undefined
}

function readHealthCheck(line: Line, options: Options): void {
  const arg = line.first()
  const interval = line.duration(arg)
  if (interval < 0) throw line.fail(`health_check can't be negative: ${Math.round(interval * 1e6)}`, arg)
  options.health.interval = interval
  options.health.domain = Name.root
  for (let i = 1; i < line.args.length; i++) {
    const word = line.args[i]!
    if (word.text === 'no_rec') options.health.recursionDesired = false
    else if (word.text === 'domain') {
      const domain = line.args[++i]
      if (domain === undefined) throw line.wrongCount('domain')
      const name = Name.tryParse(domain.text)
      if (name === undefined) throw line.fail(`health_check: invalid domain name ${domain.text}`, domain)
      options.health.domain = Name.fromKey(name.key)
    } else throw line.fail(`health_check: unknown option ${word.text}`, word)
  }
}

/** Zones of one `except` word; CoreDNS passes over what is none. */
function zones(text: string): Name[] {
  try {
    return zonesOf(text).map((zone) => Name.parse(zone))
  } catch {
    return []
  }
}

function hostOf(text: string): string {
  try {
    return splitHostPort(text).host
  } catch {
    return text
  }
}
