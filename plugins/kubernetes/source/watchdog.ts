/**
 * Watches over a watch. Behind a stalled proxy a connection looks alive for ever, and a quiet resource is quiet too: so a watch that
 * brought nothing for a while gets a second one beside it, which shows which of both is the case. The first is kept meanwhile, since a
 * server sends bookmarks only to watches that are older than a minute, and without bookmarks a quiet resource ends in a relist.
 */
import type { Clock } from '../../../src/plugins/contract.js'
import { isGone } from './status.js'
import type { Watch, WatchEnd } from './watch.js'

export interface Verdict {
  /** Set where the watch ended without a successor. */
  readonly end: WatchEnd
  /** The watch that goes on in its place. */
  readonly successor: Watch | undefined
  readonly reason: 'closed' | 'failed' | 'silent' | 'stalled'
}

/** Resolves when `main` is over, or was given up for a second watch. `silence` and `grace` in milliseconds. */
export function guard(main: Watch, open: () => Watch, clock: Clock, times: { silence: number; grace: number }): Promise<Verdict> {
  return new Promise((resolve) => {
    let spare: Watch | undefined
    let notBefore = 0
    let done = false

    const finish = (verdict: Verdict) => {
      if (done) return
      done = true
      timer.cancel()
      if (spare !== verdict.successor) spare?.close()
      if (verdict.successor !== undefined) main.close()
      resolve(verdict)
    }
    const drop = () => {
      spare?.close()
      spare = undefined
      notBefore = clock.monotonic() + times.silence / 4
    }
    const openSpare = () => {
      const mine = open()
      main.overlaps = mine.overlaps = true
      spare = mine
      void mine.ended.then((end) => {
        if (spare !== mine) return
        if (isGone(end)) finish({ end, successor: undefined, reason: 'failed' })
        else drop()
      })
    }
    const look = () => {
      const now = clock.monotonic()
      if (spare === undefined) {
        if (now - main.heardAt >= times.silence && now >= notBefore) openSpare()
      } else if (spare.openedAt > 0) {
        if (main.heardAt > spare.openedAt) drop()
        else if (spare.events > 0 && now - spare.firstEventAt >= times.grace)
          finish({ end: undefined, successor: spare, reason: 'stalled' })
        else if (now - spare.openedAt >= times.silence) finish({ end: undefined, successor: spare, reason: 'silent' })
      }
      if (!done) timer = clock.timer(Math.min(times.grace, times.silence / 8), look)
    }
    let timer = clock.timer(Math.min(times.grace, times.silence / 8), look)
    void main.ended.then((end) => {
      const successor = spare !== undefined && spare.openedAt > 0 ? spare : undefined
      finish({ end, successor, reason: end === undefined ? 'closed' : 'failed' })
    })
  })
}
