/** `template`: answers made of the question by rules. */
import { CLASS, className, type Message, type Name, OPTION, parseRecord, RCODE, type RR, TYPE, typeName } from '../../dns/index.js'
import {
  type ExprEnv,
  type Expression,
  type ExprValue,
  type Handler,
  isMessage,
  isPromise,
  type MetricsScope,
  type Pattern,
  type Plugin,
  type Query,
  type Reply,
  ServeError,
  type SetupContext,
} from '../contract.js'
import { format, type Value } from './functions.js'
import type { Data, Template } from './template.js'

interface Line {
  readonly text: string
  readonly print: Template
}

export interface Rule {
  readonly class: number
  readonly type: number
  /** The longest first. */
  readonly zones: readonly { readonly zone: string; readonly name: Name }[]
  /** One of them must match the name; none: any name. */
  readonly patterns: readonly { readonly text: string; readonly pattern: Pattern }[]
  readonly answers: readonly Line[]
  readonly authorities: readonly Line[]
  readonly additionals: readonly Line[]
  readonly rcode: number
  /** Data of an extended error (RFC 8914). */
  readonly ede: Buffer | undefined
  /** Worked out for each match, in order; later ones and the templates can use them. */
  readonly vars: readonly { readonly name: string; readonly value: Expression }[]
  /** All of them must be true. */
  readonly tests: readonly Expression[]
  /** Names that go on to the next rule where no pattern matches. */
  readonly fall: readonly Name[]
}

type Sections = Readonly<Record<'answers' | 'authorities' | 'additionals', RR[]>>

export class TemplatePlugin implements Plugin {
  readonly name = 'template'
  readonly #rules: readonly Rule[]
  readonly #resolve: SetupContext['resolve']
  readonly #metrics: ReturnType<typeof families>

  constructor(rules: readonly Rule[], ctx: SetupContext) {
    this.#rules = rules
    this.#resolve = ctx.resolve
    this.#metrics = families(ctx.metrics)
  }

  serveDNS(query: Query, next: Handler): Reply | Promise<Reply> {
    for (const rule of this.#rules) {
      const zone = covers(rule, query)
      if (zone === undefined) continue
      const data = match(rule, zone, query)
      if (data === FAILED) return failed(query)
      if (data !== undefined) return this.#answer(rule, data, query)
      if (!rule.fall.some((name) => query.name.isUnder(name))) return failed(query)
    }
    return next(query)
  }

  #answer(rule: Rule, data: Data, query: Query): Reply | Promise<Reply> {
    const labels = [query.server, String(data.get('Zone')), query.view, String(data.get('Class')), String(data.get('Type'))]
    this.#metrics.matches.with(...labels).inc()
    if (rule.rcode === RCODE.SERVFAIL) return failed(query)
    const sections = {
      answers: this.#records('answer', rule.answers, data, labels),
      authorities: this.#records('authority', rule.authorities, data, labels),
      additionals: this.#records('additional', rule.additionals, data, labels),
    }
    const aliases = query.type === TYPE.A || query.type === TYPE.AAAA ? sections.answers.filter(({ type }) => type === TYPE.CNAME) : []
    return aliases.length === 0 ? reply(query, rule, sections, false) : this.#followed(query, rule, sections)
  }

  #records(section: string, lines: readonly Line[], data: Data, labels: readonly string[]): RR[] {
    return lines.map(({ text, print }) => {
      let line: string
      try {
        line = print(data)
      } catch (error) {
        this.#metrics.templateFailures.with(...labels, section, text).inc()
        throw new ServeError((error as Error).message, RCODE.SERVFAIL, { cause: error })
      }
      try {
        return parseRecord(line)
      } catch (error) {
        this.#metrics.recordFailures.with(...labels, section, text).inc()
        throw new ServeError(`plugin/template: no record: ${(error as Error).message}`, RCODE.SERVFAIL, { cause: error })
      }
    })
  }

  /** The addresses of aliases behind them. What cannot be had is left out; `errors` has said why. */
  async #followed(query: Query, rule: Rule, sections: Sections): Promise<Reply> {
    const answers: RR[] = []
    let tc = false
    for (const rr of sections.answers) {
      answers.push(rr)
      if (rr.data.kind !== 'NAME' || rr.type !== TYPE.CNAME) continue
      const found = await this.#lookUp(query, rr.data.target)
      if (found === undefined) continue
      tc = found.tc
      answers.push(...found.answers)
    }
    return reply(query, rule, { ...sections, answers }, tc)
  }

  async #lookUp(query: Query, target: Name): Promise<Message | undefined> {
    try {
      const result = this.#resolve(query.derive(target))
      const found = result !== undefined && isPromise(result) ? await result : result
      return found !== undefined && isMessage(found) ? found : undefined
    } catch (error) {
      if (error instanceof ServeError) return undefined
      throw error
    }
  }
}

/** Left to the server: no error, no plugin label. */
const failed = (query: Query): Reply => query.reply('', RCODE.SERVFAIL, { aa: false })

function reply(query: Query, { rcode, ede }: Rule, sections: Sections, tc: boolean): Reply {
  const message = query.reply('template', rcode, sections).with({ tc })
  if (ede === undefined) return message
  const edns = { size: 4096, extendedRcode: 0, version: 0, dnssecOk: true, z: 0, options: [{ code: OPTION.EDE, data: ede }] }
  return message.with({ edns })
}

/** The zone that makes the rule responsible, or undefined. */
function covers(rule: Rule, query: Query): string | undefined {
  if (rule.class !== CLASS.ANY && query.class !== CLASS.ANY && query.class !== rule.class) return undefined
  if (rule.type !== TYPE.ANY && query.type !== TYPE.ANY && query.type !== rule.type) return undefined
  return rule.zones.find(({ name }) => query.name.isUnder(name))?.zone
}

/** An expression could not be worked out. */
const FAILED = Symbol('failed')

function match(rule: Rule, zone: string, query: Query): Data | typeof FAILED | undefined {
  const name = query.name.toLowerCase()
  if (rule.patterns.length === 0) return dataOf(rule, zone, query, name, '.*', [name], new Map([['0', name]]))
  for (const { text, pattern } of rule.patterns) {
    const matcher = pattern.matcher(name)
    if (!matcher.find()) continue
    const groups = Array.from({ length: matcher.groupCount() + 1 }, (_, i) => matcher.group(i) ?? '')
    const byName = new Map<string, Value>(groups.map((group, i) => [String(i), group]))
    for (const [label, index] of Object.entries(pattern.namedGroups() as Record<string, number>)) byName.set(label, groups[index] ?? '')
    return dataOf(rule, zone, query, name, text, groups, byName)
  }
  return undefined
}

function dataOf(
  rule: Rule,
  zone: string,
  query: Query,
  name: string,
  regex: string,
  groups: readonly string[],
  byName: ReadonlyMap<string, Value>,
): Data | typeof FAILED | undefined {
  const vars = new Map<string, ExprValue>()
  const passed = passes(rule, { query, vars, group: (label) => format(byName.get(label) ?? '') }, vars)
  if (passed === FAILED) return FAILED
  if (!passed) return undefined
  const meta = new Map([...(query.metadata ?? [])].map(([label, value]) => [label, value()]))
  return new Map<string, Value>([
    ['Zone', zone],
    ['Name', name],
    ['Regex', regex],
    ['Match', groups],
    ['Group', byName],
    ['Class', className(query.class === CLASS.ANY ? rule.class : query.class)],
    ['Type', typeName(query.type === TYPE.ANY ? rule.type : query.type)],
    ['Remote', query.peer.address],
    [
      'Question',
      new Map<string, Value>([
        ['Name', query.name.toString()],
        ['Qtype', query.type],
        ['Qclass', query.class],
      ]),
    ],
    ['Message', new Map<string, Value>([['Id', query.message.id]])],
    ['Var', new Map([...vars].map(([label, value]): [string, Value] => [label, typeof value === 'object' ? value.map(String) : value]))],
    ['Meta', meta],
  ])
}

/** Works out the variables, into `vars`, and the tests. */
function passes(rule: Rule, env: ExprEnv, vars: Map<string, ExprValue>): boolean | typeof FAILED {
  try {
    for (const { name, value } of rule.vars) vars.set(name, value.run(env))
    return rule.tests.every((test) => test.run(env) === true)
  } catch {
    // What CoreDNS does as well: SERVFAIL without a word. The fault lies in what the client sent.
    return FAILED
  }
}

function families(metrics: MetricsScope) {
  const labels = ['server', 'zone', 'view', 'class', 'type']
  const detailed = [...labels, 'section', 'template']
  return {
    matches: metrics.counter('coredns_template_matches_total', 'Queries that a rule answered.', labels),
    templateFailures: metrics.counter('coredns_template_template_failures_total', 'Templates that could not be filled in.', detailed),
    recordFailures: metrics.counter('coredns_template_rr_failures_total', 'Templates that gave no record.', detailed),
  }
}
