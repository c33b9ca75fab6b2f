/** Which of the programs are installed. */
import { accessSync, constants } from 'node:fs'
import path from 'node:path'

/** Full path of a program; servers are often in folders that a user's PATH leaves out. */
export function find(name: string): string | undefined {
  for (const folder of [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/usr/local/sbin', '/sbin']) {
    const file = path.join(folder, name)
    try {
      accessSync(file, constants.X_OK)
      return file
    } catch {
      // Not here.
    }
  }
  return undefined
}
