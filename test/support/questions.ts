/** Queries for a comparison of two servers: all names that a cluster has, their neighbours and mutations, in all shapes, from one seed. */
import { type EdnsOption, Message, Name, OPTION, typeNumber } from '../../src/dns/index.js'
import type { KubeObject } from '../fakes/kube-api.js'

export interface TestQuery {
  readonly text: string
  readonly octets: Buffer
  readonly name: string
  readonly type: string
  readonly proto: 'udp' | 'tcp'
  /** Octets that the reply may have. */
  readonly limit: number
}

const TYPES = [
  'A',
  'A',
  'A',
  'AAAA',
  'AAAA',
  'SRV',
  'SRV',
  'PTR',
  'TXT',
  'NS',
  'SOA',
  'MX',
  'CNAME',
  'ANY',
  'HTTPS',
  'SVCB',
  'DS',
  'DNSKEY',
  'CAA',
  'NAPTR',
  'TLSA',
  'TYPE65280',
  'NULL',
]
const OTHERS = ['', 'one', 'two', 'nx', 'fail', 'refused', 'alias', 'many', 'deep.er'].flatMap((label) =>
  ['up.test.', 'cached.test.', 'hosts.test.', 'who.test.'].map((zone) => (label === '' ? zone : `${label}.${zone}`)),
)
const OPTIONS: readonly EdnsOption[] = [
  { code: OPTION.NSID, data: Buffer.alloc(0) },
  { code: OPTION.COOKIE, data: Buffer.from('0011223344556677', 'hex') },
  { code: OPTION.PADDING, data: Buffer.alloc(7) },
  { code: OPTION.EXPIRE, data: Buffer.alloc(0) },
  { code: OPTION.ECS, data: Buffer.from('000118007f0000', 'hex') },
  { code: 65_001, data: Buffer.from('abcd', 'hex') },
]

interface Spec {
  readonly clusterIPs?: readonly string[]
  readonly clusterIP?: string
  readonly ports?: readonly { name?: string; protocol?: string }[]
}
interface Endpoint {
  readonly addresses: readonly string[]
  readonly hostname?: string
}

const dashed = (address: string): string => address.replaceAll(/[.:]/g, '-')

function reverse(address: string): string {
  if (!address.includes(':')) return `${address.split('.').reverse().join('.')}.in-addr.arpa.`
  const [head = '', tail = ''] = address.split('::')
  const groups = (text: string): string[] => text.split(':').filter(Boolean)
  const filled = [...groups(head), ...Array.from({ length: 8 - groups(head).length - groups(tail).length }, () => '0'), ...groups(tail)]
  const digits = filled.map((group) => group.padStart(4, '0')).join('')
  return `${[...digits].reverse().join('.')}.ip6.arpa.`
}

const addressesOf = (spec: Spec | undefined): readonly string[] =>
  (spec?.clusterIPs ?? [spec?.clusterIP ?? '']).filter((address) => /[.:]/.test(address))

/** All names that the objects have in `zone`, and the nodes above them. */
export function clusterNames(objects: readonly KubeObject[], zone: string): string[] {
  const names = new Set([
    zone,
    `svc.${zone}`,
    `pod.${zone}`,
    `ns.dns.${zone}`,
    `dns.${zone}`,
    `dns-version.${zone}`,
    'in-addr.arpa.',
    'ip6.arpa.',
  ])
  for (const { kind, metadata, ...rest } of objects) {
    const { spec, endpoints = [], ports = [] } = rest as { spec?: Spec; endpoints?: readonly Endpoint[]; ports?: Spec['ports'] }
    if (kind === 'Namespace') for (const part of ['svc', 'pod']) names.add(`${metadata.name}.${part}.${zone}`)
    const service = kind === 'Service' ? metadata.name : metadata.labels?.['kubernetes.io/service-name']
    if (service === undefined || (kind !== 'Service' && kind !== 'EndpointSlice')) continue
    const base = `${service}.${metadata.namespace}.svc.${zone}`
    const above = (name: string): void => {
      names.add(name)
      for (const { name: port = '', protocol = 'TCP' } of spec?.ports ?? ports ?? []) {
        names.add(`_${protocol.toLowerCase()}.${name}`).add(`_${port}._${protocol.toLowerCase()}.${name}`)
      }
    }
    above(base)
    for (const address of addressesOf(spec)) names.add(reverse(address))
    for (const { addresses, hostname } of endpoints) {
      for (const address of addresses) {
        above(`${hostname ?? dashed(address)}.${base}`)
        names
          .add(reverse(address))
          .add(`${dashed(address)}.${metadata.namespace}.pod.${zone}`)
          .add(`${dashed(address)}.${base}`)
      }
    }
  }
  return [...names]
}

/** xorshift32: the same queries for the same seed. */
class Random {
  #state: number
  constructor(seed: number) {
    this.#state = (seed * 2_654_435_761) | 1
  }
  below(limit: number): number {
    let x = this.#state
    x ^= x << 13
    x ^= x >>> 17
    x ^= x << 5
    this.#state = x
    return (x >>> 0) % limit
  }
  one<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!
  }
  chance(percent: number): boolean {
    return this.below(100) < percent
  }
}

export class Questions {
  readonly #random: Random
  readonly #names: readonly string[]

  constructor(seed: number, names: readonly string[]) {
    this.#random = new Random(seed)
    this.#names = names
  }

  next(): TestQuery {
    const r = this.#random
    const base = r.chance(80) ? r.one(this.#names) : r.one(OTHERS)
    const name = r.chance(35) ? this.#changed(base) : base
    const type = r.chance(30) && base.endsWith('.arpa.') ? 'PTR' : r.one(TYPES)
    const proto = r.chance(15) ? 'tcp' : 'udp'
    const size = r.chance(55) ? r.one([0, 512, 1232, 1232, 1400, 4096, 65_535]) : undefined
    const edns =
      size === undefined
        ? undefined
        : {
            size,
            extendedRcode: 0,
            version: r.chance(2) ? 1 : 0,
            dnssecOk: r.chance(30),
            z: 0,
            options: r.chance(25) ? [r.one(OPTIONS)] : [],
          }
    const cls = r.chance(3) ? r.one([3, 4, 255]) : 1
    const flags = { rd: true, cd: r.chance(8), ad: r.chance(12) }
    const message = Message.query(Name.parse(name), typeNumber(type)!, { id: r.below(65_536), ...flags, edns }, cls)
    const shape = [
      cls === 1 ? '' : `class ${cls}`,
      flags.cd ? 'cd' : '',
      flags.ad ? 'ad' : '',
      size === undefined ? '' : `edns ${size}`,
      edns?.dnssecOk ? 'do' : '',
    ]
    const limit = proto === 'tcp' ? 65_535 : Math.max(512, size ?? 0)
    return { text: [name, type, proto, ...shape].filter(Boolean).join(' '), octets: message.toBuffer(), name, type, proto, limit }
  }

  /** Other letters, a label more or less, a search domain behind. */
  #changed(name: string): string {
    const r = this.#random
    const labels = name.split('.')
    switch (r.below(6)) {
      case 0:
        return [...name].map((letter) => (r.chance(50) ? letter.toUpperCase() : letter)).join('')
      case 1:
        return labels.length > 2 ? labels.slice(1).join('.') : name
      case 2:
        return `${r.one(['x', '*', '_tcp', '_any._udp', '10-0-0-1', 'ns.dns', 'a\\.b', '\\255'])}.${name}`
      case 3:
        return `${name.slice(0, -1)}.${r.one(['svc.cluster.local.', 'shop.svc.cluster.local.', 'cluster.local.', 'test.'])}`
      case 4:
        return [`${labels[0]}-nx`, ...labels.slice(1)].join('.')
      default:
        return labels.filter((_, i) => i !== 1 || labels.length < 4).join('.')
    }
  }
}
