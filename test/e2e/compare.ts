/** CoreDNS beside ours: the same answers, once both are quiet. */
import { until } from '../support/process.js'
import type { World } from './world.js'

export type Question = readonly [name: string, type: string]

/** Both answer all of these alike within some seconds; fails with the differences. Does nothing without CoreDNS. */
export async function alike({ ours, theirs }: Pick<World, 'ours' | 'theirs'>, questions: readonly Question[]): Promise<void> {
  if (theirs === undefined) return
  let differences: string[] = []
  await until(
    async () => {
      differences = []
      for (const [name, type] of questions) {
        const [mine, other] = [await ours.answers(name, type), await theirs.answers(name, type)]
        if (mine.join() !== other.join()) differences.push(`${name} ${type}: ours ${mine.join('; ')} | CoreDNS ${other.join('; ')}`)
      }
      return differences.length === 0
    },
    20_000,
    () => `different from CoreDNS:\n${differences.join('\n')}`,
  )
}
