/** Which nameservers are switched off: found out in the first serving thread, and held to in all. */
import type { Counterparts, SetupContext } from '../contract.js'
import type { Guarded } from './guarded.js'

type Word =
  | { readonly kind: 'off'; readonly line: number; readonly label: string; readonly reason: string }
  | { readonly kind: 'on'; readonly line: number; readonly label: string }
  /** Of a thread that is new. */
  | { readonly kind: 'hello' }

export class Verdicts {
  readonly #forwards: readonly Guarded[]
  readonly #line: Counterparts<Word>
  /** Those of this thread's own finding. */
  readonly #off = new Map<string, Word>()

  constructor(forwards: readonly Guarded[], ctx: Pick<SetupContext, 'counterparts' | 'block'>) {
    this.#forwards = forwards
    this.#line = ctx.counterparts<Word>(`verdicts ${ctx.block.index}`, (word) => this.#hear(word))
  }

  /** Asks what is known already. */
  ask(): void {
    this.#line.tell({ kind: 'hello' })
  }

  off(forward: Guarded, label: string, reason: string): void {
    const line = this.#forwards.indexOf(forward)
    const word: Word = { kind: 'off', line, label, reason }
    this.#off.set(`${line} ${label}`, word)
    forward.suspend(label, reason)
    this.#line.tell(word)
  }

  on(forward: Guarded, label: string): void {
    const line = this.#forwards.indexOf(forward)
    this.#off.delete(`${line} ${label}`)
    forward.resume(label)
    this.#line.tell({ kind: 'on', line, label })
  }

  close(): void {
    this.#line.close()
  }

  #hear(word: Word): void {
    if (word.kind === 'hello') {
      for (const known of this.#off.values()) this.#line.tell(known)
      return
    }
    const forward = this.#forwards[word.line]
    if (word.kind === 'off') forward?.suspend(word.label, word.reason)
    else forward?.resume(word.label)
  }
}
