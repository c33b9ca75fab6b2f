/** For tests of plugins/forward: `forward` lines out of Corefile text, linked and started, with everything closed again at the end. */

import type { Forward } from '../../plugins/forward/forward.js'
import module from '../../plugins/forward/index.js'
import { parseCorefile } from '../../src/corefile/index.js'
import type { Message } from '../../src/dns/index.js'
import type { Directive, Handler, Plugin, Query, Reply } from '../../src/plugins/contract.js'
import { ServeError } from '../../src/plugins/contract.js'
import { type FakeContext, fakeContext } from '../../src/plugins/testing.js'
import { connectDgram } from '../../src/server/listeners/dgram-client.js'

export const uses = (text: string): readonly Directive[] =>
  parseCorefile(`. {\n${text}\n}\n`, 'Corefile').blocks[0]!.directives.filter((directive) => directive.name === 'forward')

export interface Started {
  readonly plugins: readonly Forward[]
  readonly context: FakeContext
  /** Asks the chain; a failure is thrown. What no forward takes ends in the error "no next plugin found". */
  ask(query: Query): Promise<Message>
  stop(): void
}

export async function start(text: string, over: Parameters<typeof fakeContext>[1] = {}): Promise<Started> {
  const disposers: (() => void)[] = []
  const kept = new Map<string, unknown>()
  const shared = <T>(key: string, create: () => T, dispose: (value: T) => void): T => {
    if (!kept.has(key)) {
      const value = create()
      kept.set(key, value)
      disposers.push(() => dispose(value))
    }
    return kept.get(key) as T
  }
  const context = fakeContext('forward', { shared, connectDatagram: connectDgram, ...over })
  const plugins = module.setup(uses(text), context) as Forward[]
  for (const plugin of plugins) await plugin.onStartup()
  const end: Handler = () => {
    throw new ServeError('no next plugin found')
  }
  const chain = plugins.reduceRight<Handler>((next, plugin: Plugin) => (query: Query) => plugin.serveDNS!(query, next), end)
  return {
    plugins,
    context,
    ask: async (query) => (await (chain(query) as Reply | Promise<Reply>)) as Message,
    stop: () => {
      for (const dispose of disposers) dispose()
    },
  }
}
