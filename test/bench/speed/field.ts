/** Who takes part: this tree in the wanted variants, other commits of it, and the peers that are found. */
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { root } from '../../support/process.js'
import { ownVersions } from '../report.js'
import type { Contestant } from './contestants.js'
import { coresFor, must } from './machine.js'
import type { Options } from './options.js'
import { locate, OURS, PEERS, version } from './peers.js'
import type { Workload } from './questions.js'

export interface Field {
  /** Ours first. */
  readonly contestants: readonly Contestant[]
  /** What is not found. */
  readonly skipped: readonly string[]
  /** Removes what was made for it. */
  clear(): void
}

export function fieldOf(options: Options): Field {
  const wanted = (label: string): boolean => options.subjects === undefined || options.subjects.has(label.toLowerCase().split(' ')[0]!)
  const ours = wanted('CairnDNS') ? variants(options) : []
  const { contestants: refs, clear } = refsOf(options)
  const peers = PEERS.filter(({ name }) => wanted(name))
  const found = peers.flatMap((kind): Contestant[] => {
    const command = options.peers.get(kind.name.toLowerCase()) ?? locate(kind)
    if (command === undefined) return []
    const words = command.split(' ')
    return [
      {
        label: kind.name,
        kind,
        command: words,
        options: [],
        version: version(kind, words[0]!),
        cores: coresFor(1).server,
        workloads: kind.workloads,
      },
    ]
  })
  const skipped = peers.filter((kind) => !found.some((contestant) => contestant.kind === kind)).map(({ name }) => name)
  for (const name of options.peers.keys())
    if (!PEERS.some((kind) => kind.name.toLowerCase() === name)) throw new Error(`--peer: no configuration is known for "${name}"`)
  return { contestants: [...ours, ...refs, ...found], skipped, clear }
}

function variants({ transports, threads, build, quick }: Options): Contestant[] {
  if (build) must('npx', ['tsc', '-p', 'tsconfig.build.json'], root)
  const asked = (threads ?? [1]).flatMap((count) => (transports ?? ['']).map((transport) => variant(transport, count)))
  if (transports !== undefined || threads !== undefined || quick) return asked
  return [...asked, { ...variant('dgram', 1), workloads: BESIDE }, { ...variant('', 2), workloads: BESIDE }]
}

/** What variants are measured with that only a bound asks for. */
const BESIDE: readonly Workload[] = ['cluster', 'hit']

function variant(transport: string, threads: number): Contestant {
  return {
    label: ['CairnDNS', transport, threads === 1 ? '' : `×${threads}`].filter((word) => word !== '').join(' '),
    kind: OURS,
    command: [process.execPath, path.join(root, 'dist', 'cli.js')],
    options: [...(transport === '' ? [] : ['--transport', transport]), ...(threads === 1 ? [] : ['--threads', String(threads)])],
    version: ownVersions(root).CairnDNS!,
    cores: coresFor(threads).server,
    workloads: OURS.workloads,
  }
}

/** Each in a work tree of its own in a temporary folder, built with the packages of this tree. */
function refsOf({ refs }: Options): { contestants: Contestant[]; clear: () => void } {
  const folders: string[] = []
  const clear = (): void => {
    for (const folder of folders.splice(0)) {
      must('git', ['worktree', 'remove', '--force', folder], root)
      fs.rmdirSync(path.dirname(folder))
    }
  }
  process.on('exit', clear)
  const contestants = refs.map((ref): Contestant => {
    const folder = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'cairndns-ref-')), 'tree')
    must('git', ['worktree', 'add', '--detach', folder, ref], root)
    folders.push(folder)
    fs.symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
    must('npx', ['tsc', '-p', 'tsconfig.build.json'], folder)
    const command = [process.execPath, path.join(folder, 'dist', 'cli.js')]
    return {
      label: `CairnDNS@${ref}`,
      kind: OURS,
      command,
      options: [],
      version: ref,
      cores: coresFor(1).server,
      workloads: OURS.workloads,
    }
  })
  return { contestants, clear }
}
