/** `multisocket`: how many serving threads there are, each with sockets of its own on every address. */
import { type Directive, type PluginModule, parseInteger, type SetupContext, wrongCount } from '../contract.js'
import { availableCpus } from './cpus.js'

/** CoreDNS's limit. */
const MAX_SOCKETS = 1024
/** There a socket costs next to nothing, here a thread some 10 MB: a number that was meant well must not take the node's memory. */
const THREADS_PER_CPU = 8

const module: PluginModule = {
  name: 'multisocket',
  apiVersion: 1,
  setup(uses, ctx) {
    ctx.block.sockets = threadsFor(socketsOf(uses, ctx), availableCpus(), ctx)
    return null
  },
}
export default module

function socketsOf([use, second]: readonly Directive[], ctx: SetupContext): number | undefined {
  const [count, more] = use?.args ?? []
  if (use === undefined) return undefined
  if (more !== undefined) throw ctx.error(wrongCount(use), more)
  if (use.block !== undefined) throw ctx.error("Unexpected token '{', expecting argument", use)
  if (second !== undefined) throw ctx.error(wrongCount({ ...second, args: [] }), second)
  if (count === undefined) return undefined
  let sockets: number
  try {
    sockets = parseInteger(count.text)
  } catch (error) {
    throw ctx.fail(`invalid num sockets: ${(error as Error).message}`, count)
  }
  if (sockets < 1) throw ctx.fail(`num sockets can not be zero or negative: ${sockets}`, count)
  if (sockets > MAX_SOCKETS) throw ctx.fail(`num sockets exceeds maximum (${MAX_SOCKETS}): ${sockets}`, count)
  return sockets
}

/** undefined: one per CPU. */
function threadsFor(sockets: number | undefined, cpus: number, ctx: SetupContext): number {
  if (sockets === undefined) return cpus
  const threads = Math.min(sockets, THREADS_PER_CPU * cpus)
  // The machine that checks is not the one that serves.
  if (!ctx.checking && sockets > cpus) {
    const cut = threads < sockets ? `${threads} are started` : 'more than one per CPU gains nothing'
    ctx.warn(`${sockets} serving threads for ${cpus === 1 ? 'one CPU' : `${cpus} CPUs`}: ${cut}`)
  }
  return threads
}
