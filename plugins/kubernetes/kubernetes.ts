/** The plugin as it stands in a chain: which zone a question falls in, what its name stands for, and the reply of the type asked for. */

import { type Message, Name, OPTION, RCODE, type RR, TYPE } from '../../src/dns/index.js'
import {
  after,
  type Handler,
  isMessage,
  isPromise,
  type Passing,
  type Plugin,
  type Query,
  type Reply,
  ServeError,
  type SetupContext,
  type Standing,
  UNTOUCHED,
} from '../../src/plugins/contract.js'
import { localAddresses, type NameServer, nameServers } from './apex.js'
import type { ClusterIndex, ClusterReplica } from './cluster-index.js'
import type { ServiceEntry } from './entries.js'
import { aliasReply } from './external.js'
import { ABSENT, lookUp, namespaceExposed, type Outcome } from './lookup.js'
import { AnswerMemo } from './memo.js'
import { addMetadata } from './metadata.js'
import { Notifier } from './notify.js'
import type { KubernetesOptions } from './options.js'
import { addressRecord, addressRecords, nameRecord, nameUnder, srvRecords, textRecord } from './records.js'
import { labelsBefore, parseRequest } from './request.js'
import { reverseAddress, reverseNames } from './reverse.js'
import { waitForSync } from './startup.js'
import { zoneRecords } from './transfer.js'
import type { KubernetesView } from './view.js'
import { makeZones, matchZone, soaRecord, type Zone, zoneAsAsked } from './zones.js'

const NAME = 'kubernetes'
/** Of the DNS specification, under `dns-version.ZONE`; CoreDNS's TTL. */
const SCHEMA_VERSION = '1.1.0'
const SCHEMA_TTL = 28_800
const EDE_STALE = 3

/** A question in one of our zones. */
export interface Asked {
  readonly query: Query
  readonly next: Handler
  readonly zone: Zone
  /** The zone's name in the letters of the question. */
  readonly apex: Name
}

export class Kubernetes implements Plugin, KubernetesView {
  readonly name = NAME
  readonly zones: readonly Name[]
  readonly ttl: number
  readonly options: KubernetesOptions
  readonly #ctx: SetupContext
  readonly #replica: ClusterReplica
  readonly #zones: readonly Zone[]
  readonly #primaryZone: Name
  readonly #fallthrough: readonly Name[]
  readonly #notifier: Notifier | undefined
  readonly #memo = new AnswerMemo(() => this.index)
  #local: readonly string[] = []

  constructor(options: KubernetesOptions, replica: ClusterReplica, ctx: SetupContext) {
    this.options = options
    this.ttl = options.ttl
    this.zones = options.zones.map((zone) => Name.parse(zone))
    this.#primaryZone = Name.parse(options.primaryZone)
    this.#zones = makeZones(options.zones, options.multiclusterZones)
    this.#fallthrough = (options.fallthrough ?? []).map((zone) => Name.parse(zone))
    this.#replica = replica
    this.#ctx = ctx
    // With several serving threads one of them speaks.
    if (options.notifyInterval !== undefined && ctx.thread.index === 0)
      this.#notifier = new Notifier(this.#zones, replica, options.notifyInterval, ctx)
  }

  get index(): ClusterIndex {
    return this.#replica.index
  }

  onStartup(): void | Promise<void> {
    this.#local = localAddresses(this.#ctx.block.bind)
    this.#notifier?.start()
    return waitForSync(this.#replica, this.options.startupTimeout, this.#ctx)
  }

  onShutdown(): void {
    this.#notifier?.stop()
  }

  ready(): boolean {
    return this.synced()
  }

  metadata(query: Query): void {
    addMetadata(query, matchZone(this.#zones, query.name), this.index, this.options)
  }

  serveDNS(query: Query, next: Handler): Reply | Promise<Reply> {
    const known = this.#memo.recall(query)
    if (known !== undefined) return known
    const zone = matchZone(this.#zones, query.name)
    if (zone === undefined) return next(query)
    const reply = this.#serve(query, next, zone)
    if (this.index.state.staleSince !== undefined) return after(reply, (message) => this.#marked(query, message))
    // Behind an alias stand other answers than ours.
    if (!isPromise(reply) && isMessage(reply) && reply.by === NAME && reply.live && reply.answers[0]?.type !== TYPE.CNAME)
      this.#memo.keep(query, reply, this.#onlySource(query, zone, reply))
    return reply
  }

  stands(query: Query, reply: Message): Standing | Passing | undefined {
    if (reply.by === NAME && reply.live) return this.#memo.standing(query)
    return matchZone(this.#zones, query.name) === undefined ? UNTOUCHED : undefined
  }

  /** The service that alone decided about this positive answer. */
  #onlySource({ name }: Query, zone: Zone, reply: Message): ServiceEntry | undefined {
    if (zone.multicluster || zone.reverse || reply.answers.length === 0) return undefined
    const request = parseRequest(labelsBefore(name, zone.name), false, this.options.zonal)
    return request?.kind === 'svc' ? this.index.service(request.namespace, request.service) : undefined
  }

  /** An answer out of a snapshot says so (RFC 8914: stale answer). */
  #marked(query: Query, message: Message): Message {
    const client = query.message.edns
    if (client === undefined || message.by !== NAME) return message
    const options = [{ code: OPTION.EDE, data: Buffer.from([0, EDE_STALE]) }]
    return message.with({ edns: { ...client, extendedRcode: 0, z: 0, options } })
  }

  #serve(query: Query, next: Handler, zone: Zone): Reply | Promise<Reply> {
    const asked: Asked = { query, next, zone, apex: zoneAsAsked(zone, query.name) }
    switch (query.type) {
      case TYPE.AXFR:
      case TYPE.IXFR:
        // Left to the server, so to speak: CoreDNS names no plugin for it in its metrics.
        return query.reply('', RCODE.REFUSED, { aa: false, live: true })
      case TYPE.SOA:
        return query.name.key === zone.name.key ? this.#positive(asked, [this.#soa(zone, asked.apex)]) : this.negative(asked, RCODE.NOERROR)
      case TYPE.PTR: {
        const octets = reverseAddress(query.name)
        return octets === '' ? this.#byName(asked) : this.#pointers(asked, octets)
      }
      default:
        return this.#byName(asked)
    }
  }

  transfer(name: Name, serial: number): Iterable<RR> | undefined {
    const zone = this.#zones.find((one) => one.name.key === name.key)
    if (zone === undefined) return undefined
    // A secondary must not take what is missing yet for gone.
    if (!this.synced()) throw new ServeError('plugin/kubernetes: no transfer before the first list is in')
    const soa = this.#soa(zone, zone.name)
    if (serial !== 0 && soa.data.kind === 'SOA' && soa.data.serial === serial) return [soa]
    return zoneRecords(this.index, this.options, zone, soa, this.#servers())
  }

  /** NOERROR without data, NXDOMAIN or SERVFAIL, with the SOA of the zone. `answers`: CNAMEs that led here. */
  negative({ query, zone, apex }: Asked, rcode: number, answers: readonly RR[] = []): Reply {
    return query.reply(NAME, rcode, { answers, authorities: [this.#soa(zone, apex)], live: true })
  }

  /** What stands for `name`, apart from what every zone has by itself. */
  find(name: Name, zone: Zone, srv: boolean): Outcome {
    return this.#find(labelsBefore(name, zone.name), zone, srv)
  }

  /** The zone of ours that a name is in. */
  zoneOf(name: Name): Zone | undefined {
    return matchZone(this.#zones, name)
  }

  fallsThrough(name: Name): boolean {
    return this.#fallthrough.some((zone) => name.isUnder(zone))
  }

  /** The rcode for a name that is not there: while objects are missing, nobody knows. */
  get absentRcode(): number {
    return this.synced() ? RCODE.NXDOMAIN : RCODE.SERVFAIL
  }

  synced(): boolean {
    return this.#replica.synced
  }
  namespaceExists(namespace: string): boolean {
    return namespaceExposed(this.index, this.options, namespace)
  }
  serviceExists(namespace: string, name: string): boolean {
    return this.namespaceExists(namespace) && this.index.service(namespace, name) !== undefined
  }
  soa(zone: Name): RR {
    return soaRecord(zone, this.index.state.serial, this.ttl)
  }

  #soa(zone: Zone, apex: Name): RR {
    const { serial, multiclusterSerial } = this.index.state
    return soaRecord(apex, zone.multicluster ? multiclusterSerial : serial, this.ttl)
  }

  #positive({ query }: Asked, answers: readonly RR[], additionals: readonly RR[] = []): Reply {
    return query.reply(NAME, RCODE.NOERROR, { answers, additionals, live: true })
  }

  /** As `answers`, or NODATA if there are none. */
  #answer(asked: Asked, answers: readonly RR[], additionals?: readonly RR[]): Reply {
    return answers.length === 0 ? this.negative(asked, RCODE.NOERROR) : this.#positive(asked, answers, additionals)
  }

  #byName(asked: Asked): Reply | Promise<Reply> {
    const { query, zone } = asked
    const labels = labelsBefore(query.name, zone.name)
    if (labels.length === 0) return query.type === TYPE.NS ? this.#nameServers(asked) : this.negative(asked, RCODE.NOERROR)
    if (query.name.key === zone.nsKey) return this.#answer(asked, addressesIfAsked(query, this.#servers(), this.ttl))
    if (labels.length === 1 && labels[0] === 'dns-version')
      return this.#answer(asked, query.type === TYPE.TXT ? [textRecord(query.name, SCHEMA_VERSION, SCHEMA_TTL)] : [])
    const outcome = this.#find(labels, zone, query.type === TYPE.SRV)
    switch (outcome.kind) {
      case 'absent':
        return this.#absent(asked)
      case 'empty':
        return this.negative(asked, RCODE.NOERROR)
      case 'external':
        return aliasReply(this, asked, outcome.target, this.#ctx)
      case 'found':
        if (query.type !== TYPE.SRV) return this.#answer(asked, addressesIfAsked(query, outcome.found, this.ttl))
        return this.#services(asked, outcome.found, labels)
    }
  }

  #find(labels: readonly string[], zone: Zone, srv: boolean): Outcome {
    const request = parseRequest(labels, zone.multicluster, this.options.zonal)
    if (request === undefined || (zone.reverse && request.kind !== '')) return ABSENT
    return lookUp(this.index, this.options, request, zone.multicluster, srv)
  }

  /** Targets carry service, namespace and kind as the question does, in lower case. */
  #services(asked: Asked, found: Parameters<typeof srvRecords>[1], labels: readonly string[]): Reply {
    const { answers, additionals } = srvRecords(asked.query.name, found, labels.slice(-3), asked.apex, this.ttl)
    return this.#answer(asked, answers, additionals)
  }

  #absent(asked: Asked): Reply | Promise<Reply> {
    const { name, type } = asked.query
    // A name that has a PTR record exists, whatever type is asked for.
    const octets = type === TYPE.PTR ? '' : reverseAddress(name)
    if (octets !== '' && reverseNames(this.index, this.options, octets).length > 0) return this.negative(asked, RCODE.NOERROR)
    if (this.fallsThrough(name)) return asked.next(asked.query)
    return this.negative(asked, this.absentRcode)
  }

  #pointers(asked: Asked, octets: string): Reply | Promise<Reply> {
    const records: RR[] = []
    for (const labels of reverseNames(this.index, this.options, octets)) {
      const target = nameUnder([...labels, 'svc'], this.#primaryZone)
      if (target !== undefined) records.push(nameRecord(asked.query.name, TYPE.PTR, target, this.ttl))
    }
    return records.length === 0 ? this.#absent(asked) : this.#positive(asked, records)
  }

  #servers(): NameServer[] {
    return nameServers(this.index, this.#local, this.options.endpointPodNames)
  }

  #nameServers(asked: Asked): Reply {
    const names = new Map<string, RR>()
    const additionals: RR[] = []
    for (const { labels, octets } of this.#servers()) {
      const target = nameUnder(labels, asked.apex)
      if (target === undefined) continue
      names.set(target.key, nameRecord(asked.query.name, TYPE.NS, target, this.ttl))
      additionals.push(addressRecord(target, octets, this.ttl))
    }
    return this.#answer(asked, [...names.values()], additionals)
  }
}

function addressesIfAsked(query: Query, found: readonly { readonly octets: string }[], ttl: number): RR[] {
  return query.type === TYPE.A || query.type === TYPE.AAAA ? addressRecords(query.name, query.type, found, ttl) : []
}
