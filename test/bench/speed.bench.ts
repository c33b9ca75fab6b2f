/** `npm run bench`: processor time per query, throughput, latency and memory, beside other servers. docs/benchmark.md says how to read it. */
import { fieldOf } from './speed/field.js'
import { measure } from './speed/measure.js'
import { optionsOf } from './speed/options.js'

export default async function main(args: readonly string[]): Promise<void> {
  const options = optionsOf(args)
  const field = fieldOf(options)
  try {
    for (const name of field.skipped) console.log(`SKIPPED: ${name} is not found`)
    await measure(options, field.contestants, (text) => console.log(text))
  } finally {
    field.clear()
  }
}
