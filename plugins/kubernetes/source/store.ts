/**
 * All records of a source, and what changed since they were last handed on. A record is kept as the octets of its JSON text: a fifth of the
 * memory of the objects, comparable at once, and parsed again only for a snapshot.
 */
import type { Clock } from '../../../src/plugins/contract.js'
import type { ClusterRecord, ObjectKind, ObjectPut, PodPut, ServicePut, StateRecord } from '../objects.js'
import { NONE, TextTable } from './text-table.js'

/** Records in one part, so that no thread is held up by one: slices of ten take 10 to 20 µs each while the code is cold. */
const PART = 100

export class ClusterStore {
  /** The mark of a text is the list in which the object was last seen. */
  readonly #kinds = new Map<ObjectKind, TextTable>()
  readonly #lists = new Map<ObjectKind, number>()
  readonly #emit: (part: readonly ClusterRecord[]) => void
  readonly #clock: Clock
  #pending: ClusterRecord[] = []
  #state: StateRecord = { op: 'state', synced: false, serial: 0, multiclusterSerial: 0, externalSerial: 0 }
  #stateChanged = false
  /** Counts records that were handed on. */
  changes = 0

  constructor(emit: (part: readonly ClusterRecord[]) => void, clock: Clock) {
    this.#emit = emit
    this.#clock = clock
  }

  /** A list of these kinds begins: whatever is not put or `keep` until `endList` goes then. */
  beginList(kinds: readonly ObjectKind[]): void {
    for (const kind of kinds) this.#lists.set(kind, (this.#lists.get(kind) ?? 0) + 1)
  }

  endList(kinds: readonly ObjectKind[]): void {
    for (const kind of kinds) {
      const list = this.#lists.get(kind)
      const table = this.#of(kind)
      for (const entry of table.entries()) if (table.mark(entry) !== list) this.#delete(kind, table, entry)
    }
  }

  put(record: ObjectPut): void {
    const table = this.#of(record.kind)
    const key = keyOf('namespace' in record ? record.namespace : '', record.name)
    const text = restOf(record)
    const list = this.#lists.get(record.kind) ?? 0
    const entry = table.find(key)
    if (entry === NONE) {
      table.add(key, text, list)
      this.#touch(record, undefined)
    } else {
      table.setMark(entry, list)
      if (table.holds(entry, text)) return
      this.#touch(record, () => recordOf(record.kind, table.text(entry)))
      table.replace(entry, text)
    }
    this.#push(record)
  }

  /** The object is still there, whatever became of it. False if it is unknown. */
  keep(kind: ObjectKind, namespace: string, name: string): boolean {
    const table = this.#of(kind)
    const entry = table.find(keyOf(namespace, name))
    if (entry === NONE) return false
    table.setMark(entry, this.#lists.get(kind) ?? 0)
    return true
  }

  delete(kind: ObjectKind, namespace: string, name: string): void {
    const table = this.#of(kind)
    const entry = table.find(keyOf(namespace, name))
    if (entry !== NONE) this.#delete(kind, table, entry)
  }

  /** Whether a known service is headless; undefined: unknown. */
  isHeadless(namespace: string, name: string): boolean | undefined {
    const table = this.#of('service')
    const entry = table.find(keyOf(namespace, name))
    // Quotes inside of values are escaped, so this is the member and nothing else.
    return entry === NONE ? undefined : table.text(entry).includes('"headless":true')
  }

  get synced(): boolean {
    return this.#state.synced
  }
  get state(): StateRecord {
    return this.#state
  }
  get staleSince(): number | undefined {
    return this.#state.staleSince
  }

  /** Fills an empty store from a snapshot and hands all of it on. Lists that follow sweep what is no longer there. */
  restore(records: readonly ObjectPut[], state: StateRecord): void {
    for (const record of records) {
      const key = keyOf('namespace' in record ? record.namespace : '', record.name)
      this.#of(record.kind).add(key, restOf(record), 0)
      this.#push(record)
    }
    this.#state = state
    this.#stateChanged = true
    this.flush()
  }

  /** All has been listed. */
  setSynced(): void {
    if (this.#state.synced && this.#state.staleSince === undefined) return
    const { staleSince: _, ...state } = this.#state
    this.#state = { ...state, synced: true }
    this.#stateChanged = true
  }

  /** All records as JSON texts. May be read over several turns: what changes meanwhile is in it or not. */
  *lines(): Iterable<string> {
    for (const [kind, table] of this.#kinds) for (const entry of table.entries()) yield headOf(kind) + table.text(entry)
  }

  /** Hands on what changed since the last call. */
  flush(): void {
    if (this.#stateChanged) this.#pending.push(this.#state)
    this.#stateChanged = false
    if (this.#pending.length === 0) return
    const part = this.#pending
    this.#pending = []
    this.#emit(part)
  }

  /** The whole state. What changes while it is read is in it or comes as a delta. */
  *snapshot(): Iterable<readonly ClusterRecord[]> {
    let part: ClusterRecord[] = []
    for (const text of this.lines()) {
      part.push(JSON.parse(text) as ObjectPut)
      if (part.length < PART) continue
      yield part
      part = []
    }
    part.push(this.#state)
    yield part
  }

  #of(kind: ObjectKind): TextTable {
    const known = this.#kinds.get(kind)
    if (known !== undefined) return known
    const table = new TextTable()
    this.#kinds.set(kind, table)
    return table
  }

  #delete(kind: ObjectKind, table: TextTable, entry: number): void {
    const key = table.key(entry)
    const record = recordOf(kind, table.text(entry))
    table.remove(entry)
    this.#touch(record, undefined)
    const slash = key.indexOf('/')
    this.#push({ op: 'delete', kind, namespace: key.slice(0, slash), name: key.slice(slash + 1) })
  }

  #push(record: ClusterRecord): void {
    this.#pending.push(record)
    this.changes++
    if (this.#pending.length >= PART) this.flush()
  }

  /** Raises the serials that a change shows in. `before`: the record in whose place it comes; undefined for one that came or went. */
  #touch(record: ObjectPut, before: (() => ObjectPut) | undefined): void {
    switch (record.kind) {
      case 'namespace':
        return
      case 'mcslice':
      case 'serviceimport':
        this.#raise('multiclusterSerial')
        return
      case 'pod':
        if ((before?.() as PodPut | undefined)?.address !== record.address) this.#raise('serial')
        return
      case 'service':
        this.#touchService(record, before?.() as ServicePut | undefined)
        return
      default:
        this.#raise('serial')
    }
  }

  #touchService(record: ServicePut, old: ServicePut | undefined): void {
    const outside = record.external !== undefined || old?.external !== undefined
    if (outside && (old === undefined || !sameOutside(old, record))) this.#raise('externalSerial')
    if (old === undefined || !sameInside(old, record)) this.#raise('serial')
  }

  /**
   * Seconds, as CoreDNS counts. A second change within a second takes the next one, so that a secondary that has asked in between sees
   * it; never more than one ahead, so that a restart does not go back.
   */
  #raise(which: 'serial' | 'multiclusterSerial' | 'externalSerial'): void {
    const now = Math.floor(this.#clock.now() / 1000)
    const before = this.#state[which]
    if (before > now) return
    this.#state = { ...this.#state, [which]: before === now ? now + 1 : now }
    this.#stateChanged = true
  }
}

/** What all texts of a kind begin with is not kept: a tenth of them, and a fifth of a pod's. */
const headOf = (kind: ObjectKind): string => `{"op":"put","kind":"${kind}",`

/** The text of a record behind its head. */
function restOf(record: ObjectPut): string {
  const head = headOf(record.kind)
  const text = JSON.stringify(record)
  if (text.startsWith(head)) return text.slice(head.length)
  const { op, kind, ...rest } = record
  return JSON.stringify({ op, kind, ...rest }).slice(head.length)
}

const recordOf = (kind: ObjectKind, rest: string): ObjectPut => JSON.parse(headOf(kind) + rest) as ObjectPut

const keyOf = (namespace: string, name: string): string => `${namespace}/${name}`

const sameOutside = (a: ServicePut, b: ServicePut): boolean =>
  JSON.stringify([a.external, a.ports]) === JSON.stringify([b.external, b.ports])

const sameInside = (a: ServicePut, b: ServicePut): boolean =>
  JSON.stringify({ ...a, external: 0 }) === JSON.stringify({ ...b, external: 0 })
