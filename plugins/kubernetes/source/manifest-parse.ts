/**
 * Objects out of the text of a manifest: YAML of one or more documents, or JSON; lists (`kind: List`, as `kubectl get -o yaml` prints)
 * are opened. What is wrong with one object is reported with its line and costs that object only; text that cannot be parsed at all is
 * refused whole.
 */
import type { ObjectPut } from '../objects.js'
import type { SourceNeeds, SourceOptions } from '../options.js'
import {
  PackError,
  type PackedMeta,
  packEndpoints,
  packMeta,
  packNamespace,
  packPod,
  packService,
  packServiceImport,
  packSlice,
  strings,
} from './pack.js'

/** Text that is no YAML or JSON. */
export class ManifestError extends Error {
  readonly code = 'KUBE_MANIFEST'
  readonly line: number
  constructor(line: number, message: string) {
    super(message)
    this.line = line
  }
}

export interface Complaint {
  readonly line: number
  readonly message: string
}

export interface ParsedManifest {
  readonly records: readonly ObjectPut[]
  readonly complaints: readonly Complaint[]
}

/** What of the options decides which objects count. */
export type ManifestOptions = Pick<SourceOptions, 'labels' | 'namespaceLabels' | 'needs'>

/** Lists in lists. */
const MAX_DEPTH = 8
/** Uses of YAML aliases in one document, against texts that grow without end. */
const MAX_ALIASES = 1000

export interface ManifestParser {
  /** Throws ManifestError. */
  parse(text: string): ParsedManifest
}

/** Loads the YAML library, which nobody needs who reads no manifests. */
export async function manifestParser(options: ManifestOptions): Promise<ManifestParser> {
  const yaml = await import('yaml')
  return {
    parse(text) {
      const reading = new Reading(options)
      for (const { value, line } of readDocuments(yaml, text)) reading.object(value, [], line, 0)
      return reading
    },
  }
}

type Path = readonly (string | number)[]
/** The line of what a path leads to, or of the nearest thing above it. */
type Locate = (path: Path) => number
interface ReadDocument {
  readonly value: unknown
  readonly line: Locate
}

type Yaml = typeof import('yaml')

function readDocuments(yaml: Yaml, text: string): readonly ReadDocument[] {
  if (!text.trimStart().startsWith('{')) return parseYaml(yaml, text)
  try {
    // Twenty times as fast as YAML, which is only asked for lines, should there be any need.
    return [{ value: JSON.parse(text), line: (path) => parseYaml(yaml, text)[0]?.line(path) ?? 1 }]
  } catch {
    // Two documents of JSON, a flow mapping, or nonsense: YAML knows, and says where.
    return parseYaml(yaml, text)
  }
}

function parseYaml(yaml: Yaml, text: string): readonly ReadDocument[] {
  const lines = new yaml.LineCounter()
  // Kubernetes reads YAML 1.1: `ready: no` is false.
  const parsed = yaml.parseAllDocuments(text, { lineCounter: lines, version: '1.1', merge: true, uniqueKeys: false, logLevel: 'silent' })
  const lineAt = (offset: number | undefined) => lines.linePos(offset ?? 0).line
  return (Array.isArray(parsed) ? parsed : []).map((document) => {
    const error = document.errors[0]
    if (error !== undefined) throw new ManifestError(lineAt(error.pos[0]), firstLine(error.message))
    try {
      return { value: document.toJS({ maxAliasCount: MAX_ALIASES }), line: (path) => lineAt(offsetOf(document.contents, path)) }
    } catch (cause) {
      throw new ManifestError(lineAt(document.range?.[0]), firstLine(String((cause as Error).message)))
    }
  })
}

const firstLine = (message: string): string => message.split('\n')[0]!.replace(/ at line \d+, column \d+:?$/, '')

/** Where the node begins that a path leads to. */
function offsetOf(root: unknown, path: Path): number | undefined {
  let at = root as { get?: (step: string | number, keepScalar: boolean) => unknown; range?: readonly number[] | null } | null
  for (const step of path) {
    const next = typeof at?.get === 'function' ? at.get(step, true) : undefined
    if (typeof next !== 'object' || next === null) break
    at = next
  }
  return at?.range?.[0]
}

/** One pass over the documents of a file. */
class Reading implements ParsedManifest {
  readonly records: ObjectPut[] = []
  readonly complaints: Complaint[] = []
  readonly #options: ManifestOptions

  constructor(options: ManifestOptions) {
    this.#options = options
  }

  /** `listKind`: elements of a typed list ("ServiceList") may lack their kind. */
  object(value: unknown, path: Path, line: Locate, depth: number, listKind = 'List'): void {
    // Nothing between two `---`.
    if (value === null || value === undefined) return
    const { kind: own, items } = value as { kind?: unknown; items?: unknown }
    const kind = own ?? (listKind === 'List' ? undefined : listKind.slice(0, -4))
    if (typeof kind !== 'string') this.complaints.push({ line: line(path), message: 'an object without kind' })
    else if (kind.endsWith('List') && Array.isArray(items) && depth < MAX_DEPTH) {
      for (let i = 0; i < items.length; i++) this.object(items[i], [...path, 'items', i], line, depth + 1, kind)
    } else this.#pack(value, kind, path, line)
  }

  #pack(value: unknown, kind: string, path: Path, line: Locate): void {
    const packer = Object.hasOwn(PACKERS, kind) ? PACKERS[kind] : undefined
    // Deployments and the like live in the same files; they have no names.
    if (packer === undefined) return
    try {
      const meta = packMeta(value, kind !== 'Namespace')
      if (this.#wanted(kind, meta)) this.records.push(...packer(value, meta, this.#options.needs))
    } catch (error) {
      if (!(error instanceof PackError)) throw error
      this.complaints.push({ line: line([...path, ...error.path]), message: `${kind}: ${error.message}` })
    }
  }

  /** The selectors, which an API server would apply. */
  #wanted(kind: string, { labels }: PackedMeta): boolean {
    const { labels: objects, namespaceLabels } = this.#options
    const selector = kind === 'Namespace' || kind === 'ServiceImport' ? namespaceLabels : objects
    return selector?.matches(strings(labels)) ?? true
  }
}

type Packer = (object: unknown, meta: PackedMeta, needs: SourceNeeds) => readonly ObjectPut[]

const PACKERS: Readonly<Record<string, Packer>> = {
  Service: (object, meta) => [packService(object, meta)],
  Namespace: (_, meta) => [packNamespace(meta)],
  EndpointSlice: packSlice,
  Endpoints: packEndpoints,
  Pod: (object, meta, needs) => {
    const phase = (object as { status?: { phase?: unknown } | null }).status?.phase
    const over = phase === 'Succeeded' || phase === 'Failed' || phase === 'Unknown'
    const pod = needs.pods && !over && !meta.terminating ? packPod(object, meta, needs.podLabels) : undefined
    return pod === undefined ? [] : [pod]
  },
  ServiceImport: (object, meta, needs) => (needs.multicluster ? [packServiceImport(object, meta)] : []),
}
