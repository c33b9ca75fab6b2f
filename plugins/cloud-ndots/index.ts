/** `cloud_ndots`: answers search-expanded external names in one round trip. */
import type { PluginModule } from '../../src/plugins/contract.js'
import { CloudNdots } from './handler.js'
import { readOptions } from './options.js'

const module: PluginModule = {
  name: 'cloud_ndots',
  apiVersion: 1,
  setup: (uses, ctx) => new CloudNdots(readOptions(uses, ctx), ctx),
}
export default module
