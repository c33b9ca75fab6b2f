/**
 * The records of a source in a file, so that a restart can answer before the API server is heard. One JSON text a line: a head, the
 * records, and an end that proves the rest whole. Written by the control thread in small pieces beside the old file, then put in its place.
 */
import { createHash, randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import type { ObjectPut, StateRecord } from '../objects.js'

const FORMAT = 1
/** Records that are written, or read, in one turn. */
const BATCH = 500

interface Head {
  readonly format: number
  readonly identity: string
  /** Milliseconds since 1970. */
  readonly savedAt: number
  readonly state: StateRecord
}

export interface Snapshot {
  /** Milliseconds since 1970. */
  readonly savedAt: number
  readonly state: StateRecord
  readonly records: readonly ObjectPut[]
}

/** Thrown for a file that must not be used; its message says why. */
export class SnapshotError extends Error {
  readonly code = 'KUBE_SNAPSHOT'
}

/** What makes the objects of one source differ from those of another: API server, its CA, selectors and kinds. */
export const identityOf = (parts: readonly unknown[]): string => createHash('sha256').update(JSON.stringify(parts)).digest('hex')

/** Replaces `path` at once, or leaves it alone. `lines`: records as JSON texts. Rejects as the file system does. */
export async function writeSnapshot(
  path: string,
  identity: string,
  savedAt: number,
  state: StateRecord,
  lines: Iterable<string>,
): Promise<void> {
  // Two generations may write at the same time, during a reload.
  const beside = `${path}.${randomBytes(4).toString('hex')}.new`
  const file = await open(beside, 'w', 0o600)
  try {
    const head: Head = { format: FORMAT, identity, savedAt, state }
    await writeLines(file, JSON.stringify(head), lines)
    await file.sync()
  } catch (error) {
    await file.close()
    await rm(beside, { force: true })
    throw error
  }
  await file.close()
  await rename(beside, path)
}

async function writeLines(file: FileHandle, head: string, lines: Iterable<string>): Promise<void> {
  const hash = createHash('sha256')
  let count = 0
  const put = async (text: string): Promise<void> => {
    hash.update(text)
    await file.write(text)
  }
  let batch = `${head}\n`
  for (const line of lines) {
    batch += `${line}\n`
    if (++count % BATCH !== 0) continue
    await put(batch)
    batch = ''
  }
  await put(batch)
  await file.write(`${JSON.stringify({ records: count, sha256: hash.digest('hex') })}\n`)
}

/** undefined: there is no file. Rejects with SnapshotError for one that is damaged, of another source, or older than `maxAge` ms. */
export async function readSnapshot(path: string, identity: string, now: number, maxAge: number): Promise<Snapshot | undefined> {
  const lines = createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })
  const hash = createHash('sha256')
  const records: ObjectPut[] = []
  let head: Head | undefined
  let last: string | undefined
  try {
    // One line behind, since the last one is the end.
    for await (const line of lines) {
      if (last !== undefined) {
        hash.update(`${last}\n`)
        if (head === undefined) head = checkHead(last, identity, now, maxAge)
        else records.push(JSON.parse(last) as ObjectPut)
      }
      last = line
    }
    if (head === undefined) throw new SnapshotError('damaged: it has no end')
    checkEnd(last ?? '', records.length, hash.digest('hex'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error instanceof SnapshotError ? error : new SnapshotError(`damaged: ${(error as Error).message}`, { cause: error })
  } finally {
    lines.close()
  }
  return { savedAt: head.savedAt, state: head.state, records }
}

function checkHead(text: string, identity: string, now: number, maxAge: number): Head {
  const head = JSON.parse(text) as Partial<Head> | null
  if (head?.format !== FORMAT) throw new SnapshotError('of another format')
  if (typeof head.savedAt !== 'number' || head.state?.op !== 'state') throw new SnapshotError('damaged: no head')
  if (head.identity !== identity) throw new SnapshotError('of another cluster, or of other selectors')
  if (now - head.savedAt > maxAge) throw new SnapshotError(`too old: saved ${new Date(head.savedAt).toISOString()}`)
  return head as Head
}

function checkEnd(text: string, records: number, sha256: string): void {
  const end = JSON.parse(text) as { records?: unknown; sha256?: unknown } | null
  if (end?.records !== records || end.sha256 !== sha256) throw new SnapshotError('damaged: its contents are not those that were written')
}
