/** What a bench prints: a table for people, JSON for machines, both with what they were measured on. */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'

export interface Figure {
  readonly what: string
  readonly unit: string
  /** One value a run, in order; empty: not measured. */
  readonly values: readonly number[]
  /** The same of CoreDNS. */
  readonly peer: readonly number[]
  /** The most that it may be, and in which issue or document that is said. */
  readonly target?: number
}

/** `values` and `peer`: one value, or one a run. */
export function figure(
  what: string,
  unit: string,
  values: number | readonly number[],
  target?: number,
  peer: readonly number[] = [],
): Figure {
  return { what, unit, values: typeof values === 'number' ? [values] : values, peer, ...(target !== undefined && { target }) }
}

export const median = (values: readonly number[]): number | undefined => {
  if (values.length === 0) return undefined
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** The value below which `share` of all lie; sorts in place. */
export function percentile(values: Float64Array, share: number): number {
  if (values.length === 0) return Number.NaN
  values.sort()
  return values[Math.min(values.length - 1, Math.ceil(values.length * share) - 1)]!
}

export const shown = (value: number | undefined): string =>
  value === undefined ? '-' : value >= 100 ? value.toFixed(0) : value.toPrecision(3)
export const spread = (values: readonly number[]): string =>
  values.length < 2 ? '' : `${shown(Math.min(...values))}–${shown(Math.max(...values))}`

/** Prints the figures, and writes them to `file` if there is one. True if every target was met. */
export function print(
  title: string,
  figures: readonly Figure[],
  versions: Readonly<Record<string, string>>,
  file: string | undefined,
): boolean {
  const machine = machineOf()
  const rows = figures.map(({ what, unit, values, peer, target }) => {
    const own = median(values)
    const met = target === undefined || own === undefined ? '' : own <= target ? 'yes' : 'NO'
    return [what, unit, shown(own), spread(values), target === undefined ? '' : `≤ ${target}`, met, shown(median(peer))]
  })
  const table = [['', 'unit', 'median', 'spread', 'target', 'met', 'CoreDNS'], ...rows]
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)))
  console.log(`\n${title}\n${machine.cpu}, ${machine.cores} cores, load ${machine.load.map((l) => l.toFixed(1)).join(' ')}`)
  console.log(
    Object.entries(versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(', '),
  )
  for (const row of table)
    console.log(row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join('  '))
  const json = {
    title,
    at: new Date().toISOString(),
    machine,
    versions,
    figures: figures.map((f) => ({ ...f, median: median(f.values), peerMedian: median(f.peer) })),
  }
  if (file !== undefined) fs.writeFileSync(file, `${JSON.stringify(json, null, 2)}\n`)
  else console.log(JSON.stringify(json))
  return rows.every((row) => row[5] !== 'NO')
}

export function machineOf() {
  const { platform, arch } = process
  return {
    cpu: os.cpus()[0]?.model ?? 'unknown',
    cores: os.cpus().length,
    memoryGiB: os.totalmem() / 2 ** 30,
    platform,
    arch,
    kernel: os.release(),
    load: os.loadavg(),
  }
}

/** Of this tree and its Node. */
export function ownVersions(root: string): Record<string, string> {
  const { version } = JSON.parse(fs.readFileSync(`${root}/package.json`, 'utf8')) as { version: string }
  let commit = 'no git'
  try {
    commit = execFileSync('git', ['describe', '--always', '--dirty'], { cwd: root, encoding: 'utf8' }).trim()
  } catch {
    // Measured out of an archive.
  }
  return { CairnDNS: `${version} (${commit})`, Node: process.versions.node }
}
