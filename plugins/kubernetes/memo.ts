/**
 * Encoded answers for questions that come often. Each hangs on its question and holds as long as nothing it was made from has changed: a
 * positive answer from a service and its slices as long as these (and the namespaces) are as they were, every other one, whose SOA names the
 * state of all, as long as nothing at all has come in.
 */
import { FLAG, type Layout, layoutOf, Message, scanMessage } from '../../src/dns/index.js'
import { AS_GIVEN, GONE, type Query, type Standing } from '../../src/plugins/contract.js'
import type { ClusterIndex } from './cluster-index.js'
import type { ServiceEntry } from './entries.js'

const NAME = 'kubernetes'
/** Longer answers are put together each time: few ask for them, and they would fill the memory. */
const LONGEST = 1232
/** The client's own bits in a reply's flags. */
const ASKED = FLAG.RD | FLAG.CD

interface Encoded {
  /** `ClusterIndex.id` */
  readonly index: number
  /** undefined: whatever comes in ends it. */
  readonly entry: ServiceEntry | undefined
  /** Of the entry, or of the index. */
  readonly revision: number
  readonly namespaces: number
  readonly wire: Buffer
  readonly layout: Layout
  readonly flags: number
  /** Seconds. */
  readonly ttl: number
}

export class AnswerMemo {
  /** Not the plugin itself, which would live as long as a question that remembers it. */
  readonly #owner = {}
  readonly #index: () => ClusterIndex
  readonly #epoch = (): number => epochOf(this.#index())

  /** `index` gives the one that counts. */
  constructor(index: () => ClusterIndex) {
    this.#index = index
  }

  /** The answer that the index still gives to the query, if it is known. */
  recall(query: Query): Message | undefined {
    const known = this.#known(query)
    if (known === undefined || !isCurrent(known, this.#index())) return undefined
    const { message } = query
    const reply = Message.stored(known.wire, known.layout, message, known.flags | (message.flags & ASKED), known.ttl)
    reply.by = NAME
    reply.live = true
    return reply
  }

  /** How long the answer to the query stands, if it is known. */
  standing(query: Query): Standing | undefined {
    const known = this.#known(query)
    return known === undefined ? undefined : { again: () => (isCurrent(known, this.#index()) ? AS_GIVEN : GONE), epoch: this.#epoch }
  }

  #known(query: Query): Encoded | undefined {
    return query.message.question?.kept?.get(this.#owner) as Encoded | undefined
  }

  /** Keeps `reply`, which the index has just given. `entry`: the service that alone it was made from. */
  keep(query: Query, reply: Message, entry: ServiceEntry | undefined): void {
    const index = this.#index()
    const kept = query.message.question?.kept
    const ttl = commonTtl(reply)
    if (kept === undefined || ttl < 0 || reply.edns !== undefined) return
    const encoded = reply.toBuffer()
    if (encoded.length > LONGEST) return
    // Memory of its own, not a share of a slab.
    const wire = Buffer.allocUnsafeSlow(encoded.length)
    encoded.copy(wire)
    const known: Encoded = {
      index: index.id,
      entry,
      revision: entry?.revision ?? index.revision,
      namespaces: index.namespaceRevision,
      wire,
      layout: layoutOf(scanMessage(wire, 0, wire.length), wire, 0, wire.length),
      flags: reply.flags & ~ASKED,
      ttl,
    }
    kept.set(this.#owner, known)
  }
}

/** A snapshot's answers carry a remark, so they are put together each time. */
function isCurrent({ index: id, entry, revision, namespaces }: Encoded, index: ClusterIndex): boolean {
  if (id !== index.id || namespaces !== index.namespaceRevision || index.state.staleSince !== undefined) return false
  return revision === (entry === undefined ? index.revision : entry.revision)
}

/** Another number after every change; while answers need a remark, none that was before. */
const epochOf = ({ id, revision, state }: ClusterIndex): number => (state.staleSince === undefined ? id * 2 ** 40 + revision : Number.NaN)

/** The TTL that all records have; -1: there are none, or they differ. */
function commonTtl({ answers, authorities, additionals }: Message): number {
  let ttl = -1
  for (const section of [answers, authorities, additionals])
    for (const rr of section) {
      if (ttl >= 0 && rr.ttl !== ttl) return -1
      ttl = rr.ttl
    }
  return ttl
}
