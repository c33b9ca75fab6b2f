/** The servers that can be measured: how each is started, and the configuration that makes it answer the same. */
import { CA } from '../../fakes/certificate.js'
import { clusterAddress, headlessAddress, headlessName, namespaceName, serviceName } from '../cluster.js'
import { find, versionOf } from './machine.js'
import { CLUSTER_SIZE, HEADLESS, HEADLESS_ENDPOINTS, WORKLOADS, type Workload } from './questions.js'

/** What a configuration is for: the whole of a cluster's DNS, the same with cloud_ndots, or nothing but forwarding, over UDP (with all that a cluster's has beside, too), TCP or TLS. */
export type Role = 'cluster' | 'ndots' | 'forwarder' | 'forwarder-cached' | 'forwarder-tcp' | 'forwarder-tls'

const ROLES: Partial<Record<Workload, Role>> = {
  miss: 'forwarder',
  'miss-tcp': 'forwarder-tcp',
  'miss-tls': 'forwarder-tls',
  ndots: 'ndots',
}

export const roleOf = (workload: Workload): Role => ROLES[workload] ?? 'cluster'
export const isForwarder = (role: Role): boolean => role.startsWith('forwarder')

export interface Place {
  readonly role: Role
  readonly port: number
  /** Further free ports for HTTP. */
  readonly spare: readonly number[]
  readonly upstream: number
  /** URL of the API server; undefined for a forwarder. By "https": found as a pod finds it, with a service account in `folder`. */
  readonly api: string | undefined
  readonly folder: string
  readonly ipv6: boolean
}

export interface Kind {
  readonly name: string
  /** Where the program is when nothing is said. */
  readonly program: string
  readonly versionFlag: string
  readonly workloads: readonly Workload[]
  /** Name and content. */
  files(place: Place): Readonly<Record<string, string>>
  args(place: Place): readonly string[]
  env?(place: Place): Readonly<Record<string, string>>
}

const CLUSTER: readonly Workload[] = ['cluster', 'headless', 'nxdomain']
const FORWARDING: readonly Workload[] = [...CLUSTER, 'hit', 'miss', 'mix']
const STREAMS: readonly Workload[] = ['miss-tcp', 'miss-tls']

const loopback = ({ ipv6 }: Place): string[] => ['127.0.0.1', ...(ipv6 ? ['::1'] : [])]

/** The usual Corefile of a cluster, or the least that forwards and is watched. */
export function corefile(place: Place): string {
  const { role, port, spare } = place
  const plain = isForwarder(role) && role !== 'forwarder-cached'
  const body = [
    ...(plain ? [] : [`health 127.0.0.1:${spare[1]}`, `ready 127.0.0.1:${spare[2]}`]),
    ...(isForwarder(role) ? [] : [kubernetesBlock(place)]),
    `prometheus 127.0.0.1:${spare[0]}`,
    ...(role === 'ndots' ? [`cloud_ndots {\n        domains example\n    }`] : []),
    forwardLine(place),
    ...(plain ? [] : ['cache 30', 'loop', 'reload', 'loadbalance']),
  ]
  return `.:${port} {\n    bind ${loopback(place).join(' ')}\n    errors\n${body.map((line) => `    ${line}\n`).join('')}}\n`
}

function kubernetesBlock({ api }: Place): string {
  const endpoint = isInCluster(api) ? '' : `        endpoint ${api}\n`
  return `kubernetes cluster.local in-addr.arpa ip6.arpa {\n${endpoint}        pods insecure\n        fallthrough in-addr.arpa ip6.arpa\n        ttl 30\n    }`
}

const isInCluster = (api: string | undefined): boolean => api?.startsWith('https:') ?? false

function podEnv({ api, folder }: Place): Record<string, string> {
  if (!isInCluster(api)) return {}
  const { hostname, port } = new URL(api!)
  return { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port, CAIRNDNS_SERVICE_ACCOUNT: folder }
}

function forwardLine({ role, upstream, folder }: Place): string {
  if (role === 'forwarder-tcp') return `forward . 127.0.0.1:${upstream} {\n        force_tcp\n    }`
  if (role !== 'forwarder-tls') return `forward . 127.0.0.1:${upstream}`
  return `forward . tls://127.0.0.1:${upstream} {\n        tls ${folder}/ca.pem\n        tls_servername dns.example\n    }`
}

const corefileArgs = ({ folder }: Place): string[] => ['-conf', `${folder}/Corefile`]

/** Owner and address of all that the cluster has. */
function* hosts(): Generator<readonly [string, string]> {
  for (let i = 0; i < CLUSTER_SIZE; i++) yield [`${serviceName(i)}.${namespaceName(i)}.svc.cluster.local`, clusterAddress(i)]
  for (let i = 0; i < HEADLESS; i++)
    for (let k = 0; k < HEADLESS_ENDPOINTS; k++)
      yield [`${headlessName(0, i)}.${namespaceName(i)}.svc.cluster.local`, headlessAddress(0, i, k)]
}

const SOA = 'ns.dns.cluster.local. hostmaster.cluster.local. 1 7200 1800 86400 30'

const zoneFile = (): string => {
  const lines = ['$ORIGIN .', '$TTL 30', `cluster.local 30 IN SOA ${SOA}`, 'cluster.local 30 IN NS ns.dns.cluster.local.']
  lines.push('ns.dns.cluster.local 30 IN A 127.0.0.1')
  for (const [name, address] of hosts()) lines.push(`${name} 30 IN A ${address}`)
  return `${lines.join('\n')}\n`
}

export const OURS: Kind = {
  name: 'CairnDNS',
  program: process.execPath,
  versionFlag: '-v',
  workloads: [...WORKLOADS, ...STREAMS],
  files: (place) => ({ Corefile: corefile(place), 'ca.pem': CA, 'ca.crt': CA, token: 'a token' }),
  args: corefileArgs,
  env: podEnv,
}

export const PEERS: readonly Kind[] = [
  {
    name: 'CoreDNS',
    program: 'coredns',
    versionFlag: '-version',
    workloads: [...FORWARDING, ...STREAMS],
    files: (place) => ({ Corefile: corefile(place), 'ca.pem': CA }),
    args: corefileArgs,
  },
  {
    name: 'Unbound',
    program: 'unbound',
    versionFlag: '-V',
    workloads: [...FORWARDING, ...STREAMS],
    files: (place) => ({ 'unbound.conf': unbound(place), 'ca.pem': CA }),
    args: ({ folder }) => ['-d', '-c', `${folder}/unbound.conf`],
  },
  {
    name: 'Knot',
    program: 'knotd',
    versionFlag: '--version',
    workloads: CLUSTER,
    files: (place) => ({ 'knot.conf': knot(place), 'cluster.local': zoneFile() }),
    args: ({ folder }) => ['-c', `${folder}/knot.conf`],
  },
  {
    name: 'NSD',
    program: 'nsd',
    versionFlag: '-v',
    workloads: CLUSTER,
    files: (place) => ({ 'nsd.conf': nsd(place), 'cluster.local': zoneFile() }),
    args: ({ folder }) => ['-d', '-c', `${folder}/nsd.conf`],
  },
  {
    name: 'dnsmasq',
    program: 'dnsmasq',
    versionFlag: '--version',
    workloads: FORWARDING,
    files: (place) => ({ 'dnsmasq.conf': dnsmasq(place), hosts: [...hosts()].map(([name, address]) => `${address} ${name}\n`).join('') }),
    args: ({ folder }) => ['-k', '-C', `${folder}/dnsmasq.conf`],
  },
]

function unbound(place: Place): string {
  const { port, upstream, folder, role } = place
  const names = isForwarder(role) ? '' : [...hosts()].map(([name, address]) => `  local-data: "${name}. 30 IN A ${address}"\n`).join('')
  const zone = isForwarder(role) ? '' : `  local-zone: "cluster.local." static\n  local-data: "cluster.local. 30 IN SOA ${SOA}"\n${names}`
  return `server:
  directory: "${folder}"
  chroot: ""
  username: ""
  pidfile: "${folder}/pid"
  use-syslog: no
  logfile: ""
  verbosity: 0
${loopback(place)
  .map((address) => `  interface: ${address}\n`)
  .join('')}  port: ${port}
  num-threads: 1
  so-rcvbuf: 4m
  do-not-query-localhost: no
  module-config: "iterator"
  tls-cert-bundle: "${folder}/ca.pem"
${zone}forward-zone:
  name: "."
  forward-addr: 127.0.0.1@${upstream}${role === 'forwarder-tls' ? '#dns.example' : ''}
  forward-tcp-upstream: ${role === 'forwarder-tcp' ? 'yes' : 'no'}
  forward-tls-upstream: ${role === 'forwarder-tls' ? 'yes' : 'no'}
remote-control:
  control-enable: no
`
}

const knot = (place: Place): string => `server:
    rundir: "${place.folder}"
    listen: [ ${loopback(place)
      .map((address) => `${address}@${place.port}`)
      .join(', ')} ]
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
log:
  - target: stderr
    any: error
database:
    storage: "${place.folder}"
zone:
  - domain: cluster.local
    storage: "${place.folder}"
    file: "cluster.local"
    zonefile-sync: -1
    journal-content: none
`

const nsd = (place: Place): string => `server:
  server-count: 1
${loopback(place)
  .map((address) => `  ip-address: ${address}@${place.port}\n`)
  .join('')}  username: ""
  database: ""
  zonesdir: "${place.folder}"
  pidfile: "${place.folder}/pid"
  xfrdfile: "${place.folder}/xfrd"
  xfrdir: "${place.folder}"
  zonelistfile: "${place.folder}/zones"
  minimal-responses: yes
  rrl-ratelimit: 0
  rrl-whitelist-ratelimit: 0
remote-control:
  control-enable: no
zone:
  name: cluster.local
  zonefile: "${place.folder}/cluster.local"
`

const dnsmasq = (place: Place): string => `port=${place.port}
${loopback(place)
  .map((address) => `listen-address=${address}\n`)
  .join('')}bind-interfaces
no-resolv
no-hosts
no-poll
user=root
pid-file=${place.folder}/pid
local-ttl=30
neg-ttl=30
cache-size=${place.role === 'forwarder' ? 0 : 10_000}
dns-forward-max=10000
server=127.0.0.1#${place.upstream}
local=/cluster.local/
${place.role === 'forwarder' ? '' : `addn-hosts=${place.folder}/hosts\n`}`

/** Where a peer's program is: an environment variable of its name in capitals, or the PATH. */
export const locate = (kind: Kind): string | undefined => process.env[kind.name.toUpperCase()] ?? find(kind.program)

export const version = (kind: Kind, command: string): string => versionOf(command, kind.versionFlag)
