/** `tls { acme … }`: the options are checked as CoreDNS checks them, so that a mistake is found; certificates by ACME are not built yet. */
import { isIP } from 'node:net'
import { Name } from '../../dns/index.js'
import { type Argument, type Directive, quote, type SetupContext, splitHostPort, wrongCount } from '../contract.js'

const OPTIONS = ['acme', 'email', 'ca', 'storage', 'ca_root', 'resolver']

export function checkAcme(use: Directive, ctx: SetupContext): never {
  const seen = new Set<string>()
  for (const option of use.block ?? []) {
    if (seen.has(option.name)) throw ctx.error(`ACME option ${quote(option.name)} can only be specified once`, option)
    seen.add(option.name)
    if (!OPTIONS.includes(option.name)) throw ctx.error(`unknown ACME option ${quote(option.name)}`, option, OPTIONS)
    if (option.args.length === 0 || (option.name !== 'acme' && option.args.length > 1))
      throw ctx.error(wrongCount(option), option.args.at(-1) ?? option)
  }
  const args = (name: string): readonly Argument[] => use.block?.find((option) => option.name === name)?.args ?? []
  const domains = args('acme')
  if (domains.length === 0) throw ctx.fail('ACME requires at least one domain', use)
  for (const domain of domains) checkDomain(domain, ctx)
  for (const url of args('ca')) checkUrl(url, ctx)
  for (const resolver of args('resolver')) checkResolver(resolver, ctx)
  throw ctx.error('certificates by ACME are known, but not built yet', use)
}

function checkDomain(domain: Argument, ctx: SetupContext): void {
  const bare = domain.text.toLowerCase().replace(/\.$/, '').replace(/^\*\./, '')
  if (bare === '' || bare.includes('*') || isIP(bare) !== 0 || Name.tryParse(bare) === undefined)
    throw ctx.fail(`invalid ACME domain ${quote(domain.text)}`, domain)
}

function checkUrl(url: Argument, ctx: SetupContext): void {
  const parsed = URL.canParse(url.text) ? new URL(url.text) : undefined
  if (parsed === undefined || !['http:', 'https:'].includes(parsed.protocol) || parsed.host === '')
    throw ctx.fail(`invalid ACME CA URL ${quote(url.text)}`, url)
}

function checkResolver(resolver: Argument, ctx: SetupContext): void {
  let address: { host: string; port: string }
  try {
    address = splitHostPort(resolver.text)
  } catch (error) {
    throw ctx.fail(`invalid ACME resolver ${quote(resolver.text)}: ${(error as Error).message}`, resolver)
  }
  if (address.host === '') throw ctx.fail(`invalid ACME resolver ${quote(resolver.text)}: host is empty`, resolver)
  const port = /^\d+$/.test(address.port) ? Number(address.port) : 0
  if (port < 1 || port > 65_535) throw ctx.fail(`invalid ACME resolver port ${quote(address.port)}`, resolver)
}
