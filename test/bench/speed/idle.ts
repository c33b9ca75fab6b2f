/** What a server takes before anyone asks: time from its start to its first answer, and resident memory when nothing happens. */
import { median } from '../report.js'
import { Api } from '../subject.js'
import { type Contestant, Generator, Server, type Surroundings } from './contestants.js'
import { coresFor } from './machine.js'
import type { Options } from './options.js'
import type { Role } from './peers.js'
import { usageOf } from './process-cpu.js'
import { type Question, questionsOf, wire } from './questions.js'
import type { Verdict } from './verdicts.js'

export interface Idle {
  readonly what: 'forwarder' | 'kubernetes, in-cluster, small'
  readonly contestant: string
  /** Milliseconds, one a round. */
  readonly firstAnswer: readonly number[]
  /** MB: 10⁶ octets. */
  readonly rss: readonly number[]
}

/** Who is compared: the others are no cluster DNS. */
const COMPARED: ReadonlySet<string> = new Set(['CairnDNS', 'CoreDNS'])
const ROUNDS = 3
const MB_PER_MIB = 2 ** 20 / 1e6
/** Until memory is read. */
const SETTLE_MS = 4000
const ASK_MS = 5

export async function idle(options: Options, field: readonly Contestant[]): Promise<Idle[]> {
  const generator = await Generator.start(coresFor(1).generator)
  const inCluster = await Api.start('small', 'https')
  // Where a pod's service account lies cannot be said to the others.
  const endpoint = await Api.start('small')
  const { upstream } = generator
  const name = 'service-3.namespace-3.svc.cluster.local.'
  const kinds = [
    { what: 'forwarder', role: 'forwarder-cached', question: questionsOf('hit').questions[0]! },
    { what: 'kubernetes, in-cluster, small', role: 'cluster', question: { wire: wire(name, 1), rcode: 0, answers: 1 } },
  ] as const
  const results: Idle[] = []
  try {
    for (const { what, role, question } of kinds)
      for (const contestant of field.filter(({ label, kind }) => COMPARED.has(label) || (COMPARED.has(kind.name) && label.includes('@')))) {
        const runs: { firstAnswer: number; rss: number }[] = []
        for (let round = 0; round < Math.min(ROUNDS, options.rounds); round++)
          runs.push(await startOnce(contestant, role, question, { upstream, api: (ours(contestant) ? inCluster : endpoint).url }))
        results.push({ what, contestant: contestant.label, firstAnswer: runs.map((r) => r.firstAnswer), rss: runs.map((r) => r.rss) })
      }
    return results
  } finally {
    inCluster.stop()
    endpoint.stop()
    generator.stop()
  }
}

const ours = ({ kind }: Contestant): boolean => kind.name === 'CairnDNS'

async function startOnce(
  contestant: Contestant,
  role: Role,
  question: Question,
  surroundings: Surroundings,
): Promise<{ firstAnswer: number; rss: number }> {
  const server = await Server.start(contestant, role, surroundings)
  try {
    const firstAnswer = await server.answers(question, ASK_MS)
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
    return { firstAnswer, rss: usageOf(server.pid).rss * MB_PER_MIB }
  } finally {
    await server.stop()
  }
}

const BOUNDS = [
  { what: 'forwarder', pick: 'firstAnswer', unit: 'first answer, ms', most: 500 },
  { what: 'forwarder', pick: 'rss', unit: 'idle RSS, MB', most: 80 },
  { what: 'kubernetes, in-cluster, small', pick: 'rss', unit: 'idle RSS, MB', most: 95 },
] as const

export function idleVerdicts(results: readonly Idle[]): Verdict[] {
  return BOUNDS.flatMap(({ what, pick, unit, most }) => {
    const found = results.find((result) => result.what === what && result.contestant === 'CairnDNS')
    if (found === undefined) return []
    const values = found[pick]
    const value = median(values)!
    return [{ what: `${what}: ${unit}`, value, spread: [Math.min(...values), Math.max(...values)], most, reached: value <= most }]
  })
}
