/** What is asked of every upstream, and how. */
import { Name, typeNumber } from '../../src/dns/index.js'
import { ask, opt } from '../support/wire.js'
import { LONGEST, ORIGIN } from './zone.js'

export type Question = readonly [name: string, type: string]

const at = (name: string, ...types: string[]): Question[] => types.map((type) => [`${name}.${ORIGIN}`, type])

export const QUESTIONS: readonly Question[] = [
  [ORIGIN, 'SOA'],
  [ORIGIN, 'NS'],
  [ORIGIN, 'DNSKEY'],
  ...at('www', 'A', 'AAAA', 'TXT', 'DS', 'NSEC'),
  ...at('WwW', 'A'),
  ...at('mixed', 'A'),
  ...at('mail', 'MX', 'A'),
  ...at('txt', 'TXT'),
  ...at('middle', 'TXT'),
  ...at('large', 'TXT'),
  ...at('many', 'A'),
  ...at('huge', 'TXT'),
  ...at('_sip._tcp', 'SRV'),
  ...at('caa', 'CAA'),
  ...at('https', 'HTTPS'),
  ...at('alias-https', 'HTTPS'),
  ...at('_dns', 'SVCB'),
  ...at('naptr', 'NAPTR'),
  ...at('sshfp', 'SSHFP'),
  ...at('_443._tcp', 'TLSA'),
  ...at('loc', 'LOC'),
  ...at('hinfo', 'HINFO'),
  ...at('rp', 'RP'),
  ...at('uri', 'URI'),
  ...at('cert', 'CERT'),
  ...at('eui', 'EUI48'),
  ...at('dnameowner', 'DNAME'),
  ...at('new-type', 'TYPE65280'),
  ...at('empty-type', 'TYPE65281'),
  ...at('c1', 'A', 'AAAA', 'CNAME', 'MX'),
  ...at('c-missing', 'A'),
  ...at('c-nodata', 'A'),
  ...at('c-loop1', 'A'),
  ...at('host.old', 'A'),
  ...at('x.wild', 'A', 'TXT', 'MX'),
  ...at('y.z.wild', 'A'),
  ...at('*.wild', 'A'),
  ...at('c.wild', 'A'),
  ...at('ent', 'A'),
  ...at('b.ent', 'A'),
  ...at('nothing', 'A', 'AAAA', 'TYPE65280'),
  ...at('a.b.c.nothing', 'A'),
  ...at('zero', 'A'),
  ...at('week', 'A'),
  ...at('sp\\032ace', 'A'),
  ...at('do\\.t', 'A'),
  ...at('\\000\\255', 'A'),
  ...at('_', 'TXT'),
  [LONGEST, 'A'],
  ['broken.test.', 'A'],
]

export interface Manner {
  readonly label: string
  /** Octets that a UDP answer may have. */
  readonly size: number
  query(question: Question): Buffer
}

const manner = (label: string, size: number, change: Parameters<typeof ask>[2]): Manner => ({
  label,
  size: Math.max(512, size),
  query: ([name, type]) => ask(name, type, change),
})

export const MANNERS: readonly Manner[] = [
  manner('plain', 512, {}),
  manner('EDNS', 1232, { edns: opt(1232) }),
  manner('DO', 1232, { edns: opt(1232, { dnssecOk: true }) }),
  manner('DO CD 4096', 4096, { cd: true, edns: opt(4096, { dnssecOk: true }) }),
  manner('AD', 1232, { ad: true, edns: opt(1232) }),
  manner('RD=0', 1232, { rd: false, edns: opt(1232) }),
  manner('NSID', 1232, { edns: opt(1232, { options: [{ code: 3, data: Buffer.alloc(0) }] }) }),
]

/** A name and a type as a key for tables. */
export const keyOf = ([name, type]: Question): string => `${Name.parse(name)} ${typeNumber(type)}`
