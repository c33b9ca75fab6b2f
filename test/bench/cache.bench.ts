/**
 * `npm run bench -- cache`: what a hit costs beside other servers, and what S3-FIFO keeps that random eviction (CoreDNS's way) loses. Options as
 * of the speed bench.
 */
import { Fifo, hitRate, RandomShards } from '../support/evictions.js'
import { randomFrom } from '../support/random.js'
import { runBench } from './speed/run.js'
import { aligned } from './speed/table.js'

const CAPACITIES = [1024, 2048, 9984, 30_208]
const FLOODS = [0, 0.5, 0.8]

export default async function main(args: readonly string[]): Promise<void> {
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`
  const rows = CAPACITIES.flatMap((capacity) =>
    FLOODS.map((flood) => [
      `${capacity} entries, ${flood * 100} % of questions for names never asked again`,
      percent(hitRate(new Fifo(capacity), flood, 600_000)),
      percent(hitRate(new RandomShards(capacity, randomFrom(3)), flood, 600_000)),
    ]),
  )
  console.log('hits among 100,000 names asked by Zipf’s law')
  for (const line of aligned([['', 'S3-FIFO', 'random'], ...rows])) console.log(line)
  await runBench('cache', args, ['hit'])
}
