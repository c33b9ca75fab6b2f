/** Answers A, AAAA and PTR out of hosts data. */
import { type Message, Name, RCODE, type RR, TYPE } from '../../dns/index.js'
import { type Handler, type Passing, type Plugin, type Query, type Reply, UNTOUCHED } from '../contract.js'
import type { HostsOptions } from './options.js'
import { addressOf, type HostsTable } from './table.js'

const NAME = 'hosts'

export interface Tables {
  /** Of the file; changes as the file does. */
  readonly file: () => HostsTable
  readonly inline: HostsTable
}

export class Hosts implements Plugin {
  readonly name = NAME
  readonly #options: HostsOptions
  readonly #tables: Tables
  readonly #zones: readonly Name[]
  readonly #fallthrough: readonly Name[]
  readonly #start: () => void | Promise<void>
  /** What is said of answers as long as the file is this one. */
  #sameTable: { readonly table: HostsTable; readonly passing: Passing } | undefined

  constructor(options: HostsOptions, tables: Tables, start: () => void | Promise<void>) {
    this.#options = options
    this.#tables = tables
    this.#zones = options.zones.map((zone) => Name.parse(zone))
    this.#fallthrough = options.fallthrough.map((zone) => Name.parse(zone))
    this.#start = start
  }

  onStartup(): void | Promise<void> {
    return this.#start()
  }

  serveDNS(query: Query, next: Handler): Reply | Promise<Reply> {
    const { name, type } = query
    // Reverse zones need not be among the zones, and unknown addresses are always somebody else's.
    if (type === TYPE.PTR) {
      const names = this.#names(name)
      return names.length === 0
        ? next(query)
        : this.#reply(
            query,
            names.map((target) => this.#record(query, { kind: 'NAME', target })),
          )
    }
    if (!this.#zones.some((zone) => name.isUnder(zone))) return next(query)
    const falls = this.#fallthrough.some((zone) => name.isUnder(zone))
    if (type === TYPE.A) return this.#answer(query, next, this.#addresses(name, 4), falls)
    if (type === TYPE.AAAA) return this.#answer(query, next, this.#addresses(name, 6), falls)
    return this.#options.fallthroughUnsupported && falls ? next(query) : this.#answer(query, next, [], falls)
  }

  /** What we had nothing to say about stands as long as our file is the same. */
  stands({ name, type }: Query, reply: Message): Passing | undefined {
    if (reply.by === NAME || reply.by === '') return undefined
    if (type !== TYPE.PTR && !this.#zones.some((zone) => name.isUnder(zone))) return UNTOUCHED
    const table = this.#tables.file()
    if (this.#sameTable?.table !== table) this.#sameTable = { table, passing: { holds: () => this.#tables.file() === table } }
    return this.#sameTable.passing
  }

  #answer(query: Query, next: Handler, addresses: readonly string[], falls: boolean): Reply | Promise<Reply> {
    if (addresses.length > 0) {
      const kind = query.type === TYPE.A ? 'A' : 'AAAA'
      return this.#reply(
        query,
        addresses.map((address) => this.#record(query, { kind, address })),
      )
    }
    if (this.#addresses(query.name, 4).length > 0 || this.#addresses(query.name, 6).length > 0) return this.#reply(query, [])
    if (falls) return next(query)
    // There is no SOA to deny the name with, so CoreDNS answers SERVFAIL and writes nothing itself; nor is it to be kept.
    return query.reply('', RCODE.SERVFAIL, { aa: false, live: true })
  }

  #addresses(name: Name, family: 4 | 6): readonly string[] {
    const file = this.#tables.file().addresses(name, family)
    const inline = this.#tables.inline.addresses(name, family)
    if (inline.length === 0) return file
    return file.length === 0 ? inline : [...file, ...inline]
  }

  #names(name: Name): readonly Name[] {
    const address = addressOf(name)
    if (address === undefined) return []
    return [...this.#tables.file().names(address), ...this.#tables.inline.names(address)]
  }

  #record(query: Query, data: RR['data']): RR {
    return { name: query.name, type: query.type, class: 1, ttl: this.#options.ttl, data }
  }

  #reply(query: Query, answers: readonly RR[]): Reply {
    return query.reply(NAME, RCODE.NOERROR, { answers, live: true })
  }
}
