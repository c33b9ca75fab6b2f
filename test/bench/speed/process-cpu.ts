/** What a process and its children have used so far, from /proc. */
import fs from 'node:fs'

export interface Usage {
  /** Nanoseconds that each thread has run (scheduler's count), by thread. */
  readonly threads: ReadonlyMap<string, number>
  /** Seconds, in ticks of 10 ms, threads that have ended included. */
  readonly user: number
  readonly system: number
  /** Resident MiB. */
  readonly rss: number
}

const TICKS = 100

/** Throws if the process is gone. */
export function usageOf(pid: number): Usage {
  const threads = new Map<string, number>()
  let [user, system, rss] = [0, 0, 0]
  for (const process of familyOf(pid)) {
    const fields = fs
      .readFileSync(`/proc/${process}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    user += Number(fields[11]) / TICKS
    system += Number(fields[12]) / TICKS
    rss += Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${process}/status`, 'utf8'))?.[1] ?? 0) / 1024
    for (const thread of fs.readdirSync(`/proc/${process}/task`)) {
      const ran = read(`/proc/${process}/task/${thread}/schedstat`)
      if (ran !== undefined) threads.set(thread, Number(ran.split(' ')[0]))
    }
  }
  return { threads, user, system, rss }
}

function familyOf(pid: number): number[] {
  const children = fs
    .readdirSync(`/proc/${pid}/task`)
    .flatMap((thread) => (read(`/proc/${pid}/task/${thread}/children`) ?? '').split(' ').filter((child) => child !== ''))
  return [pid, ...children.flatMap((child) => familyOf(Number(child)))]
}

/** undefined: the thread has ended meanwhile. */
function read(file: string): string | undefined {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

/** Nanoseconds used between two readings. A thread that ended between them took its count along: then the ticks have to do. */
export function spent(before: Usage, after: Usage): number {
  const ticks = (after.user + after.system - before.user - before.system) * 1e9
  let sum = 0
  for (const [thread, ran] of after.threads) sum += ran - (before.threads.get(thread) ?? 0)
  const ended = [...before.threads.keys()].some((thread) => !after.threads.has(thread))
  return ended ? Math.max(sum, ticks) : sum
}
