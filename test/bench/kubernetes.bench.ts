/**
 * A large cluster against the server: time until synced, memory, how long the serving thread is held up, queries under changes; very wide
 * headless services; the first answer of a small cluster. Options: `--runs N` (3), `--seconds N` of changes (60), `--only PART,…` (large, small,
 * wide, changes), `--json FILE`.
 * COREDNS: the path of a CoreDNS to measure beside.
 */
import { execFileSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { root } from '../support/process.js'
import { changesRun } from './kubernetes-changes.js'
import { type LargeRun, largeRun, smallRun, wideRun } from './kubernetes-runs.js'
import { type Figure, figure, ownVersions, print } from './report.js'

const PARTS = ['large', 'small', 'wide', 'changes']

export default async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      runs: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '60' },
      only: { type: 'string', default: PARTS.join() },
      json: { type: 'string' },
    },
  })
  execFileSync('npx', ['tsc', '-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' })
  const parts = new Set(values.only.split(','))
  const coredns = process.env.COREDNS
  if (coredns === undefined) console.log(`${STARS}\nSKIPPED: the comparison with CoreDNS (COREDNS=path of its binary)\n${STARS}`)
  const large: LargeRun[] = []
  const peer: LargeRun[] = []
  const first: number[] = []
  // In turn, so that what else the machine does meets both.
  for (let i = 0; i < Number(values.runs); i++) {
    if (parts.has('large')) large.push(await said('large cluster', largeRun(undefined)))
    if (parts.has('large') && coredns !== undefined) peer.push(await said('large cluster, CoreDNS', largeRun(coredns)))
    if (parts.has('small')) first.push(await said('small cluster', smallRun()))
  }
  const wide = parts.has('wide') ? await said('wide services', wideRun()) : []
  const changes = parts.has('changes') ? await said('changes', changesRun(Number(values.seconds))) : []
  const small = figure('first answer, small cluster', 'ms', first, 1500)
  const versions = { ...ownVersions(root), ...(coredns !== undefined && { CoreDNS: versionOf(coredns) }) }
  if (
    !print(
      'kubernetes',
      [...largeFigures(large, peer), small, ...changes, ...wide].filter((f) => f.values.length > 0),
      versions,
      values.json,
    )
  )
    process.exitCode = 1
}

const STARS = '*'.repeat(70)

/** `peer` is CoreDNS's, run by run, or empty. */
function largeFigures(runs: readonly LargeRun[], peer: readonly LargeRun[]): Figure[] {
  const both = (what: string, unit: string, pick: (run: LargeRun) => number, target?: number): Figure =>
    figure(what, unit, runs.map(pick), target, peer.map(pick))
  const own = (what: string, pick: (run: LargeRun) => number, target?: number): Figure => figure(what, 'ms', runs.map(pick), target)
  return [
    both('resident after the list', 'MiB', (r) => r.resident, 150),
    both('peak of the first list', 'MiB', (r) => r.listPeak),
    both('peak of a relist', 'MiB', (r) => r.relistPeak, 180),
    both('resident after the relist', 'MiB', (r) => r.afterRelist),
    both('synced after', 'ms', (r) => r.synced),
    both('CPU until synced', 's', (r) => r.cpu),
    figure(
      'synced, times CoreDNS',
      '',
      peer.map((r, i) => runs[i]!.synced / r.synced),
      2,
    ),
    both('peak of a reload that lists anew', 'MiB', (r) => r.reloadPeak),
    own('serving thread busy at a stretch, first list (nobody is served)', (r) => r.busyFirst),
    own('serving thread busy at a stretch, relist, longest', (r) => r.busyRelist, 20),
    own('serving thread busy at a stretch, reload, longest', (r) => r.busyReload, 20),
    own('event loop delay, relist, p99.9', (r) => r.lateRelist, 20),
    own('event loop delay, reload, p99.9', (r) => r.lateReload, 20),
  ]
}

const versionOf = (command: string): string => /-(\S+)/.exec(execFileSync(command, ['-version'], { encoding: 'utf8' }))?.[1] ?? 'unknown'

async function said<T>(what: string, run: Promise<T>): Promise<T> {
  const result = await run
  console.log(`${what}: ${JSON.stringify(result)}`)
  return result
}
