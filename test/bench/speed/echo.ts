/** The least that answers: the bench's own upstream, polled without end. Started by `run.mjs speed/echo.ts`; says its port over IPC. */
import { loadLibc } from '../../../src/server/native/libc.js'
import { Upstream } from './upstream.js'

/** Here, not in `main`: see generator.ts. */
const libc = await loadLibc()
/** Polls between two looks at what else there is: the end of the parent. */
const POLLS = 4096

export default function main(): Promise<never> {
  const upstream = new Upstream(libc)
  process.on('disconnect', () => process.exit(0))
  process.send!(upstream.port)
  const turn = (): void => {
    for (let i = 0; i < POLLS; i++) upstream.poll()
    setImmediate(turn)
  }
  turn()
  return new Promise(() => undefined)
}
