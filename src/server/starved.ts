/** How long a thread has waited for a processor: where the machine is starved, its silence proves nothing. Known on Linux only. */
import fs from 'node:fs'

/** The number by which the kernel knows the calling thread; undefined where it does not tell. */
export function ownTask(): number | undefined {
  try {
    return Number(/\d+$/.exec(fs.readlinkSync('/proc/thread-self'))?.[0])
  } catch {
    return undefined
  }
}

/** Milliseconds that a thread of this process was ready to run and not let, limits of a container included; 0 where nobody knows. */
export function waited(task: number | undefined): number {
  if (task === undefined) return 0
  try {
    return Number(fs.readFileSync(`/proc/self/task/${task}/schedstat`, 'utf8').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}
