/** `npm run bench`: processor time per query, throughput, latency and memory, beside other servers. docs/benchmark.md says how to read it. */
import { runBench } from './speed/run.js'

export default async function main(args: readonly string[]): Promise<void> {
  await runBench('speed', args)
}
