/** The order in which a query tries its upstreams. */
import type { Ids } from './ask.js'
import type { PolicyName } from './options.js'

export type Policy = <T>(list: readonly T[]) => readonly T[]

export function policy(name: PolicyName, ids: Ids): Policy {
  if (name === 'sequential') return (list) => list
  if (name === 'random') return (list) => shuffled(list, ids)
  let turn = 0
  return (list) => {
    // CoreDNS counts up before it looks: its first query goes to the second upstream.
    turn = (turn + 1) % list.length
    const first = list[turn]
    return first === undefined ? list : [first, ...list.slice(0, turn), ...list.slice(turn + 1)]
  }
}

function shuffled<T>(list: readonly T[], ids: Ids): readonly T[] {
  if (list.length < 2) return list
  const out = [...list]
  for (let i = out.length - 1; i > 0; i--) {
    const j = ids.below(i + 1)
    const other = out[j]!
    out[j] = out[i]!
    out[i] = other
  }
  return out
}
