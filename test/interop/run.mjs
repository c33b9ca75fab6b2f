/**
 * `npm run test:interop`: `forward` and `cache` in front of DNS servers that others wrote: BIND 9, Knot DNS, NSD, Unbound, Knot Resolver and
 * dnsmasq, as far as they are installed (Debian: apt-get install bind9 knot nsd unbound knot-resolver dnsmasq-base). Their system services are
 * not used: each is started on loopback with a configuration of its own. COREDNS names a CoreDNS binary to be compared with as well.
 * Without an authoritative server (BIND, Knot DNS or NSD) the suite is skipped, which is said and is no failure.
 */
import { spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '..', '..')
const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/usr/local/sbin', '/sbin']
const isHere = (program) =>
  folders.some((folder) => {
    try {
      accessSync(path.join(folder, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
const PROGRAMS = { bind: 'named', knot: 'knotd', nsd: 'nsd', unbound: 'unbound', kresd: 'kresd', dnsmasq: 'dnsmasq' }
const VERSION = { named: '-v', knotd: '-V', nsd: '-v', unbound: '-V', kresd: '--version', dnsmasq: '--version' }
const found = Object.entries(PROGRAMS).filter(([, program]) => isHere(program))
const missing = Object.keys(PROGRAMS).filter((name) => !found.some(([other]) => other === name))

const line = '*'.repeat(100)
if (!found.some(([name]) => ['bind', 'knot', 'nsd'].includes(name))) {
  console.log(`${line}
INTEROPERABILITY TESTS SKIPPED: no authoritative DNS server found. One of BIND (named), Knot DNS (knotd) and NSD (nsd) is needed.
Not found: ${missing.join(', ')}
${line}`)
  process.exit(0)
}
for (const [name, program] of found) {
  const env = { ...process.env, PATH: folders.join(':') }
  const { stdout, stderr } = spawnSync(program, [VERSION[program]], { env, encoding: 'utf8' })
  console.log(`found ${name}: ${`${stdout}${stderr}`.split('\n')[0]}`)
}
if (missing.length > 0) console.log(`${line}\nSKIPPED, not installed: ${missing.join(', ')}\n${line}`)
if (!isHere('dnssec-signzone')) console.log(`${line}\nThe zone is NOT SIGNED: dnssec-signzone (bind9-utils) is not installed\n${line}`)
console.log(process.env.COREDNS ? `found CoreDNS: ${process.env.COREDNS}` : 'SKIPPED, COREDNS is not set: comparison with CoreDNS')

const npx = (...args) => spawnSync('npx', args, { cwd: root, stdio: 'inherit' }).status ?? 1
process.exit(
  npx('tsc', '-p', 'tsconfig.build.json') || npx('vitest', 'run', '-c', 'test/interop/vitest.config.ts', ...process.argv.slice(2)),
)
