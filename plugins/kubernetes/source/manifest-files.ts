/**
 * The files behind `manifests PATH...`, as they are on disk now, and a watch on them. Files are compared by content: mounted ConfigMaps
 * swap a link, which changes neither name nor, always, time. The clock is what is relied on; `fs.watch` only makes it faster.
 */
import { type FSWatcher, watch } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Clock, Timer } from '../../../src/plugins/contract.js'

const NAMES = /\.(ya?ml|json)$/i
/** The largest file read, in octets. */
const MAX_FILE = 64 * 1024 * 1024

/** One file: its text, or why it could not be read. */
export interface FoundFile {
  readonly path: string
  readonly text?: string
  readonly problem?: string
}

/**
 * All files that the paths stand for, in order, each once. A folder stands for the .yaml, .yml and .json files right in it, by name; names
 * that begin with a dot are passed by (the links of a mounted ConfigMap point there). A path that does not exist is a FoundFile with a
 * problem.
 */
export async function findFiles(paths: readonly string[]): Promise<FoundFile[]> {
  const found = new Map<string, FoundFile>()
  for (const path of paths) for (const file of await expand(path)) if (!found.has(file)) found.set(file, await read(file))
  return [...found.values()]
}

async function expand(path: string): Promise<readonly string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path]
    const names = (await readdir(path)).filter((name) => NAMES.test(name) && !name.startsWith('.'))
    return names.sort().map((name) => join(path, name))
  } catch {
    // Reading it says what is wrong.
    return [path]
  }
}

async function read(path: string): Promise<FoundFile> {
  try {
    const { size } = await stat(path)
    if (size > MAX_FILE) return { path, problem: `larger than ${MAX_FILE} octets` }
    return { path, text: await readFile(path, 'utf8') }
  } catch (error) {
    return { path, problem: error instanceof Error ? error.message : String(error) }
  }
}

export interface FileWatchTimes {
  /** Milliseconds between two looks. */
  readonly poll: number
  /** Milliseconds of quiet after a notice, since a file may be written in pieces. */
  readonly settle: number
}

/** Calls `look` now and then, and soon after something happened in one of the folders; never twice at once. */
export class FileWatch {
  readonly #look: () => Promise<void>
  readonly #clock: Clock
  readonly #times: FileWatchTimes
  readonly #watchers = new Map<string, FSWatcher>()
  #timer: Timer | undefined
  #looking: Promise<void> | undefined
  #again = false
  #stopped = false

  constructor(look: () => Promise<void>, clock: Clock, times: FileWatchTimes) {
    this.#look = look
    this.#clock = clock
    this.#times = times
  }

  start(paths: readonly string[]): void {
    for (const path of paths) {
      this.#notice(path)
      this.#notice(dirname(path))
    }
    this.#arm(this.#times.poll)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#timer?.cancel()
    for (const watcher of this.#watchers.values()) watcher.close()
    await this.#looking
  }

  #notice(path: string): void {
    if (this.#watchers.has(path)) return
    try {
      const watcher = watch(path, { persistent: false }, () => this.#arm(this.#times.settle))
      // Gone, or no more of them to be had: the clock goes on.
      watcher.on('error', () => watcher.close())
      this.#watchers.set(path, watcher)
    } catch {
      // The same.
    }
  }

  #arm(ms: number): void {
    if (this.#stopped) return
    if (this.#looking !== undefined) {
      this.#again ||= ms === this.#times.settle
      return
    }
    this.#timer?.cancel()
    this.#timer = this.#clock.timer(ms, () => {
      this.#looking = this.#look().finally(() => {
        this.#looking = undefined
        const soon = this.#again
        this.#again = false
        this.#arm(soon ? this.#times.settle : this.#times.poll)
      })
    })
  }
}
