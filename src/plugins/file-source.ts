/**
 * A file that is read and watched in the control thread, and the copy of its rows in the serving threads. Polled as CoreDNS does: mounted
 * ConfigMaps change by swapped links, which file system events miss.
 */
import { readFileSync, statSync } from 'node:fs'
import type { Clock, Replica, Source, Timer } from './contract.js'

/** Rows between two marks take the place of all rows before. */
export type FilePart<T> = T | 'begin' | 'end'

/** Rows in one message: more would hold the other side up for too long. */
const PART = 500

export interface FileSourceOptions<T> {
  readonly key: string
  readonly path: string
  /** Milliseconds between looks at the file; 0: it is read once. */
  readonly interval: number
  readonly clock: Clock
  /** Throws for a text that is not to be used; then the old rows stay. */
  readonly parse: (text: string) => readonly T[]
  /** After each reading: `modified` in milliseconds since 1970. */
  readonly onRead: (rows: readonly T[], modified: number) => void
  /** `code` of what the file system says, or the parser's own error. */
  readonly onError: (error: NodeJS.ErrnoException) => void
}

export class FileSource<T> implements Source<FilePart<T>> {
  readonly key: string
  readonly #options: FileSourceOptions<T>
  #rows: readonly T[] = []
  /** What the file looked like when it was read last. */
  #seen = ''
  #timer: Timer | undefined
  #stopped = false

  constructor(options: FileSourceOptions<T>) {
    this.key = options.key
    this.#options = options
  }

  start(emit: (part: readonly FilePart<T>[]) => void): void {
    this.#look(emit)
    this.#arm(emit)
  }

  /** Reads the file if nobody has yet, so that the first copy is whole already. */
  *snapshot(): Iterable<readonly FilePart<T>[]> {
    if (this.#seen === '') this.#look(() => undefined)
    let rows = this.#rows
    for (let at = 0; at < rows.length; at += PART) {
      yield rows.slice(at, at + PART)
      if (this.#rows === rows) continue
      // Read anew meanwhile: what went out so far is of the old text.
      rows = this.#rows
      at = -PART
      yield ['begin']
    }
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.cancel()
  }

  #arm(emit: (part: readonly FilePart<T>[]) => void): void {
    if (this.#options.interval === 0 || this.#stopped) return
    this.#timer = this.#options.clock.timer(this.#options.interval, () => {
      this.#look(emit)
      this.#arm(emit)
    })
  }

  #look(emit: (part: readonly FilePart<T>[]) => void): void {
    const { path, parse, onRead, onError } = this.#options
    try {
      const { mtimeMs, size, ino } = statSync(path)
      const seen = `${mtimeMs} ${size} ${ino}`
      if (seen === this.#seen) return
      const rows = parse(readFileSync(path, 'utf8'))
      this.#seen = seen
      this.#rows = rows
      onRead(rows, mtimeMs)
    } catch (error) {
      onError(error as NodeJS.ErrnoException)
      return
    }
    emit(['begin'])
    for (const part of this.#parts(this.#rows)) emit(part)
    emit(['end'])
  }

  *#parts(rows: readonly T[]): Iterable<readonly FilePart<T>[]> {
    for (let at = 0; at < rows.length; at += PART) yield rows.slice(at, at + PART)
  }
}

/** What the serving thread makes of the rows. Lookers-up see the old value until all rows of the new one are there. */
export class FileReplica<T, V> implements Replica<FilePart<T>> {
  value: V
  /** Resolves with the first value that came from the file. */
  readonly ready: Promise<void>
  readonly #build: (rows: readonly T[]) => V
  #rows: T[] = []
  #markReady: () => void = () => undefined

  constructor(build: (rows: readonly T[]) => V) {
    this.#build = build
    this.value = build([])
    this.ready = new Promise((resolve) => {
      this.#markReady = resolve
    })
  }

  begin(): void {
    this.#rows = []
  }

  apply(part: readonly FilePart<T>[]): void {
    for (const row of part) {
      if (row === 'begin') this.#rows = []
      else if (row === 'end') this.swap()
      else this.#rows.push(row)
    }
  }

  swap(): void {
    this.value = this.#build(this.#rows)
    this.#rows = []
    this.#markReady()
  }
}

/** Waits for the replica's first value, but not longer than `ms`: a control thread that is busy must not keep the server from starting. */
export function firstValue(replica: { readonly ready: Promise<void> }, clock: Clock, ms = 2000): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.timer(ms, resolve)
    void replica.ready.then(() => {
      timer.cancel()
      resolve()
    })
  })
}
