/** Looks up host names among TO addresses, once, before the generation serves. */
import { quote } from '../../src/plugins/contract.js'
import { type HostTarget, type Target, target } from './targets.js'

const TIMEOUT_MS = 2000

/** All addresses of the host, IPv4 first where resolvers are named. Throws in CoreDNS's words. */
export async function lookUp(host: HostTarget, resolvers: readonly string[]): Promise<Target[]> {
  let addresses: string[]
  try {
    addresses = resolvers.length === 0 ? await bySystem(host.hostName) : await byResolvers(host.hostName, resolvers)
  } catch (error) {
    throw new Error(`failed to resolve ${quote(host.hostName)}: ${(error as Error).message}`)
  }
  return addresses.map((address) => target(host.transport, address, host.port, host.serverName))
}

async function bySystem(name: string): Promise<string[]> {
  // Loaded when a TO is a name, which is rare.
  const { lookup } = await import('node:dns/promises')
  const found = await lookup(name, { all: true, verbatim: true })
  return found.map(({ address }) => address)
}

/** Each resolver in turn, until one has addresses. */
async function byResolvers(name: string, resolvers: readonly string[]): Promise<string[]> {
  const { Resolver } = await import('node:dns/promises')
  let last: unknown
  for (const server of resolvers) {
    const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: 1 })
    resolver.setServers([server])
    const results = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const addresses = results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
    if (addresses.length > 0) return addresses
    last = results.find((result) => result.status === 'rejected')?.reason
  }
  throw new Error(`no addresses found for ${quote(name)}${last instanceof Error ? `: ${last.message}` : ''}`)
}
