/** Runs the workloads against the field: all servers of a group stand, and are asked in turn, in another order each round. */
import { Api } from '../subject.js'
import { type Contestant, Generator, Server, Streams } from './contestants.js'
import type { Outcome } from './generator.js'
import { coresFor } from './machine.js'
import type { Options } from './options.js'
import { isForwarder, type Role, roleOf } from './peers.js'
import { questionsOf, STREAM_WORKLOADS, type Workload } from './questions.js'

/** What a workload is asked at: 'saturated', or questions a second. */
export type Pace = 'saturated' | number

export interface Measured {
  readonly workload: Workload
  readonly pace: Pace
  readonly contestant: string
  /** One a round. */
  readonly outcomes: readonly Outcome[]
}

const isStream = (workload: Workload): boolean => (STREAM_WORKLOADS as readonly Workload[]).includes(workload)
/** The upstream of streams shares the generator's core, and so does not saturate a server. */
const STREAM_RATE = 2000
const pacesOf = (workload: Workload, { rates }: Options): readonly Pace[] => (isStream(workload) ? [STREAM_RATE] : ['saturated', ...rates])

/** A rate is asked only of those that answered this much more when saturated. */
const ROOM = 1.15
/** Answers before anything is measured: every name is in every cache then, and what a compiler does while running is done. */
const WARM_ANSWERS = 50_000
const WARM_SECONDS = 0.5
const WARM_TIMES = 10

export async function measure(options: Options, field: readonly Contestant[], say: (text: string) => void): Promise<Measured[]> {
  const cores = coresFor(1)
  const generator = await Generator.start(cores.generator)
  const results: Measured[] = []
  try {
    for (const role of new Set(options.workloads.map(roleOf))) {
      const workloads = options.workloads.filter((workload) => roleOf(workload) === role)
      results.push(...(await group(role, workloads, { options, field, generator, say })))
    }
  } finally {
    generator.stop()
  }
  return results
}

interface Context {
  readonly options: Options
  readonly field: readonly Contestant[]
  readonly generator: Generator
  readonly say: (text: string) => void
}

async function group(role: Role, workloads: readonly Workload[], context: Context): Promise<Measured[]> {
  const { field, generator, say } = context
  const taking = field.filter((contestant) => workloads.some((workload) => contestant.workloads.includes(workload)))
  const api = isForwarder(role) ? undefined : await Api.start('speed')
  const streams = role === 'forwarder-tcp' || role === 'forwarder-tls' ? await Streams.start(coresFor(1).generator) : undefined
  const upstream = streams === undefined ? generator.upstream : streams.ports[role === 'forwarder-tcp' ? 'tcp' : 'tls']
  const servers: Server[] = []
  try {
    for (const contestant of taking) servers.push(await Server.start(contestant, role, { upstream, api: api?.url }))
    const results: Measured[] = []
    const failed = new Set<Server>()
    for (const workload of workloads) {
      const standing = servers.filter((server) => server.contestant.workloads.includes(workload) && !failed.has(server))
      const probe = questionsOf(workload).questions.find(({ answers }) => answers > 0) ?? questionsOf(workload).questions[0]!
      for (const server of standing)
        await server.answers(probe).catch((error: Error) => {
          failed.add(server)
          say(`SKIPPED: ${error.message}`)
        })
      const answering = standing.filter((server) => !failed.has(server))
      results.push(...(await workloadRuns(workload, answering, context)))
    }
    return results
  } finally {
    await Promise.all(servers.map((server) => server.stop()))
    api?.stop()
    streams?.stop()
  }
}

async function workloadRuns(workload: Workload, servers: readonly Server[], context: Context): Promise<Measured[]> {
  const { options } = context
  for (const server of servers) await warm(workload, server, context)
  const results: Measured[] = []
  for (const pace of pacesOf(workload, options)) {
    const able = servers.filter(({ contestant: { label } }) => {
      if (isStream(workload)) return true
      const saturated = results.find((result) => result.contestant === label && result.pace === 'saturated')
      return pace === 'saturated' || Math.max(...saturated!.outcomes.map(({ qps }) => qps)) > pace * ROOM
    })
    results.push(...(await rounds(workload, pace, able, context)))
  }
  return results
}

async function warm(workload: Workload, server: Server, context: Context): Promise<void> {
  // Shorter ones only show that the bench works.
  const enough = context.options.seconds < 1 ? 0 : WARM_ANSWERS
  let answered = 0
  for (let i = 0; i < WARM_TIMES && answered <= enough; i++) {
    const pace = isStream(workload) ? STREAM_RATE : 'saturated'
    const outcome = await run(workload, pace, server, context, { warmUp: 0, seconds: WARM_SECONDS })
    answered += outcome.answered
  }
}

async function rounds(workload: Workload, pace: Pace, servers: readonly Server[], context: Context): Promise<Measured[]> {
  const outcomes = new Map(servers.map((server) => [server, [] as Outcome[]]))
  for (let round = 0; round < context.options.rounds; round++)
    for (const server of turned(servers, round)) {
      const outcome = await run(workload, pace, server, context, context.options)
      outcomes.get(server)!.push(outcome)
      context.say(`${workload} ${pace} round ${round + 1} ${server.contestant.label}: ${brief(outcome)}`)
    }
  return servers.map((server) => ({ workload, pace, contestant: server.contestant.label, outcomes: outcomes.get(server)! }))
}

const run = (
  workload: Workload,
  pace: Pace,
  server: Server,
  context: Context,
  span: { warmUp: number; seconds: number },
): Promise<Outcome> =>
  context.generator.run({
    workload,
    port: server.port,
    pid: server.pid,
    ...(pace !== 'saturated' && { rate: pace }),
    outstanding: context.options.outstanding,
    sockets: context.options.sockets,
    seconds: span.seconds,
    warmUp: span.warmUp,
    yields: isStream(workload),
  })

/** Whoever was first is last in the next round. */
function turned<T>(items: readonly T[], round: number): T[] {
  const from = items.length === 0 ? 0 : round % items.length
  return [...items.slice(from), ...items.slice(0, from)]
}

const brief = (o: Outcome): string =>
  `${o.cpu.toFixed(2)} µs, ${Math.round(o.qps)} q/s, p50 ${o.p50.toFixed(3)} p99 ${o.p99.toFixed(3)} ms, ` +
  `lost ${o.lost}, wrong ${o.wrong}, generator idle ${(o.idle * 100).toFixed(0)} %`
