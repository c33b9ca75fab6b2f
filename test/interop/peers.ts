/**
 * DNS servers of others, as upstreams. Each is started in the foreground with a configuration of its own, on loopback and high ports, out of
 * a temporary folder. The authoritative ones serve the zone from its file, the resolvers take it from one of those and know nothing else.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { Message } from '../../src/dns/index.js'
import { freePorts, until } from '../support/process.js'
import { ask, udp } from '../support/wire.js'
import { find } from './programs.js'
import { ORIGIN, type Zone } from './zone.js'

export type PeerName = 'bind' | 'knot' | 'nsd' | 'unbound' | 'kresd' | 'dnsmasq'

export interface Ports {
  readonly dns: number
  /** 0: the peer has no DNS over TLS, or over HTTPS. */
  readonly tls: number
  readonly https: number
}

interface Context {
  readonly folder: string
  readonly zone: Zone
  readonly ports: Ports
  /** PEM files. */
  readonly cert: string
  readonly key: string
  /** Port of an authoritative server on 127.0.0.1, for resolvers. */
  readonly authority: number
}

interface Kind {
  readonly program: string
  readonly version: readonly string[]
  readonly resolver: boolean
  readonly tls: boolean
  readonly https: boolean
  /** Writes the configuration and returns the arguments. */
  readonly configure: (context: Context) => readonly string[]
}

const write = (folder: string, name: string, text: string): string => {
  const file = path.join(folder, name)
  fs.writeFileSync(file, text)
  return file
}

const KINDS: Readonly<Record<PeerName, Kind>> = {
  bind: {
    program: 'named',
    version: ['-v'],
    resolver: false,
    tls: true,
    https: true,
    configure: ({ folder, zone, ports, cert, key }) => {
      const config = write(
        folder,
        'named.conf',
        `tls own { cert-file "${cert}"; key-file "${key}"; };
options {
  directory "${folder}"; pid-file none; session-keyfile "${folder}/session.key";
  listen-on port ${ports.dns} { 127.0.0.1; };
  listen-on port ${ports.tls} tls own { 127.0.0.1; };
  listen-on port ${ports.https} tls own http default { 127.0.0.1; };
  listen-on-v6 { none; };
  recursion no; notify no; dnssec-validation no; minimal-responses no; server-id "peer";
};
controls { };
zone "${ORIGIN}" { type primary; file "${zone.file}"; check-names ignore; check-integrity no; };
zone "broken.test." { type primary; file "${folder}/missing"; };
`,
      )
      return ['-g', '-n', '1', '-c', config]
    },
  },
  knot: {
    program: 'knotd',
    version: ['-V'],
    resolver: false,
    tls: false,
    https: false,
    configure: ({ folder, zone, ports }) => {
      const config = write(
        folder,
        'knot.conf',
        `server:
    rundir: ${folder}
    listen: 127.0.0.1@${ports.dns}
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
    nsid: peer
database:
    storage: ${folder}
zone:
  - domain: ${ORIGIN}
    file: ${zone.file}
    zonefile-sync: -1
    zonefile-load: whole
    semantic-checks: off
`,
      )
      return ['-c', config]
    },
  },
  nsd: {
    program: 'nsd',
    version: ['-v'],
    resolver: false,
    tls: true,
    https: false,
    configure: ({ folder, zone, ports, cert, key }) => {
      const config = write(
        folder,
        'nsd.conf',
        `server:
    ip-address: 127.0.0.1@${ports.dns}
    ip-address: 127.0.0.1@${ports.tls}
    tls-port: ${ports.tls}
    tls-service-key: "${key}"
    tls-service-pem: "${cert}"
    username: ""
    chroot: ""
    pidfile: "${folder}/nsd.pid"
    zonesdir: "${folder}"
    xfrdfile: "${folder}/xfrd.state"
    zonelistfile: "${folder}/zone.list"
    database: ""
    xfrdir: "${folder}"
    cookie-secret-file: ""
    server-count: 1
    nsid: "ascii_peer"
remote-control:
    control-enable: no
zone:
    name: ${ORIGIN}
    zonefile: ${zone.file}
`,
      )
      return ['-d', '-c', config]
    },
  },
  unbound: {
    program: 'unbound',
    version: ['-V'],
    resolver: true,
    tls: true,
    https: true,
    configure: ({ folder, zone, ports, cert, key, authority }) => {
      const config = write(
        folder,
        'unbound.conf',
        `server:
    directory: "${folder}"
    chroot: ""
    username: ""
    pidfile: "${folder}/unbound.pid"
    use-syslog: no
    logfile: ""
    num-threads: 1
    interface: 127.0.0.1@${ports.dns}
    interface: 127.0.0.1@${ports.tls}
    interface: 127.0.0.1@${ports.https}
    tls-port: ${ports.tls}
    https-port: ${ports.https}
    tls-service-key: "${key}"
    tls-service-pem: "${cert}"
    do-ip6: no
    do-not-query-localhost: no
    access-control: 127.0.0.0/8 allow
    local-zone: "test." nodefault
    rrset-roundrobin: no
    ${zone.signed ? `trust-anchor: "${zone.trustAnchor.replaceAll('"', '')}"` : 'module-config: "iterator"'}
    nsid: "ascii_peer"
    ede: yes
remote-control:
    control-enable: no
${[ORIGIN, 'other.test.', 'broken.test.'].map((name) => `stub-zone:\n    name: "${name}"\n    stub-addr: 127.0.0.1@${authority}\n`).join('')}`,
      )
      return ['-d', '-c', config]
    },
  },
  kresd: {
    program: 'kresd',
    version: ['--version'],
    resolver: true,
    tls: true,
    https: true,
    configure: ({ folder, zone, ports, cert, key, authority }) => {
      const config = write(
        folder,
        'kresd.conf',
        `net.listen('127.0.0.1', ${ports.dns}, { kind = 'dns' })
net.listen('127.0.0.1', ${ports.tls}, { kind = 'tls' })
net.listen('127.0.0.1', ${ports.https}, { kind = 'doh2' })
net.tls('${cert}', '${key}')
net.ipv6 = false
modules = { 'policy' }
modules.unload('ta_update')
modules.unload('ta_signal_query')
modules.unload('ta_sentinel')
modules.unload('priming')
modules.unload('detect_time_skew')
trust_anchors.remove('.')
${zone.signed ? `trust_anchors.add([[${zone.trustAnchor}]])` : ''}
cache.open(10 * MB, 'lmdb://${folder}/cache')
cache.min_ttl(1)
policy.add(policy.all(policy.FLAGS({ 'NO_0X20' })))
policy.add(policy.all(policy.STUB('127.0.0.1@${authority}')))
`,
      )
      return ['-n', '-c', config, folder]
    },
  },
  dnsmasq: {
    program: 'dnsmasq',
    version: ['--version'],
    resolver: true,
    tls: false,
    https: false,
    configure: ({ folder, ports, authority }) => {
      const config = write(
        folder,
        'dnsmasq.conf',
        `port=${ports.dns}
listen-address=127.0.0.1
bind-interfaces
no-resolv
no-hosts
no-dhcp-interface=lo
cache-size=0
pid-file=
user=${process.getuid?.() === 0 ? 'root' : ''}
group=
server=/${ORIGIN.slice(0, -1)}/127.0.0.1#${authority}
host-record=own.local.test,192.0.2.200,2001:db8::200,77
mx-host=own.local.test,own.local.test,10
txt-record=own.local.test,hello,world
srv-host=_http._tcp.local.test,own.local.test,80
caa-record=own.local.test,0,issue,ca.example
cname=alias.local.test,own.local.test
dns-rr=own.local.test,65280,0a0000ff
local=/local.test/
`,
      )
      return ['--keep-in-foreground', '-C', config, '--log-facility=-']
    },
  },
}

export const PEER_NAMES = Object.keys(KINDS) as readonly PeerName[]
export const isInstalled = (name: PeerName): boolean => find(KINDS[name].program) !== undefined

/** "BIND 9.18.49", as the program says it; undefined: not installed. */
export function versionOf(name: PeerName): string | undefined {
  const { program, version } = KINDS[name]
  const file = find(program)
  if (file === undefined) return undefined
  const text = execFileSync('sh', ['-c', '"$0" "$@" 2>&1 || true', file, ...version], { encoding: 'utf8' })
  return text.split('\n')[0]!.trim()
}

/** Processes that run now: they are in groups of their own, so an interrupt of the tests does not reach them. */
const running = new Set<number>()
process.on('exit', () => {
  for (const pid of running) {
    try {
      process.kill(-pid, 'SIGKILL')
    } catch {
      // Gone already.
    }
  }
})

export class Peer {
  readonly name: PeerName
  readonly resolver: boolean
  readonly ports: Ports
  readonly #file: string
  readonly #args: readonly string[]
  readonly #folder: string
  #child: ChildProcess | undefined
  #output = ''

  private constructor(name: PeerName, context: Context) {
    const kind = KINDS[name]
    this.name = name
    this.resolver = kind.resolver
    this.ports = context.ports
    this.#folder = context.folder
    this.#file = find(kind.program)!
    this.#args = kind.configure(context)
  }

  static async start(name: PeerName, context: Omit<Context, 'ports' | 'folder'> & { readonly folder: string }): Promise<Peer> {
    const { tls, https } = KINDS[name]
    const [dns, two, three] = await freePorts(3)
    const folder = fs.mkdtempSync(path.join(context.folder, `${name}-`))
    const peer = new Peer(name, { ...context, folder, ports: { dns: dns!, tls: tls ? two! : 0, https: https ? three! : 0 } })
    try {
      await peer.up()
    } catch (error) {
      await peer.stop()
      throw error
    }
    return peer
  }

  get address(): string {
    return `127.0.0.1:${this.ports.dns}`
  }

  /** The last that it said. */
  get output(): string {
    return this.#output.slice(-2000)
  }

  /** Starts it (again) and waits until it answers. */
  async up(): Promise<void> {
    this.#spawn()
    const name = this.name === 'dnsmasq' ? 'own.local.test.' : ORIGIN
    let tries = 0
    await until(
      async () => {
        if (this.#child === undefined) {
          // Sockets of the process before may linger for a moment.
          if (++tries > 20 || !/in use/i.test(this.output)) throw new Error(`${this.name} ended:\n${this.output}`)
          this.#spawn()
        }
        const reply = await udp(this.ports.dns, ask(name, this.name === 'dnsmasq' ? 'A' : 'SOA'), '127.0.0.1', 250)
        return reply !== undefined && Message.view(reply).rcode === 0
      },
      15_000,
      () => `${this.name} does not answer:\n${this.output}`,
    )
  }

  #spawn(): void {
    const child = spawn(this.#file, [...this.#args], { cwd: this.#folder, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    this.#child = child
    this.#output = ''
    child.stdout.on('data', (chunk: Buffer) => (this.#output += chunk))
    child.stderr.on('data', (chunk: Buffer) => (this.#output += chunk))
    running.add(child.pid!)
    child.once('exit', () => {
      running.delete(child.pid!)
      if (this.#child === child) this.#child = undefined
    })
  }

  /** Ends it at once, as a crash would. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#child
    if (child === undefined) return
    const gone = new Promise((resolve) => child.once('exit', resolve))
    // With the processes that it forked: dnsmasq has one for each TCP connection, which would hold the port.
    process.kill(-child.pid!, signal)
    await gone
  }

  /** Packets are taken but not answered. */
  freeze(): void {
    this.#child?.kill('SIGSTOP')
  }

  thaw(): void {
    this.#child?.kill('SIGCONT')
  }

  async stop(): Promise<void> {
    const child = this.#child
    if (child === undefined) return
    this.thaw()
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    const patience = setTimeout(() => child.kill('SIGKILL'), 3000)
    child.kill('SIGTERM')
    await gone
    clearTimeout(patience)
  }
}
