/**
 * Names of probes that are under way in this thread, of all guards: a question may come back through another block, or to the generation
 * before. With several serving threads it may come back to another one than the one that asked (the first, which alone asks): so that one
 * tells the others what to look out for, and hears from them what came.
 */
import { Name } from '../../dns/index.js'
import type { Counterparts, Peer, SetupContext } from '../contract.js'

export interface Sighting {
  /** Who asked us our own question. */
  readonly client: Pick<Peer, 'address' | 'port'>
  readonly name: Name
}
type Seen = (sighting: Sighting) => void

type Word =
  | { readonly kind: 'watch' | 'forget'; readonly key: string }
  | { readonly kind: 'seen'; readonly key: string; readonly name: string; readonly address: string; readonly port: number }

/** Of other threads: one that died takes none of its names back. */
const MOST = 256

export class Names {
  readonly #own = new Map<string, Seen>()
  readonly #others = new Set<string>()
  readonly #line: Counterparts<Word>

  constructor(ctx: Pick<SetupContext, 'counterparts'>) {
    this.#line = ctx.counterparts<Word>('names', (word) => this.#hear(word))
  }

  set(key: string, seen: Seen): void {
    this.#own.set(key, seen)
    this.#line.tell({ kind: 'watch', key })
  }

  delete(key: string): void {
    if (this.#own.delete(key)) this.#line.tell({ kind: 'forget', key })
  }

  /** A question came in; true: it is one of ours. */
  came(name: Name, { address, port }: Peer): boolean {
    if (this.#own.size === 0 && this.#others.size === 0) return false
    const { key } = name
    const seen = this.#own.get(key)
    if (seen !== undefined) seen({ client: { address, port }, name })
    else if (this.#others.has(key)) this.#line.tell({ kind: 'seen', key, name: name.toString(), address, port })
    else return false
    return true
  }

  close(): void {
    this.#line.close()
  }

  #hear(word: Word): void {
    if (word.kind === 'seen') {
      const { key, name, address, port } = word
      this.#own.get(key)?.({ client: { address, port }, name: Name.parse(name) })
    } else if (word.kind === 'forget') this.#others.delete(word.key)
    else {
      this.#others.add(word.key)
      for (const key of this.#others) if (this.#others.size > MOST) this.#others.delete(key)
    }
  }
}
