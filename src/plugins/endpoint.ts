/** Arguments of the plugins that open an HTTP endpoint. */
import { splitHostPort } from '../corefile/args.js'
import type { ControlContext, Directive, SetupContext } from './contract.js'
import { wrongCount } from './words.js'

/** `DIRECTIVE [ADDRESS]`: the address, "host:port" with a host that may be empty. */
export function endpointAddress(use: Directive, ctx: SetupContext | ControlContext, standard: string): string {
  const address = use.args[0]
  if (address === undefined) return standard
  if (use.args.length > 1) throw ctx.error(wrongCount(use), use.args.at(-1))
  try {
    const { port } = splitHostPort(address.text)
    // An empty port is one that the system picks, as Go's net.Listen takes it.
    if (!/^\d{0,5}$/.test(port) || Number(port) > 65_535) throw new Error(`listen tcp: address ${port}: invalid port`)
  } catch (error) {
    throw ctx.fail((error as Error).message, address)
  }
  return address.text
}
