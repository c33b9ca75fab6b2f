/** The options of the speed benches. */
import { parseArgs } from 'node:util'
import { STREAM_WORKLOADS, WORKLOADS, type Workload } from './questions.js'

export interface Options {
  readonly rounds: number
  readonly seconds: number
  readonly warmUp: number
  readonly workloads: readonly Workload[]
  /** Questions a second of the open loops. */
  readonly rates: readonly number[]
  readonly outstanding: number
  readonly sockets: number
  /** Of ours: "" is the server's own choice. More than one: a column each. undefined: its own, and dgram beside where a bound asks for it. */
  readonly transports: readonly string[] | undefined
  /** Likewise; undefined: one, and two beside where a bound asks for it. */
  readonly threads: readonly number[] | undefined
  /** Given by name and program. */
  readonly peers: ReadonlyMap<string, string>
  /** Only these columns; undefined: all that are found. */
  readonly subjects: ReadonlySet<string> | undefined
  /** Commits of ours to be measured beside. */
  readonly refs: readonly string[]
  readonly quick: boolean
  /** Start-up and memory. */
  readonly idle: boolean
  readonly build: boolean
  readonly json: string | undefined
}

const SPEC = {
  rounds: { type: 'string' },
  seconds: { type: 'string' },
  only: { type: 'string' },
  rates: { type: 'string' },
  outstanding: { type: 'string', default: '200' },
  sockets: { type: 'string', default: '8' },
  transport: { type: 'string' },
  threads: { type: 'string' },
  peer: { type: 'string', multiple: true, default: [] as string[] },
  subjects: { type: 'string' },
  ref: { type: 'string', multiple: true, default: [] as string[] },
  quick: { type: 'boolean', default: false },
  'no-idle': { type: 'boolean', default: false },
  'no-build': { type: 'boolean', default: false },
  json: { type: 'string' },
} as const

const ALL: readonly Workload[] = [...WORKLOADS, ...STREAM_WORKLOADS]

/** Throws for what no bench understands. */
export function optionsOf(args: readonly string[], workloads: readonly Workload[] = WORKLOADS): Options {
  const { values } = parseArgs({ args: [...args], options: SPEC })
  const chosen = (values.only?.split(',') ?? workloads) as Workload[]
  for (const workload of chosen) if (!ALL.includes(workload)) throw new Error(`no workload "${workload}"; there are ${ALL.join(', ')}`)
  const number = (name: string, text: string): number => {
    const value = Number(text)
    if (!(value > 0)) throw new Error(`--${name} takes a number above 0, not "${text}"`)
    return value
  }
  const seconds = number('seconds', values.seconds ?? (values.quick ? '1' : '3'))
  return {
    rounds: number('rounds', values.rounds ?? (values.quick ? '1' : '5')),
    seconds,
    warmUp: Math.min(0.5, seconds / 3),
    workloads: chosen,
    rates: (values.rates ?? (values.quick ? '20000' : '20000,60000'))
      .split(',')
      .flatMap((rate) => (rate === '' ? [] : [number('rates', rate)])),
    outstanding: number('outstanding', values.outstanding),
    sockets: number('sockets', values.sockets),
    transports: values.transport?.split(','),
    threads: values.threads?.split(',').map((text) => number('threads', text)),
    peers: new Map(values.peer.map(namedCommand)),
    subjects: values.subjects === undefined ? undefined : new Set(values.subjects.split(',').map((name) => name.toLowerCase())),
    refs: values.ref,
    quick: values.quick,
    idle: !values['no-idle'] && !values.quick && values.only === undefined,
    build: !values['no-build'],
    json: values.json,
  }
}

function namedCommand(text: string): [string, string] {
  const [name = '', ...command] = text.split('=')
  if (name === '' || command.length === 0) throw new Error(`--peer takes NAME=COMMAND, not "${text}"`)
  return [name.toLowerCase(), command.join('=')]
}
