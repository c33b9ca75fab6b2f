/** `cache`: keeps replies of the plugins behind it and answers from them. */
import type { Directive, Plugin, PluginModule, SetupContext } from '../../src/plugins/contract.js'
import { Cache } from './handler.js'
import { countersOf } from './metrics.js'
import { type CacheOptions, parseOptions } from './options.js'
import { Store } from './store.js'

const module: PluginModule = {
  name: 'cache',
  apiVersion: 1,
  setup(uses: readonly Directive[], ctx: SetupContext): Plugin {
    const options = parseOptions(uses, ctx)
    const family = countersOf(ctx.metrics)
    const label = options.zones.join(',')
    return new Cache(options, {
      clock: ctx.clock,
      log: ctx.log,
      open: () =>
        ctx.shared(
          keyOf(options, ctx),
          () => storeFor(options, ctx),
          (store) => store.clear(),
        ),
      counters: (server) => family(server, label, ctx.block.viewName),
    })
  },
}
export default module

/** The capacity is that of the whole server; every serving thread has its share. */
function storeFor(options: CacheOptions, ctx: SetupContext): Store {
  const share = (capacity: number): number => Math.ceil(capacity / ctx.thread.count)
  return new Store({
    success: share(options.success.capacity),
    denial: share(options.denial.capacity),
    staleUpTo: options.staleUpTo,
    now: () => ctx.clock.monotonic(),
  })
}

/** Contents outlive a reload where neither the block's address and zones, the options, nor the number of threads that share the capacity have changed. */
function keyOf(options: CacheOptions, ctx: SetupContext): string {
  const { keys, bind, viewName } = ctx.block
  return `cache ${JSON.stringify([keys.map((key) => [key.transport, key.zone, key.port]), bind ?? [], viewName, options, ctx.thread.count])}`
}
