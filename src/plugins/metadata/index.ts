/** `metadata`: lets the other plugins of the block say what they know of a query before it goes down the chain. */
import { Name } from '../../dns/index.js'
import { type Plugin, type PluginModule, type Query, type SetupContext, wrongCount, zonesOrDefault } from '../contract.js'

const module: PluginModule = {
  name: 'metadata',
  apiVersion: 1,
  setup(uses, ctx) {
    const use = uses[0]
    if (uses[1] !== undefined) throw ctx.error(wrongCount(uses[1]), uses[1])
    for (const option of use?.block ?? []) throw ctx.error(wrongCount(option), option)
    const args = use?.args.map(({ text }) => text) ?? []
    const zones = zonesOrDefault(args, ctx.block.zones, (arg, error) => ctx.warn(`'${arg}' is no zone: ${error.message}`, use))
    return new Metadata(
      zones.map((zone) => Name.parse(zone)),
      ctx,
    )
  },
}
export default module

class Metadata implements Plugin {
  readonly name = 'metadata'
  readonly #zones: readonly Name[]
  readonly #ctx: SetupContext
  #providers: readonly Plugin[] = []

  constructor(zones: readonly Name[], ctx: SetupContext) {
    this.#zones = zones
    this.#ctx = ctx
  }

  onStartup(): void {
    this.#providers = this.#ctx.chain.filter((plugin) => plugin !== this && plugin.metadata !== undefined)
  }

  /** The server calls this one alone, ahead of the views' filters; it asks the others. */
  metadata(query: Query): void {
    query.metadata ??= new Map()
    if (!this.#zones.some((zone) => query.name.isUnder(zone))) return
    for (const provider of this.#providers) provider.metadata?.(query)
  }
}
