/** Corefiles out of ConfigMaps in YAML, as `kubectl get configmap -o yaml` prints them. */
import { isMap, isScalar, LineCounter, parseAllDocuments, type Scalar, type YAMLMap } from 'yaml'

/** Beside "Corefile" itself: the server blocks that custom ConfigMaps of managed clusters hold. */
const LOOKS_LIKE_COREFILE = /corefile|\.server$/i

/**
 * Corefiles in the ConfigMaps of `text`, each with as many line breaks in front as it takes for its line numbers to be those of the YAML
 * file. Throws Error with the file's name if the YAML is broken or holds none.
 */
export function corefilesIn(text: string, file: string): { key: string; text: string }[] {
  const lineCounter = new LineCounter()
  const found: { key: string; text: string }[] = []
  for (const document of parseAllDocuments(text, { lineCounter })) {
    const broken = document.errors[0]
    if (broken !== undefined) throw new Error(`${file}: ${broken.message}`)
    for (const map of objectsOf(document.contents)) found.push(...corefilesOf(map, lineCounter))
  }
  if (found.length === 0) throw new Error(`${file}: no ConfigMap with a Corefile in it`)
  return found
}

/** The object itself, or the items of a List. */
function objectsOf(contents: unknown): YAMLMap[] {
  if (!isMap(contents)) return []
  const items = contents.get('items', true) as { items?: unknown[] } | undefined
  return items?.items === undefined ? [contents] : items.items.filter((item): item is YAMLMap => isMap(item))
}

function* corefilesOf(object: YAMLMap, lines: LineCounter): Iterable<{ key: string; text: string }> {
  const data = object.get('data', true)
  if (object.get('kind') !== 'ConfigMap' || !isMap(data)) return
  for (const { key, value } of data.items) {
    if (!isScalar(key) || !isScalar(value) || typeof value.value !== 'string') continue
    if (!LOOKS_LIKE_COREFILE.test(String(key.value))) continue
    yield { key: String(key.value), text: '\n'.repeat(lineBefore(value, lines)) + value.value }
  }
}

/** Lines of the YAML file ahead of the text's first one. A block scalar's text begins below its "|". */
function lineBefore(value: Scalar, lines: LineCounter): number {
  const at = value.range?.[0]
  if (at === undefined) return 0
  const { line } = lines.linePos(at)
  return value.type === 'BLOCK_LITERAL' || value.type === 'BLOCK_FOLDED' ? line : line - 1
}
