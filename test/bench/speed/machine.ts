/** Which cores the parts of a bench run on, and how they are started there. */
import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'

export interface Cores {
  /** Lists as `taskset -c` takes them; undefined: not pinned. */
  readonly server: string | undefined
  readonly generator: string | undefined
}

/** The cores that this process may use: the last for the generator, so many others as there are threads for the server. */
export function coresFor(threads: number): Cores {
  const allowed = allowedCores()
  if (allowed.length < 2 || spawnSync('taskset', ['-V']).status !== 0) return { server: undefined, generator: undefined }
  const generator = allowed.at(-1)!
  const server = threads < allowed.length ? allowed.slice(0, threads) : allowed
  return { server: server.join(), generator: String(generator) }
}

/** "0,2-3" of /proc/self/status as numbers. */
function allowedCores(): number[] {
  const list = /Cpus_allowed_list:\s+(\S+)/.exec(fs.readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'
  return list.split(',').flatMap((part) => {
    const [first, last] = part.split('-').map(Number)
    return Array.from({ length: (last ?? first!) - first! + 1 }, (_, i) => first! + i)
  })
}

export const pinned = (cores: string | undefined, command: readonly string[]): string[] =>
  cores === undefined ? [...command] : ['taskset', '-c', cores, ...command]

/** The path of a program on the PATH, or where servers are put that only root is to start. */
export function find(program: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/local/sbin', '/usr/sbin', '/sbin']
  return folders.map((folder) => `${folder}/${program}`).find((file) => fs.existsSync(file))
}

/** The first number with dots that `command` says about itself. */
export function versionOf(command: string, flag: string): string {
  try {
    const { stdout, stderr } = spawnSync(command, [flag], { encoding: 'utf8', timeout: 5000 })
    return /\d+\.\d+[\w.-]*/.exec(stdout + stderr)?.[0] ?? 'unknown'
  } catch {
    return 'unknown'
  }
}

/** Throws with the output when it fails. */
export const must = (command: string, args: readonly string[], cwd: string): string =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
