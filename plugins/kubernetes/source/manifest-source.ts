/**
 * The source behind `manifests PATH...`. After every change on disk the objects of all files are compared with what is held; only what
 * differs is handed on. A file that cannot be parsed keeps its last good state, one that is gone takes its objects along.
 */
import { sep } from 'node:path'
import type { Clock, Logger, Source } from '../../../src/plugins/contract.js'
import type { ClusterRecord, ObjectKind, ObjectPut } from '../objects.js'
import { FileWatch, type FileWatchTimes, type FoundFile, findFiles } from './manifest-files.js'
import { ManifestError, type ManifestOptions, type ManifestParser, manifestParser } from './manifest-parse.js'
import { ClusterStore } from './store.js'

export interface ManifestSourceOptions {
  readonly key: string
  readonly paths: readonly string[]
  readonly options: ManifestOptions
  readonly log: Logger
  readonly clock: Clock
  /** For tests. */
  readonly times?: FileWatchTimes
}

const KINDS: readonly ObjectKind[] = ['service', 'namespace', 'slice', 'mcslice', 'endpoints', 'pod', 'serviceimport']
const TIMES: FileWatchTimes = { poll: 2000, settle: 50 }

/** What is known of a file. */
interface KnownFile {
  /** As it was last read; undefined: it could not be. */
  text: string | undefined
  problem: string | undefined
  records: readonly ObjectPut[]
}

export function manifestSource(o: ManifestSourceOptions): Source<ClusterRecord> {
  let store: ClusterStore | undefined
  let parser: ManifestParser | undefined
  const known = new Map<string, KnownFile>()

  /** True if the file is not what it was. */
  const takeUp = (file: FoundFile): boolean => {
    const before = known.get(file.path)
    if (before !== undefined && before.text === file.text && before.problem === file.problem) return false
    const now: KnownFile = { text: file.text, problem: file.problem, records: before?.records ?? [] }
    known.set(file.path, now)
    if (file.text === undefined) {
      o.log.error(`${file.path}: ${file.problem}${before === undefined ? '' : '; its last state is kept'}`)
      return before === undefined
    }
    return readRecords(file.path, file.text, now)
  }

  const readRecords = (path: string, text: string, file: KnownFile): boolean => {
    try {
      const { records, complaints } = parser!.parse(text)
      for (const { line, message } of complaints) o.log.error(`${path}:${line} - ignoring a bad object: ${message}`)
      file.records = records
      return true
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error
      o.log.error(`${path}:${error.line} - ${error.message}; the last good state of this file is kept`)
      return false
    }
  }

  const look = async () => {
    const files = await findFiles(o.paths)
    let changed = false
    for (const file of files) changed = takeUp(file) || changed
    const present = new Set(files.map(({ path }) => path))
    // A folder that cannot be read now (it may be swapped for another) takes nothing along.
    const lost = files.filter(({ text }) => text === undefined).map(({ path }) => path + sep)
    const stays = (path: string) => present.has(path) || lost.some((folder) => path.startsWith(folder))
    for (const path of known.keys()) if (!stays(path)) changed = known.delete(path) || changed
    if (changed || store?.synced === false) merge()
  }

  /** Later files win over earlier ones; mark and sweep finds what differs. */
  const merge = () => {
    const records = [...known.values()].flatMap((file) => file.records)
    const all = new Map(records.map((record) => [`${record.kind} ${'namespace' in record ? record.namespace : ''}/${record.name}`, record]))
    store!.beginList(KINDS)
    for (const record of impliedNamespaces(records, o.options)) store!.put(record)
    for (const record of all.values()) store!.put(record)
    store!.endList(KINDS)
    store!.setSynced()
    store!.flush()
  }

  const safeLook = () =>
    look().catch((error: unknown) => o.log.error(`manifests: ${error instanceof Error ? error.message : String(error)}`))
  const files = new FileWatch(safeLook, o.clock, o.times ?? TIMES)

  return {
    key: o.key,
    async start(emit) {
      store = new ClusterStore(emit, o.clock)
      parser = await manifestParser(o.options)
      await safeLook()
      files.start(o.paths)
    },
    snapshot: () => store?.snapshot() ?? [],
    stop: () => files.stop(),
  }
}

/**
 * Namespaces of the objects, where the manifests hold no Namespace at all: who writes a few services down should not have to write
 * their namespaces as well. One Namespace object, or `namespace_labels`, and only those that are there count.
 */
function impliedNamespaces(records: readonly ObjectPut[], options: ManifestOptions): readonly ObjectPut[] {
  if (options.namespaceLabels !== undefined || records.some((record) => record.kind === 'namespace')) return []
  const names = new Set(records.flatMap((record) => ('namespace' in record ? [record.namespace] : [])))
  return [...names].map((name) => ({ op: 'put', kind: 'namespace', name }))
}
