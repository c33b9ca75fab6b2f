/** Results as people read them: a table for each workload and pace, then the bounds. */
import { median, shown, spread } from '../report.js'
import type { Outcome } from './generator.js'
import type { Idle } from './idle.js'
import type { Measured } from './measure.js'
import type { Verdict } from './verdicts.js'

/** Columns as wide as their longest cell; the first to the left, the others to the right. */
export function aligned(rows: readonly (readonly string[])[]): string[] {
  const columns = Math.max(0, ...rows.map((row) => row.length))
  const widths = Array.from({ length: columns }, (_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)))
  return rows.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)))
      .join('  ')
      .trimEnd(),
  )
}

const HEAD = ['CPU µs/q', '(spread)', 'user', 'q/s', 'p50 ms', 'p90', 'p99', 'p99.9', 'RSS MiB', 'lost', 'wrong']

export function resultLines(results: readonly Measured[]): string[] {
  const lines: string[] = []
  for (const { workload, pace } of results.filter(
    (r, i) => i === results.findIndex((o) => o.workload === r.workload && o.pace === r.pace),
  )) {
    const rows = results
      .filter((r) => r.workload === workload && r.pace === pace)
      .map(({ contestant, outcomes }) => row(contestant, outcomes))
    const title = pace === 'saturated' ? `${workload}, saturated` : `${workload}, ${pace} q/s`
    lines.push('', ...aligned([[title, ...HEAD], ...rows]))
  }
  return lines
}

function row(label: string, outcomes: readonly Outcome[]): string[] {
  const of = (pick: (outcome: Outcome) => number): string => shown(median(outcomes.map(pick)))
  const sum = (pick: (outcome: Outcome) => number): string => String(outcomes.reduce((total, outcome) => total + pick(outcome), 0))
  return [
    label,
    of(({ cpu }) => cpu),
    spread(outcomes.map(({ cpu }) => cpu)),
    of(({ user }) => user),
    of(({ qps }) => qps),
    of(({ p50 }) => p50),
    of(({ p90 }) => p90),
    of(({ p99 }) => p99),
    of(({ p999 }) => p999),
    of(({ rss }) => rss),
    sum(({ lost }) => lost),
    sum(({ wrong }) => wrong),
  ]
}

export const idleLines = (idle: readonly Idle[]): string[] =>
  idle.length === 0
    ? []
    : [
        '',
        ...aligned([
          ['idle', 'first answer ms', '(spread)', 'RSS MB', '(spread)'],
          ...idle.map(({ what, contestant, firstAnswer, rss }) => [
            `${what}, ${contestant}`,
            shown(median(firstAnswer)),
            spread(firstAnswer),
            shown(median(rss)),
            spread(rss),
          ]),
        ]),
      ]

export const verdictLines = (verdicts: readonly Verdict[]): string[] =>
  verdicts.length === 0
    ? []
    : [
        '',
        ...aligned([
          ['bounds', 'is', '(spread)', 'at most', ''],
          ...verdicts.map(({ what, value, spread: [low, high], most, reached }) => [
            what,
            shown(value),
            `${shown(low)}–${shown(high)}`,
            String(most),
            reached ? 'reached' : 'NOT REACHED',
          ]),
        ]),
      ]
