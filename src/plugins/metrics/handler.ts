/** `prometheus`: counts each query of a client once, with what came of it. */
import { fullLength, type Message } from '../../dns/index.js'
import {
  type BlockConfig,
  type Handler,
  isCrash,
  type Passing,
  type Plugin,
  type Query,
  type Reply,
  type ServerReply,
  type SetupContext,
  watch,
  type ZoneKey,
} from '../contract.js'
import { Counts } from './counts.js'
import { type Families, families, showZeros } from './families.js'

/** The zone label of answers that no block gave. It has no final dot, so it can be no zone. */
const DROPPED = 'dropped'

export class Prometheus implements Plugin {
  readonly name = 'prometheus'
  readonly #ctx: SetupContext
  readonly #families: Families
  /** Every server, zone and view met so far; a handful. */
  readonly #all: Counts[] = []
  #last: Counts | undefined
  /**
   * The `plugin` label of replies that a plugin made. CoreDNS has every plugin wrap the writer of those behind it, so the one that
   * stands next to us is named, whichever wrote.
   */
  #neighbour = ''

  constructor(ctx: SetupContext) {
    this.#ctx = ctx
    this.#families = families(ctx.metrics)
    showZeros(ctx.metrics)
    ctx.onServerReply((reply) => this.#serverReply(reply))
  }

  onStartup(): void {
    const { chain } = this.#ctx
    this.#neighbour = chain.slice(chain.indexOf(this) + 1).find((plugin) => plugin.serveDNS !== undefined)?.name ?? ''
    if (this.#ctx.thread.index === 0) this.#enabled((count) => count + 1)
  }

  onShutdown(): void {
    if (this.#ctx.thread.index === 0) this.#enabled((count) => count - 1)
  }

  serveDNS(query: Query, next: Handler): Reply | Promise<Reply> {
    return query.internal ? next(query) : watch(query, next, this.#seen)
  }

  /** Counted with the others of its round, as having taken as long as the round did. */
  stands(query: Query, reply: Message): Passing {
    const plugin = reply.by === '' ? '' : this.#neighbour
    const counts = this.#counts(query.server, query.zone, query.view)
    return counts.again(query.type, query.dnssecOk, fullLength(query.message), reply.by === '' ? 0 : fullLength(reply), reply.rcode, plugin)
  }

  readonly #seen = (query: Query, message: Message | undefined, size: number, rcode: number, error: unknown): void => {
    // Comes again as an answer of the server's own.
    if (isCrash(error)) return
    const made = error === undefined && message !== undefined && message.by !== ''
    this.#counts(query.server, query.zone, query.view).add(
      query.type,
      query.proto === 'udp',
      query.peer.family,
      query.dnssecOk,
      fullLength(query.message),
      made ? size : 0,
      rcode,
      made ? this.#neighbour : '',
      (this.#ctx.clock.monotonic() - query.arrival.received) / 1000,
    )
  }

  #serverReply({ arrival, type, dnssecOk, querySize, replySize, rcode }: ServerReply): void {
    // Every block with `prometheus` hears of it; the first counts it.
    if (this.#ctx.everywhere('prometheus')[0]?.plugin !== this) return
    const seconds = (this.#ctx.clock.monotonic() - arrival.received) / 1000
    const udp = arrival.proto === 'udp'
    this.#counts(arrival.server, DROPPED, '').add(type, udp, arrival.peer.family, dnssecOk, querySize, replySize, rcode, '', seconds)
  }

  #counts(server: string, zone: string, view: string): Counts {
    const last = this.#last
    if (last !== undefined && is(last, server, zone, view)) return last
    let counts = this.#all.find((each) => is(each, server, zone, view))
    if (counts === undefined) {
      counts = new Counts(this.#families, { server, zone, view }, this.#ctx)
      this.#all.push(counts)
    }
    this.#last = counts
    return counts
  }

  /** Keeps `coredns_plugin_enabled` while generations come and go: what two of them have in common must not vanish with the old one. */
  #enabled(change: (count: number) => number): void {
    const { block, chain } = this.#ctx
    const uses = this.#ctx.shared(
      'prometheus/enabled',
      () => new Map<string, number>(),
      () => undefined,
    )
    for (const key of block.keys)
      for (const server of serversOf(key, block))
        for (const { name } of chain) {
          const labels = [server, key.zone, block.viewName, name]
          const id = labels.join('\0')
          const count = change(uses.get(id) ?? 0)
          uses.set(id, count)
          if (count > 0) this.#families.enabled.with(...labels).set(1)
          else this.#families.enabled.remove(...labels)
        }
  }
}

/** The `server` labels that a key of the block listens under; a key without a port has the one that no other key names. */
function serversOf(key: ZoneKey, { servers, keys }: BlockConfig): string[] {
  const named = keys.flatMap(({ port }) => (port === '' ? [] : [`:${port}`]))
  return servers.filter(
    (server) =>
      server.startsWith(`${key.transport}://`) &&
      (key.port === '' ? named.every((port) => !server.endsWith(port)) : server.endsWith(`:${key.port}`)),
  )
}

const is = ({ labels }: Counts, server: string, zone: string, view: string): boolean =>
  labels.zone === zone && labels.server === server && labels.view === view
