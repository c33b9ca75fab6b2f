/**
 * How many CPUs there are for this process: those that it may run on, cut down to the container's limit. As with the library that CoreDNS
 * asks for this, a part of a CPU does not count, and one there always is.
 */
import fs from 'node:fs'
import { availableParallelism } from 'node:os'
import path from 'node:path'

/** `root` and `self` are where the kernel shows control groups; others in tests. */
export function availableCpus(cpus: number = availableParallelism(), root = '/sys/fs/cgroup', self = '/proc/self/cgroup'): number {
  const quota = cpuQuota(root, self)
  return quota === undefined ? cpus : Math.max(1, Math.min(cpus, Math.floor(quota)))
}

/** CPUs that the control group may use, the smallest limit on the way up to the root; undefined: as many as there are. */
export function cpuQuota(root: string, self: string): number | undefined {
  let smallest: number | undefined
  for (const { folder, read } of controllers(root, self)) {
    const quota = read(folder)
    if (quota !== undefined && (smallest === undefined || quota < smallest)) smallest = quota
  }
  return smallest
}

type Read = (folder: string) => number | undefined

/** Each folder that may hold a limit of ours, with how it is written there. */
function controllers(root: string, self: string): { folder: string; read: Read }[] {
  const found: { folder: string; read: Read }[] = []
  for (const line of (text(self) ?? '').split('\n')) {
    const [, names, at] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? []
    if (at === undefined) continue
    const controls = names?.split(',') ?? []
    if (names === '') found.push(...upwards(root, at).map((folder) => ({ folder, read: unified })))
    else if (controls.includes('cpu'))
      for (const mount of ['cpu', 'cpu,cpuacct'])
        found.push(...upwards(path.join(root, mount), at).map((folder) => ({ folder, read: legacy })))
  }
  return found
}

/** From a group to the root. Within a container the path is often that of the host and not there; the root is then the container's own. */
function upwards(root: string, at: string): string[] {
  const folders = [root]
  const parts = at.split('/').filter((part) => part !== '' && part !== '..')
  for (let i = 1; i <= parts.length; i++) folders.push(path.join(root, ...parts.slice(0, i)))
  return folders
}

/** Version 2: "max 100000", "150000 100000". */
const unified: Read = (folder) => {
  const [quota, period] = (text(path.join(folder, 'cpu.max')) ?? '').trim().split(' ').map(Number)
  return ratio(quota, period)
}

const legacy: Read = (folder) => ratio(numberIn(path.join(folder, 'cpu.cfs_quota_us')), numberIn(path.join(folder, 'cpu.cfs_period_us')))

const ratio = (quota = Number.NaN, period = Number.NaN): number | undefined => (quota > 0 && period > 0 ? quota / period : undefined)

const numberIn = (file: string): number => Number(text(file)?.trim() ?? Number.NaN)

function text(file: string): string | undefined {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    // Not there: no such controller, or another system. No limit is what that means.
    return undefined
  }
}
