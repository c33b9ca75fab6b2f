/**
 * What a serving thread knows of a cluster: Map of namespaces, in it a Map of services, each with its packed slices; and reverse tables
 * for cluster, endpoint and pod addresses. A record changes one entry, within one turn, at a cost that does not grow with the cluster.
 */
import type { Replica } from '../../src/plugins/contract.js'
import { packedAt, packedCount, packedIndexOf } from './address.js'
import { AddressTable } from './address-table.js'
import { bySlice, Interner, isLabel, LabelledPod, PodEntry, SERVICE, ServiceEntry, Slice } from './entries.js'
import type { ClusterRecord, ObjectDelete, PodPut, ServiceImportPut, ServicePut, SlicePut, StateRecord } from './objects.js'

type Tree<T> = Map<string, Map<string, T>>

const UNSYNCED: StateRecord = { op: 'state', synced: false, serial: 0, multiclusterSerial: 0, externalSerial: 0 }

let indexes = 0

export class ClusterIndex {
  /** Other than that of every index before. */
  readonly id = ++indexes
  state: StateRecord = UNSYNCED
  /** Counts all that was applied, and what of that concerned namespaces. */
  revision = 0
  namespaceRevision = 0
  readonly #namespaces = new Set<string>()
  readonly #services: Tree<ServiceEntry> = new Map()
  readonly #imports: Tree<ServiceEntry> = new Map()
  /** By the slice's own name, since a slice may move to another service. */
  readonly #slices: Record<SlicePut['kind'], Tree<Slice>> = { slice: new Map(), endpoints: new Map(), mcslice: new Map() }
  readonly #pods: Tree<PodEntry> = new Map()
  readonly #clusterAddresses = new AddressTable<ServiceEntry>()
  /** Slices by the addresses and by the names (`endpointKey`) of their endpoints. */
  readonly #endpoints = new AddressTable<Slice>()
  readonly #podAddresses = new AddressTable<PodEntry>()
  readonly #interner = new Interner()

  hasNamespace(name: string): boolean {
    return this.#namespaces.has(name)
  }
  /** Undefined also for a service that only has slices so far. */
  service(namespace: string, name: string): ServiceEntry | undefined {
    return present(this.#services.get(namespace)?.get(name))
  }
  serviceImport(namespace: string, name: string): ServiceEntry | undefined {
    return present(this.#imports.get(namespace)?.get(name))
  }
  /** All services, present ones only, in no order. */
  services(): Iterable<ServiceEntry> {
    return allPresent(this.#services)
  }
  serviceImports(): Iterable<ServiceEntry> {
    return allPresent(this.#imports)
  }
  servicesWithAddress(octets: string): ServiceEntry[] {
    return this.#clusterAddresses.find(octets).filter((entry) => packedIndexOf(entry.addresses, octets) >= 0)
  }
  /** Slices with an endpoint of this address, those of absent services too. */
  slicesWithAddress(octets: string): Slice[] {
    return this.#endpoints
      .find(octets)
      .filter((slice) => packedIndexOf(slice.addresses, octets) >= 0 && slice.owner.effective.includes(slice))
  }
  /**
   * The slices of a service that may hold the endpoint of this folded name (or of this address; '' for none), in their order: found in the
   * same time however many endpoints it has.
   */
  slicesWithEndpoint(entry: ServiceEntry, label: string, octets: string): readonly Slice[] {
    const found = this.#endpoints.find(endpointKey(entry, label))
    for (const slice of octets === '' ? [] : this.#endpoints.find(octets)) if (!found.includes(slice)) found.push(slice)
    const standInsCount = entry.slices[0]?.standIn === true
    return found.filter((slice) => slice.owner === entry && (!slice.standIn || standInsCount)).sort(bySlice)
  }
  podsWithAddress(octets: string): PodEntry[] {
    return this.#podAddresses.find(octets).filter((pod) => pod.octets === octets)
  }

  apply(record: ClusterRecord): void {
    this.revision++
    if (record.op !== 'state' && record.kind === 'namespace') this.namespaceRevision++
    if (record.op === 'state') this.state = record
    else if (record.op === 'delete') this.#delete(record)
    else
      switch (record.kind) {
        case 'namespace':
          this.#namespaces.add(record.name.toLowerCase())
          break
        case 'service':
          this.#putService(this.#services, record)
          break
        case 'serviceimport':
          this.#putService(this.#imports, record)
          break
        case 'pod':
          this.#putPod(record)
          break
        default:
          this.#putSlice(record)
      }
  }

  #delete({ kind, namespace, name }: ObjectDelete): void {
    const ns = namespace.toLowerCase()
    switch (kind) {
      case 'namespace':
        this.#namespaces.delete(name.toLowerCase())
        break
      case 'service':
        this.#removeService(this.#services, ns, name.toLowerCase())
        break
      case 'serviceimport':
        this.#removeService(this.#imports, ns, name.toLowerCase())
        break
      case 'pod':
        this.#removePod(ns, name)
        break
      default:
        this.#removeSlice(kind, ns, name)
    }
  }

  #putService(tree: Tree<ServiceEntry>, record: ServicePut | ServiceImportPut): void {
    const entry = this.#entry(tree, record.namespace, record.name)
    if (entry === undefined) return
    this.#unlistAddresses(entry)
    entry.put(record, this.#interner.ports(record.ports))
    if (tree === this.#services)
      for (let i = 0; i < packedCount(entry.addresses); i++) this.#clusterAddresses.add(packedAt(entry.addresses, i), entry)
  }

  #removeService(tree: Tree<ServiceEntry>, namespace: string, name: string): void {
    const entry = tree.get(namespace)?.get(name)
    if (entry === undefined) return
    this.#unlistAddresses(entry)
    entry.clear()
    dropIfEmpty(tree, entry)
  }

  #unlistAddresses(entry: ServiceEntry): void {
    if (entry.slot < 0) return
    for (let i = 0; i < packedCount(entry.addresses); i++) this.#clusterAddresses.remove(packedAt(entry.addresses, i), entry)
    this.#clusterAddresses.release(entry)
  }

  #putSlice(record: SlicePut): void {
    const namespace = record.namespace.toLowerCase()
    const known = this.#slices[record.kind]
    const old = known.get(namespace)?.get(record.name)
    const tree = record.kind === 'mcslice' ? this.#imports : this.#services
    const owner = this.#entry(tree, record.namespace, record.service)
    if (old !== undefined) this.#removeSlice(record.kind, namespace, record.name, owner)
    if (owner === undefined) return
    const slice = new Slice(record, owner, this.#interner.ports(record.ports), (text) => this.#interner.text(text))
    owner.addSlice(slice)
    branch(known, owner.namespace).set(slice.name, slice)
    if (record.kind === 'mcslice') return
    for (let i = 0; i < slice.count; i++) this.#endpoints.add(slice.address(i), slice)
    for (const name of slice.givenNames()) this.#endpoints.add(endpointKey(owner, name), slice)
  }

  /** `keep`: an entry that is about to get another slice. */
  #removeSlice(kind: SlicePut['kind'], namespace: string, name: string, keep?: ServiceEntry): void {
    const slice = this.#slices[kind].get(namespace)?.get(name)
    if (slice === undefined) return
    if (slice.slot >= 0) {
      for (let i = 0; i < slice.count; i++) this.#endpoints.remove(slice.address(i), slice)
      for (const given of slice.givenNames()) this.#endpoints.remove(endpointKey(slice.owner, given), slice)
      this.#endpoints.release(slice)
    }
    prune(this.#slices[kind], namespace, name)
    slice.owner.removeSlice(slice)
    if (slice.owner !== keep) dropIfEmpty(kind === 'mcslice' ? this.#imports : this.#services, slice.owner)
  }

  #putPod(record: PodPut): void {
    const namespace = this.#interner.text(record.namespace.toLowerCase())
    this.#removePod(namespace, record.name)
    const pod = record.labels === undefined ? new PodEntry(record, namespace) : new LabelledPod(record, namespace, record.labels)
    if (pod.octets === '') return
    branch(this.#pods, namespace).set(pod.name, pod)
    this.#podAddresses.add(pod.octets, pod)
  }

  #removePod(namespace: string, name: string): void {
    const pod = this.#pods.get(namespace)?.get(name)
    if (pod === undefined) return
    this.#podAddresses.remove(pod.octets, pod)
    this.#podAddresses.release(pod)
    prune(this.#pods, namespace, name)
  }

  /** The entry of this name, made if need be; undefined for what can't be part of a name. */
  #entry(tree: Tree<ServiceEntry>, namespace: string, name: string): ServiceEntry | undefined {
    if (!isLabel(namespace) || !isLabel(name)) return undefined
    const names = branch(tree, this.#interner.text(namespace.toLowerCase()))
    const folded = name.toLowerCase()
    let entry = names.get(folded)
    if (entry === undefined) {
      entry = new ServiceEntry(this.#interner.text(namespace.toLowerCase()), folded)
      names.set(folded, entry)
    }
    return entry
  }
}

/** No address is written like this, and where the hashes of two keys meet, the slice itself is looked at. */
const endpointKey = (owner: ServiceEntry, label: string): string => `${label}.${owner.name}.${owner.namespace}`

const present = (entry: ServiceEntry | undefined): ServiceEntry | undefined =>
  entry === undefined || entry.form === SERVICE.absent ? undefined : entry

function* allPresent(tree: Tree<ServiceEntry>): Iterable<ServiceEntry> {
  for (const names of tree.values()) for (const entry of names.values()) if (entry.form !== SERVICE.absent) yield entry
}

function branch<T>(tree: Tree<T>, key: string): Map<string, T> {
  let map = tree.get(key)
  if (map === undefined) {
    map = new Map()
    tree.set(key, map)
  }
  return map
}

function prune<T>(tree: Tree<T>, key: string, name: string): void {
  const map = tree.get(key)
  map?.delete(name)
  if (map?.size === 0) tree.delete(key)
}

function dropIfEmpty(tree: Tree<ServiceEntry>, entry: ServiceEntry): void {
  if (entry.isEmpty) prune(tree, entry.namespace, entry.name)
}

/**
 * The index as a replica. A snapshot is built beside what serves and takes its place at the swap: it comes once, to a thread that is new
 * or that missed something; a relist reaches it as a delta.
 */
export class ClusterReplica implements Replica<ClusterRecord> {
  index = new ClusterIndex()
  #next: ClusterIndex | undefined
  #waiting: (() => void)[] = []

  begin(): void {
    this.#next = new ClusterIndex()
  }
  apply(part: readonly ClusterRecord[]): void {
    const target = this.#next ?? this.index
    for (const record of part) target.apply(record)
    this.#tell()
  }
  swap(): void {
    if (this.#next !== undefined) this.index = this.#next
    this.#next = undefined
    this.#tell()
  }

  get synced(): boolean {
    return this.index.state.synced
  }
  /** Calls `fn` once, as soon as the index is synced; at once if it is. Returns what takes the call back. */
  whenSynced(fn: () => void): () => void {
    if (this.synced) {
      fn()
      return () => undefined
    }
    this.#waiting.push(fn)
    return () => {
      this.#waiting = this.#waiting.filter((other) => other !== fn)
    }
  }

  #tell(): void {
    if (!this.synced || this.#waiting.length === 0) return
    const waiting = this.#waiting
    this.#waiting = []
    for (const fn of waiting) fn()
  }
}
