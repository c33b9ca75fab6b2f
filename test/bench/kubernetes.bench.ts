/**
 * A large cluster against the server: time until synced, memory, how long the serving thread is held up, queries under changes; very wide
 * headless services; the first answer of a small cluster. Options: `--runs N` (3), `--seconds N` of changes (60), `--json FILE`.
 * COREDNS: the path of a CoreDNS to measure beside.
 */
import { execFileSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { root } from '../support/process.js'
import { changesRun } from './kubernetes-changes.js'
import { type LargeRun, largeRun, smallRun, wideRun } from './kubernetes-runs.js'
import { type Figure, ownVersions, print } from './report.js'

export default async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: { runs: { type: 'string', default: '3' }, seconds: { type: 'string', default: '60' }, json: { type: 'string' } },
  })
  execFileSync('npx', ['tsc', '-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' })
  const runs = Number(values.runs)
  const coredns = process.env.COREDNS
  if (coredns === undefined)
    console.log(`${'*'.repeat(60)}\nSKIPPED: the comparison with CoreDNS (COREDNS=path of its binary)\n${'*'.repeat(60)}`)
  const large: LargeRun[] = []
  const peer: LargeRun[] = []
  const first: number[] = []
  // In turn, so that what else the machine does meets both.
  for (let i = 0; i < runs; i++) {
    large.push(await said('large cluster', largeRun(undefined)))
    if (coredns !== undefined) peer.push(await said('large cluster, CoreDNS', largeRun(coredns)))
    first.push(await said('small cluster', smallRun()))
  }
  const wide = await said('wide services', wideRun())
  const changes = await said('changes', changesRun(Number(values.seconds)))
  const both = (what: string, unit: string, pick: (run: LargeRun) => number, target?: number): Figure => ({
    what,
    unit,
    values: large.map(pick),
    peer: peer.map(pick),
    ...(target !== undefined && { target }),
  })
  const own = (what: string, unit: string, values: readonly number[], target?: number): Figure => ({
    what,
    unit,
    values,
    ...(target !== undefined && { target }),
  })
  const figures: Figure[] = [
    both('resident after the list', 'MiB', (r) => r.resident, 150),
    both('peak of the first list', 'MiB', (r) => r.listPeak),
    both('peak of a relist', 'MiB', (r) => r.relistPeak, 180),
    both('resident after the relist', 'MiB', (r) => r.afterRelist),
    both('synced after', 'ms', (r) => r.synced),
    both('CPU until synced', 's', (r) => r.cpu),
    own(
      'synced, times CoreDNS',
      '',
      large.flatMap((r, i) => (peer[i] === undefined ? [] : [r.synced / peer[i]!.synced])),
      2,
    ),
    own(
      'held up in the first list, p99.9',
      'ms',
      large.map((r) => r.heldUp),
      20,
    ),
    own(
      'held up in the first list, longest',
      'ms',
      large.map((r) => r.heldUpLongest),
    ),
    own(
      'held up in the relist, p99.9',
      'ms',
      large.map((r) => r.heldUpRelist),
      20,
    ),
    own('first answer, small cluster', 'ms', first, 1500),
    ...changes,
    ...wide,
  ]
  const versions = { ...ownVersions(root), ...(coredns !== undefined && { CoreDNS: versionOf(coredns) }) }
  if (!print('kubernetes', figures, versions, values.json)) process.exitCode = 1
}

const versionOf = (command: string): string => /-(\S+)/.exec(execFileSync(command, ['-version'], { encoding: 'utf8' }))?.[1] ?? 'unknown'

async function said<T>(what: string, run: Promise<T>): Promise<T> {
  const result = await run
  console.log(`${what}: ${JSON.stringify(result)}`)
  return result
}
