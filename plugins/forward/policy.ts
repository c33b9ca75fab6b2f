/** The order in which a query tries its upstreams. */
import type { Ids } from './ask.js'
import type { PolicyName } from './options.js'

/** Asked in two steps: most queries never need more than the first. */
export interface Policy {
  /** Index of the first of `count`. */
  first(count: number): number
  /** All of them, that one first. */
  order<T>(list: readonly T[], first: number): readonly T[]
}

export function policy(name: PolicyName, ids: Ids): Policy {
  if (name === 'sequential') return { first: () => 0, order: leading }
  if (name === 'random') return { first: (count) => ids.below(count), order: (list, first) => shuffled(leading(list, first), ids) }
  let turn = 0
  return {
    first: (count) => {
      // CoreDNS counts up before it looks: its first query goes to the second upstream.
      turn = (turn + 1) % count
      return turn
    },
    order: leading,
  }
}

function leading<T>(list: readonly T[], index: number): readonly T[] {
  const first = list[index]
  return first === undefined || index === 0 ? list : [first, ...list.slice(0, index), ...list.slice(index + 1)]
}

/** All but the first in random order. */
function shuffled<T>(list: readonly T[], ids: Ids): readonly T[] {
  if (list.length < 3) return list
  const out = [...list]
  for (let i = out.length - 1; i > 1; i--) {
    const j = 1 + ids.below(i)
    const other = out[j]!
    out[j] = out[i]!
    out[i] = other
  }
  return out
}
