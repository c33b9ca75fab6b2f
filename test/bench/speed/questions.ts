/** What is asked: the questions of each workload as octets, with what a right answer to them has to say. */
import { Message, Name, TYPE } from '../../../src/dns/index.js'
import { randomFrom, shuffled, zipf } from '../../support/random.js'
import { headlessName, namespaceName, serviceName } from '../cluster.js'

export const WORKLOADS = ['cluster', 'headless', 'hit', 'miss', 'nxdomain', 'ndots', 'mix'] as const
/** Misses whose upstream is asked over streams. */
export const STREAM_WORKLOADS = ['miss-tcp', 'miss-tls'] as const
export type Workload = (typeof WORKLOADS)[number] | (typeof STREAM_WORKLOADS)[number]

export interface Question {
  readonly wire: Buffer
  readonly rcode: number
  readonly answers: number
}

export interface QuestionSet {
  readonly questions: readonly Question[]
  /** In which they are asked, over and over. */
  readonly order: Uint32Array
  /** Every question is about another name: its first label, of 8 octets, is a serial number. */
  readonly unique: boolean
  /** Asked over IPv6 from every second socket. */
  readonly ipv6: boolean
}

export const CLUSTER_SIZE = 10_000
export const HEADLESS = 50
export const HEADLESS_ENDPOINTS = 10
/** Distinct names of a workload: fewer than a cache of CoreDNS's default size keeps, which is to its advantage. */
const NAMES = 1000
const MIX_LENGTH = 1 << 16
const NOERROR = 0
const NXDOMAIN = 3

const inCluster = (i: number): string => `${serviceName(i)}.${namespaceName(i)}.svc.cluster.local.`
/** Spread over all services. */
const service = (i: number): string => inCluster(Math.floor((i * CLUSTER_SIZE) / NAMES))
export const external = (i: number): string => `www-${i}.corp${i % 20}.example.`
const junk = (i: number): string => `www-${i}.corp${i % 20}.example.${namespaceName(i)}.svc.cluster.local.`

interface Extra {
  readonly cookie?: boolean
  readonly mixedCase?: () => number
}

/** As stub resolvers ask: RD, no EDNS unless it carries a cookie. */
export function wire(name: string, type: number, extra: Extra = {}): Buffer {
  const cookie = { code: 10, data: Buffer.from('0123456789abcdef', 'hex') }
  const edns = { size: 1232, extendedRcode: 0, version: 0, dnssecOk: false, z: 0, options: [cookie] }
  const octets = Message.query(Name.parse(name), type, { id: 0, ...(extra.cookie === true && { edns }) }).toBuffer()
  if (extra.mixedCase !== undefined) mixCase(octets, extra.mixedCase)
  return octets
}

function mixCase(octets: Buffer, random: () => number): void {
  for (let at = 12; octets[at] !== 0; ) {
    const end = at + 1 + octets[at]!
    for (at++; at < end; at++) if (octets[at]! >= 97 && octets[at]! <= 122 && random() < 0.5) octets[at] = octets[at]! - 32
  }
}

const each = (count: number, make: (i: number) => Question): Question[] => Array.from({ length: count }, (_, i) => make(i))
const a = (name: string, rcode = NOERROR, answers = 1): Question => ({ wire: wire(name, TYPE.A), rcode, answers })

export function questionsOf(workload: Workload): QuestionSet {
  if (workload === 'mix') return mix()
  const questions = plain(workload)
  const order = Uint32Array.from(
    shuffled(
      questions.map((_, i) => i),
      randomFrom(1),
    ),
  )
  return { questions, order, unique: workload.startsWith('miss'), ipv6: false }
}

function plain(workload: Exclude<Workload, 'mix'>): Question[] {
  switch (workload) {
    case 'cluster':
      return each(NAMES, (i) => a(service(i)))
    case 'headless':
      return each(HEADLESS, (i) => a(`${headlessName(0, i)}.${namespaceName(i)}.svc.cluster.local.`, NOERROR, HEADLESS_ENDPOINTS))
    case 'hit':
      return each(NAMES, (i) => a(external(i)))
    case 'miss':
    case 'miss-tcp':
    case 'miss-tls':
      return each(20, (i) => a(`00000000.miss.corp${i}.example.`))
    case 'nxdomain':
      return each(NAMES, (i) => a(`missing-${i}.${namespaceName(i)}.svc.cluster.local.`, NXDOMAIN, 0))
    case 'ndots':
      return each(NAMES, (i) => a(junk(i), NOERROR, 2))
  }
}

/**
 * As a cluster asks: names by Zipf's law, half of them of the cluster; A and AAAA for each; three in ten names lengthened by the search list, in
 * vain; every fourth pair with EDNS and a cookie, every eighth in mixed case; half of the sockets on IPv6.
 */
function mix(): QuestionSet {
  const random = randomFrom(2)
  const rank = zipf(NAMES, random)
  const questions: Question[] = []
  for (let pair = 0; questions.length < MIX_LENGTH / 4; pair++) {
    const i = rank()
    const kind = random()
    const extra = { cookie: pair % 4 === 3, ...(pair % 8 === 5 && { mixedCase: random }) }
    const add = (name: string, rcode: number, answers: number, forAaaa: number): void => {
      questions.push({ wire: wire(name, TYPE.A, extra), rcode, answers })
      questions.push({ wire: wire(name, TYPE.AAAA, extra), rcode, answers: forAaaa })
    }
    if (kind < 0.3) add(junk(i), NXDOMAIN, 0, 0)
    else if (kind < 0.65) add(service(i), NOERROR, 1, 0)
    else add(external(i), NOERROR, 1, 1)
  }
  return { questions, order: Uint32Array.from(questions.keys()), unique: false, ipv6: true }
}
