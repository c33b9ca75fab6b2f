/** The packed objects of the index: services with their slices, and pods. */
import { EMPTY_PACK, octetsOf, pack, packedAt, packedCount } from './address.js'
import type { PodPut, PortRecord, ServiceImportPut, ServicePut, SlicePut } from './objects.js'

/** A port in folded letters; lists of them are shared by all that have the same ports. */
export interface Port {
  readonly name: string
  readonly protocol: string
  readonly port: number
}

/** Stands in for the ports of an object without any: its addresses answer, but no SRV record comes of it. */
export const NO_PORTS: readonly Port[] = [{ name: '', protocol: '', port: -1 }]
const NO_SLICES: readonly Slice[] = []

export const SERVICE = { absent: 0, cluster: 1, headless: 2, external: 3 } as const
export type ServiceForm = (typeof SERVICE)[keyof typeof SERVICE]

/**
 * A service (or a service import) by its name, together with its slices. It is there as soon as one of both is: slices may come before
 * their service, and reverse look-ups need no service at all.
 */
export class ServiceEntry {
  readonly namespace: string
  readonly name: string
  slot = -1
  form: ServiceForm = SERVICE.absent
  /** Packed cluster addresses. */
  addresses: string = EMPTY_PACK
  externalName = ''
  ports: readonly Port[] = NO_PORTS
  /** External addresses and load balancer hostnames; undefined: none. */
  external: readonly string[] | undefined = undefined
  /** EndpointSlices by name, then what stands in for them (Endpoints) by name. */
  slices: readonly Slice[] = NO_SLICES
  /** Counts the changes of this entry and of its slices. */
  revision = 0

  constructor(namespace: string, name: string) {
    this.namespace = namespace
    this.name = name
  }

  /** The slices that count: Endpoints objects only while there is no EndpointSlice. */
  get effective(): readonly Slice[] {
    const slices = this.slices
    if (slices.length < 2 || slices[0]!.standIn || !slices.at(-1)!.standIn) return slices
    return slices.filter((slice) => !slice.standIn)
  }

  /** Number of ready endpoint addresses. */
  get endpointCount(): number {
    let count = 0
    for (const slice of this.effective) count += slice.count
    return count
  }

  get isEmpty(): boolean {
    return this.form === SERVICE.absent && this.slices.length === 0
  }

  put(record: ServicePut | ServiceImportPut, ports: readonly Port[]): void {
    this.revision++
    const isService = record.kind === 'service'
    if (record.headless) this.form = SERVICE.headless
    else this.form = isService && record.type === 'ExternalName' ? SERVICE.external : SERVICE.cluster
    this.addresses = packTexts(record.addresses)
    this.externalName = (isService ? record.externalName : undefined) ?? ''
    this.ports = ports
    this.external = isService ? record.external : undefined
  }

  clear(): void {
    this.revision++
    this.form = SERVICE.absent
    this.addresses = EMPTY_PACK
    this.externalName = ''
    this.ports = NO_PORTS
    this.external = undefined
  }

  addSlice(slice: Slice): void {
    this.revision++
    // concat and a literal take the room they need; a spread would leave room for sixteen more in every service.
    this.slices = this.slices.length === 0 ? [slice] : this.slices.concat(slice).sort(bySlice)
  }
  removeSlice(slice: Slice): void {
    this.revision++
    const rest = this.slices.filter((other) => other !== slice)
    this.slices = rest.length === 0 ? NO_SLICES : rest
  }
}

/** Stable, so that answers keep their order while nothing changes, in every thread. */
export function bySlice(a: Slice, b: Slice): number {
  if (a.standIn !== b.standIn) return a.standIn ? 1 : -1
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0
}

/** What only some slices say about their endpoints. */
export interface Details {
  readonly hostnames: readonly string[] | undefined
  readonly pods: readonly string[] | undefined
  /** Folded topology zones. */
  readonly zones: readonly string[] | undefined
  /** Source cluster of a multi-cluster slice, else "". */
  readonly cluster: string
}
const NO_DETAILS: Details = { hostnames: undefined, pods: undefined, zones: undefined, cluster: '' }

/** The ready endpoints of one slice. */
export class Slice {
  readonly name: string
  readonly owner: ServiceEntry
  /** An Endpoints object. */
  readonly standIn: boolean
  /** Of the multi-cluster API. */
  readonly imported: boolean
  readonly addresses: string
  readonly ports: readonly Port[]
  readonly details: Details
  slot = -1

  constructor(record: SlicePut, owner: ServiceEntry, ports: readonly Port[], intern: (text: string) => string) {
    this.name = record.name
    this.owner = owner
    this.standIn = record.kind === 'endpoints'
    this.imported = record.kind === 'mcslice'
    const octets = (record.addresses ?? []).map(octetsOf)
    const kept = octets.includes('') ? octets.flatMap((address, i) => (address === '' ? [] : [i])) : undefined
    const pick: Pick = (list) => (kept === undefined ? list : kept.map((i) => list[i]!))
    this.addresses = pack(pick(octets))
    this.ports = ports
    this.details = detailsOf(record, pick, intern)
  }

  get count(): number {
    return packedCount(this.addresses)
  }
  address(index: number): string {
    return packedAt(this.addresses, index)
  }
  /** Hostnames and pod names, folded, those that there are. */
  *givenNames(): Iterable<string> {
    const { hostnames, pods } = this.details
    for (const names of [hostnames, pods]) for (const name of names ?? []) if (name !== '') yield name.toLowerCase()
  }
}

type Pick = <T>(list: readonly T[]) => readonly T[]

function detailsOf(record: SlicePut, pick: Pick, intern: (text: string) => string): Details {
  const hostnames = labelsOrNone(record.hostnames, pick)
  const pods = labelsOrNone(record.pods, pick)
  const zones = record.zones?.some((zone) => zone !== '') ? pick(record.zones.map((zone) => intern(zone.toLowerCase()))) : undefined
  const cluster = intern(record.cluster ?? '')
  if (hostnames === undefined && pods === undefined && zones === undefined && cluster === '') return NO_DETAILS
  return { hostnames, pods, zones, cluster }
}

/** What is no label could never be asked for nor be written into a name. */
function labelsOrNone(list: readonly string[] | undefined, pick: Pick): readonly string[] | undefined {
  const labels = list?.map((label) => (isLabel(label) ? label : ''))
  return labels?.some((label) => label !== '') ? pick(labels) : undefined
}

export const isLabel = (text: string): boolean => text.length > 0 && text.length <= 63 && /^[\x21-\x7e]+$/.test(text)

/** A pod takes 180 octets of a serving thread, and there may be 100,000 of them: hence the number, where a string takes 24 more. */
export class PodEntry {
  readonly namespace: string
  readonly name: string
  /** An IPv4 address as a number, an IPv6 address as its octets; "" for what is no address. */
  readonly #address: number | string
  slot = -1

  constructor(record: PodPut, namespace: string) {
    this.namespace = namespace
    this.name = record.name
    const octets = octetsOf(record.address)
    this.#address = octets.length === 4 ? Buffer.from(octets, 'latin1').readInt32BE(0) : octets
  }

  get octets(): string {
    const address = this.#address
    if (typeof address === 'string') return address
    return String.fromCharCode(address >>> 24, (address >>> 16) & 255, (address >>> 8) & 255, address & 255)
  }
  get labels(): Readonly<Record<string, string>> | undefined {
    return undefined
  }
}

export class LabelledPod extends PodEntry {
  readonly #labels: Readonly<Record<string, string>>

  constructor(record: PodPut, namespace: string, labels: Readonly<Record<string, string>>) {
    super(record, namespace)
    this.#labels = labels
  }

  override get labels(): Readonly<Record<string, string>> {
    return this.#labels
  }
}

function packTexts(addresses: readonly string[] | undefined): string {
  if (addresses === undefined || addresses.length === 0) return EMPTY_PACK
  return pack(addresses.map(octetsOf).filter((octets) => octets !== ''))
}

/** Shares equal port lists and other short texts; forgets them all when there are too many, which costs sharing, nothing else. */
export class Interner {
  static readonly #most = 8192
  #ports = new Map<string, readonly Port[]>()
  #texts = new Map<string, string>([['', '']])

  ports(records: readonly PortRecord[] | undefined): readonly Port[] {
    if (records === undefined || records.length === 0) return NO_PORTS
    const key = records.map((p) => `${p.name}/${p.protocol}/${p.port}`).join(',')
    let list = this.#ports.get(key)
    if (list === undefined) {
      if (this.#ports.size >= Interner.#most) this.#ports.clear()
      list = records.map((p) => ({ name: p.name.toLowerCase(), protocol: p.protocol.toLowerCase(), port: p.port }))
      this.#ports.set(key, list)
    }
    return list
  }

  text(text: string): string {
    const known = this.#texts.get(text)
    if (known !== undefined) return known
    if (this.#texts.size >= Interner.#most) this.#texts.clear()
    this.#texts.set(text, text)
    return text
  }
}
