/** A bench of this kind from its options to its table and JSON; `speed`, `cache` and `forward` differ in their workloads only. */
import fs from 'node:fs'
import { machineOf } from '../report.js'
import type { Contestant } from './contestants.js'
import { fieldOf } from './field.js'
import { type Idle, idle, idleVerdicts } from './idle.js'
import { type Measured, measure } from './measure.js'
import { type Options, optionsOf } from './options.js'
import type { Workload } from './questions.js'
import { idleLines, resultLines, verdictLines } from './table.js'
import { type Verdict, verdictsOf } from './verdicts.js'

export interface Report {
  readonly results: readonly Measured[]
  readonly idle: readonly Idle[]
  readonly verdicts: readonly Verdict[]
}

/** Sets the exit code to 1 when a bound is not reached or an answer was wrong. */
export async function runBench(title: string, args: readonly string[], workloads?: readonly Workload[]): Promise<Report> {
  const options = optionsOf(args, workloads)
  const field = fieldOf(options)
  try {
    for (const name of field.skipped) console.log(`SKIPPED: ${name} is not found`)
    // Progress, so that a run of many minutes does not look dead; the table alone goes to standard output.
    const results = await measure(options, field.contestants, (text) => console.error(text))
    const idles = options.idle && workloads === undefined ? await idle(options, field.contestants) : []
    const report = { results, idle: idles, verdicts: [...verdictsOf(results), ...idleVerdicts(idles)] }
    print(title, options, field.contestants, report)
    const wrong = results.some(({ outcomes }) => outcomes.some((outcome) => outcome.wrong > 0))
    if (wrong || report.verdicts.some(({ reached }) => !reached)) process.exitCode = 1
    return report
  } finally {
    field.clear()
  }
}

function print(title: string, options: Options, field: readonly Contestant[], { results, idle: idles, verdicts }: Report): void {
  const machine = machineOf()
  const versions = Object.fromEntries([...field.map(({ label, version }) => [label, version]), ['Node', process.versions.node]])
  const { rounds, seconds, outstanding, sockets } = options
  console.log(`\n${title}: medians of ${rounds} × ${seconds} s, saturated with ${outstanding} questions under way on ${sockets} sockets`)
  console.log(`${machine.cpu}, ${machine.cores} cores, Linux ${machine.kernel}, load ${machine.load.map((l) => l.toFixed(1)).join(' ')}`)
  console.log(
    Object.entries(versions)
      .map((pair) => pair.join(' '))
      .join(', '),
  )
  for (const line of [...resultLines(results), ...idleLines(idles), ...verdictLines(verdicts)]) console.log(line)
  const busy = results.filter(({ pace, outcomes }) => pace === 'saturated' && outcomes.some(({ idle: share }) => share < GENERATOR_IDLE))
  for (const { workload, contestant } of busy)
    console.log(`CAUTION: ${workload}, ${contestant}: the generator was nearly as busy as the server`)
  if (options.json === undefined) return
  const json = {
    title,
    at: new Date().toISOString(),
    machine,
    versions,
    rounds,
    seconds,
    outstanding,
    sockets,
    results,
    idle: idles,
    verdicts,
  }
  fs.writeFileSync(options.json, `${JSON.stringify(json, null, 2)}\n`)
}

/** Below this share of empty turns throughput may be the generator's. */
const GENERATOR_IDLE = 0.05
