/** What the figures have to reach (issue "Speed"), and whether they do: ratios of medians, both sides from the same run. */
import { median } from '../report.js'
import type { Outcome } from './generator.js'
import type { Measured, Pace } from './measure.js'
import type { Workload } from './questions.js'

type Metric = 'cpu' | 'p99'

interface Bound {
  readonly workload: Workload
  readonly pace: Pace
  readonly metric: Metric
  /** Labels of columns: the first over the second. */
  readonly own: string
  readonly peer: string
  readonly most: number
}

const OURS = 'CairnDNS'
const bound = (workload: Workload, pace: Pace, metric: Metric, peer: string, most: number, own = OURS): Bound => ({
  ...{ workload, pace, metric, own, peer, most },
})

/** At its rates a generator's questions are 50 and 17 µs apart: waking up is what costs there. */
export const BOUNDS: readonly Bound[] = [
  ...(['cluster', 'hit'] as const).flatMap((workload) => [
    bound(workload, 'saturated', 'cpu', 'CoreDNS', 0.22),
    bound(workload, 20_000, 'cpu', 'CoreDNS', 0.6),
    bound(workload, 'saturated', 'cpu', 'CoreDNS', 0.55, `${OURS} dgram`),
    bound(workload, 20_000, 'p99', 'CoreDNS', 0.25),
    bound(workload, 60_000, 'p99', 'CoreDNS', 0.333),
    bound(workload, 'saturated', 'cpu', OURS, 1.15, `${OURS} ×2`),
    bound(workload, 20_000, 'cpu', `${OURS} dgram`, 1),
  ]),
  bound('miss', 'saturated', 'cpu', 'CoreDNS', 0.3),
  bound('miss', 20_000, 'cpu', 'CoreDNS', 0.6),
  bound('hit', 'saturated', 'cpu', 'Unbound', 1.1),
  bound('miss', 'saturated', 'cpu', 'Unbound', 0.4),
  bound('cluster', 'saturated', 'cpu', 'Knot', 1.3),
]

export interface Verdict {
  readonly what: string
  readonly value: number
  /** Of the single rounds, lowest and highest. */
  readonly spread: readonly [number, number]
  readonly most: number
  readonly reached: boolean
}

const values = (outcomes: readonly Outcome[], metric: Metric): number[] => outcomes.map((outcome) => outcome[metric])
const shown = (pace: Pace): string => (pace === 'saturated' ? pace : `${pace} q/s`)
const NAMES: Readonly<Record<Metric, string>> = { cpu: 'CPU per query', p99: 'p99' }

/** Those of which both sides were measured. */
export function verdictsOf(results: readonly Measured[], bounds: readonly Bound[] = BOUNDS): Verdict[] {
  return bounds.flatMap(({ workload, pace, metric, own, peer, most }) => {
    const of = (label: string): number[] | undefined => {
      const found = results.find((r) => r.workload === workload && r.pace === pace && r.contestant === label)
      return found === undefined ? undefined : values(found.outcomes, metric)
    }
    const [a, b] = [of(own), of(peer)]
    if (a === undefined || b === undefined) return []
    const value = median(a)! / median(b)!
    const single = a.map((x, i) => x / b[i]!)
    const what = `${workload}, ${shown(pace)}: ${NAMES[metric]}, ${own} / ${peer}`
    return [{ what, value, spread: [Math.min(...single), Math.max(...single)], most, reached: value <= most }]
  })
}
