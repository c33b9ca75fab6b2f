/** Holds a start back until the cluster is known, or patience ends: the first queries then find names instead of SERVFAIL. */
import type { SetupContext, Timer } from '../../src/plugins/contract.js'
import type { ClusterReplica } from './cluster-index.js'

/** How often the wait is spoken of, in milliseconds. */
const REMINDER = 500

/** Resolves when the index is synced or `timeout` milliseconds have passed. */
export function waitForSync(
  replica: ClusterReplica,
  timeout: number,
  ctx: Pick<SetupContext, 'clock' | 'log' | 'thread'>,
): void | Promise<void> {
  if (replica.synced) return undefined
  // With several serving threads one of them speaks.
  const speaks = ctx.thread.index === 0
  return new Promise((resolve) => {
    let reminder: Timer
    const remind = (): void => {
      reminder = ctx.clock.timer(REMINDER, () => {
        if (speaks) ctx.log.info('waiting for Kubernetes API before starting server')
        remind()
      })
    }
    const limit = ctx.clock.timer(Math.max(0, timeout), () => {
      stopListening()
      reminder.cancel()
      if (speaks) ctx.log.warning('starting server with unsynced Kubernetes API')
      resolve()
    })
    remind()
    const stopListening = replica.whenSynced(() => {
      limit.cancel()
      reminder.cancel()
      resolve()
    })
  })
}
