/**
 * All records of a source, and what changed since they were last handed on. A record is kept as its JSON text: a third of the memory of
 * the objects, comparable at once, and parsed again only for a snapshot.
 */
import type { Clock } from '../../../src/plugins/contract.js'
import type { ClusterRecord, ObjectKind, ObjectPut, ServicePut, StateRecord } from '../objects.js'

/** Records in one part, so that no thread is held up by one. */
const PART = 500

interface Kept {
  text: string
  /** The list in which the object was last seen. */
  seen: number
}

export class ClusterStore {
  readonly #kinds = new Map<ObjectKind, Map<string, Kept>>()
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
      for (const [key, kept] of this.#of(kind)) if (kept.seen !== list) this.#delete(kind, key, kept)
    }
  }

  put(record: ObjectPut): void {
    const records = this.#of(record.kind)
    const key = keyOf('namespace' in record ? record.namespace : '', record.name)
    const text = JSON.stringify(record)
    const seen = this.#lists.get(record.kind) ?? 0
    const kept = records.get(key)
    if (kept === undefined) records.set(key, { text, seen })
    else {
      kept.seen = seen
      if (kept.text === text) return
    }
    this.#touch(record, kept?.text)
    if (kept !== undefined) kept.text = text
    this.#push(record)
  }

  /** The object is still there, whatever became of it. False if it is unknown. */
  keep(kind: ObjectKind, namespace: string, name: string): boolean {
    const kept = this.#of(kind).get(keyOf(namespace, name))
    if (kept === undefined) return false
    kept.seen = this.#lists.get(kind) ?? 0
    return true
  }

  delete(kind: ObjectKind, namespace: string, name: string): void {
    const key = keyOf(namespace, name)
    const kept = this.#of(kind).get(key)
    if (kept !== undefined) this.#delete(kind, key, kept)
  }

  /** Whether a known service is headless; undefined: unknown. */
  isHeadless(namespace: string, name: string): boolean | undefined {
    // Quotes inside of values are escaped, so this is the member and nothing else.
    return this.#of('service').get(keyOf(namespace, name))?.text.includes('"headless":true')
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
      this.#of(record.kind).set(key, { text: JSON.stringify(record), seen: 0 })
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
    for (const records of this.#kinds.values()) for (const { text } of records.values()) yield text
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
    for (const records of this.#kinds.values()) {
      for (const { text } of records.values()) {
        part.push(JSON.parse(text) as ObjectPut)
        if (part.length < PART) continue
        yield part
        part = []
      }
    }
    part.push(this.#state)
    yield part
  }

  #of(kind: ObjectKind): Map<string, Kept> {
    const known = this.#kinds.get(kind)
    if (known !== undefined) return known
    const records = new Map<string, Kept>()
    this.#kinds.set(kind, records)
    return records
  }

  #delete(kind: ObjectKind, key: string, kept: Kept): void {
    this.#of(kind).delete(key)
    this.#touch(JSON.parse(kept.text) as ObjectPut, undefined)
    const slash = key.indexOf('/')
    this.#push({ op: 'delete', kind, namespace: key.slice(0, slash), name: key.slice(slash + 1) })
  }

  #push(record: ClusterRecord): void {
    this.#pending.push(record)
    this.changes++
    if (this.#pending.length >= PART) this.flush()
  }

  /** Raises the serials that a change shows in. `before`: undefined for one that came or went. */
  #touch(record: ObjectPut, before: string | undefined): void {
    const old = before === undefined ? undefined : (JSON.parse(before) as ObjectPut)
    switch (record.kind) {
      case 'namespace':
        return
      case 'mcslice':
      case 'serviceimport':
        this.#raise('multiclusterSerial')
        return
      case 'pod':
        if (old?.kind !== 'pod' || old.address !== record.address) this.#raise('serial')
        return
      case 'service':
        this.#touchService(record, old as ServicePut | undefined)
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

const keyOf = (namespace: string, name: string): string => `${namespace}/${name}`

const sameOutside = (a: ServicePut, b: ServicePut): boolean =>
  JSON.stringify([a.external, a.ports]) === JSON.stringify([b.external, b.ports])

const sameInside = (a: ServicePut, b: ServicePut): boolean =>
  JSON.stringify({ ...a, external: 0 }) === JSON.stringify({ ...b, external: 0 })
