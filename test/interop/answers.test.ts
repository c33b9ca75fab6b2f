/** Every question, put to an upstream directly and through `forward` by each transport: nothing may be lost on the way, nothing invented. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FLAG, Message } from '../../src/dns/index.js'
import { tcp, udp } from '../support/wire.js'
import { type Allowance, differences } from './compare.js'
import { canAuthority, Lab, type Server } from './lab.js'
import { isInstalled, PEER_NAMES, type Peer } from './peers.js'
import { MANNERS, type Manner, QUESTIONS, type Question } from './questions.js'
import { LONGEST } from './zone.js'

type Proto = 'udp' | 'tcp'
type Path = 'plain' | 'case' | 'cookies' | 'force_tcp' | 'prefer_udp' | 'tls' | 'https' | 'cache'

const ALL: readonly Path[] = ['plain', 'case', 'cookies', 'force_tcp', 'prefer_udp', 'tls', 'https', 'cache']

function bodies(peer: Peer, ca: string): Record<string, string> {
  const line = (to: string, ...options: string[]): string =>
    `    forward . ${to} {\n${options.map((one) => `        ${one}\n`).join('')}    }`
  const secure = [`tls ${ca}`, 'tls_servername dns.example']
  const { address, ports } = peer
  return {
    plain: line(address, 'max_fails 0'),
    case: line(address, 'random_case'),
    cookies: line(address, 'cookies'),
    force_tcp: line(address, 'force_tcp'),
    prefer_udp: line(address, 'prefer_udp'),
    ...(ports.tls === 0 ? {} : { tls: line(`tls://127.0.0.1:${ports.tls}`, ...secure) }),
    ...(ports.https === 0 ? {} : { https: line(`https://127.0.0.1:${ports.https}`, ...secure) }),
    // One for each kind of client: what an upstream leaves out of a datagram without saying so, it does not leave out of a stream.
    cache: `    cache {\n        servfail 0\n    }\n${line(address)}`,
    cache_tcp: `    cache {\n        servfail 0\n    }\n${line(address)}`,
  }
}

async function put(port: number, query: Buffer, proto: Proto): Promise<Message> {
  const reply = proto === 'udp' ? await udp(port, query, '127.0.0.1', 6000) : await tcp(port, query)
  if (reply === undefined) throw new Error('no answer')
  return Message.view(reply)
}

/** What the upstream says if it is asked as `forward` does when a client comes by `proto`. */
async function directly(peer: Peer, path: Path, proto: Proto, query: Buffer): Promise<Message> {
  const { dns } = peer.ports
  if (path === 'plain' || path === 'case' || path === 'cookies' || path === 'cache') return put(dns, query, proto)
  const first = path === 'prefer_udp' ? await put(dns, query, 'udp') : undefined
  return first === undefined || first.tc ? put(dns, query, 'tcp') : first
}

async function compare(peer: Peer, port: number, path: Path, proto: Proto, manner: Manner, question: Question): Promise<string[]> {
  const query = manner.query(question)
  const direct = await directly(peer, path, proto, query)
  const limit = proto === 'udp' ? manner.size : 65_535
  let through = await put(port, query, proto)
  if (through.length > limit) return [`${through.length} octets of at most ${limit}`]
  if (proto === 'udp' && !direct.tc && direct.length > limit) return through.tc ? [] : ['TC is missing']
  // BIND makes names of the spelling that it was asked with, and compresses only among equal spellings: a reply may then be too long.
  if (path === 'case' && through.tc && question[0] === LONGEST) return []
  const ttl = peer.resolver ? 2 : 0
  // The cookie takes room, and its OPT record says 512 where the client has none: BIND then leaves out what need not be there.
  const bare = path === 'cookies'
  if (path !== 'cache') return differences(direct, through, { ttl, spelling: path === 'case', bare })
  const kept: Allowance = { ttl, cached: true, flags: FLAG.AA | FLAG.AD | FLAG.CD, anyOptions: true }
  const found = differences(direct, through, kept)
  through = await put(port, query, proto)
  return [...found, ...differences(direct, through, kept).map((text) => `hit: ${text}`)]
}

/** Where docs/differences.md says that we answer otherwise than CoreDNS, and where its encoder makes replies longer than they need to be. */
function isWanted(path: Path, [name, type]: Question, manner: Manner, differences: readonly string[]): boolean {
  if (path === 'cache' && (manner.label === 'RD=0' || name.startsWith('c-missing.'))) return true
  return (type === 'NAPTR' || path === 'tls' || path === 'https') && differences[0] === 'TC lost'
}

async function besideCoreDns(
  port: number,
  other: number,
  proto: Proto,
  cached: boolean,
  manner: Manner,
  question: Question,
): Promise<string[]> {
  let found: string[] = []
  for (let tries = 4; tries > 0; tries--) {
    const query = manner.query(question)
    const [mine, theirs] = [await put(port, query, proto), await put(other, query, proto)]
    // AA is on hits only, and which of both has an entry already depends on the tests before.
    found = differences(theirs, mine, cached ? { ttl: 60, flags: FLAG.AA } : { ttl: 2 })
    if (found.length === 0) break
  }
  return found
}

/** Resolvers answer out of their own caches or not, as they like: only what differs each time counts. */
async function compareSteadily(...all: Parameters<typeof compare>): Promise<string[]> {
  let found: string[] = []
  for (let tries = all[0].resolver ? 4 : 1; tries > 0; tries--) {
    found = await compare(...all).catch((error: Error) => [error.message])
    if (found.length === 0) return []
  }
  return found
}

describe.skipIf(!canAuthority()).each(PEER_NAMES.filter(isInstalled))('%s', (name) => {
  const lab = new Lab()
  let peer: Peer
  let ours: Server<string>
  let theirs: Server<string> | undefined

  beforeAll(async () => {
    peer = await lab.peer(name)
    ours = await lab.ours(bodies(peer, lab.ca))
    const { case: _, cookies: __, ...common } = bodies(peer, lab.ca)
    theirs = await lab.coredns(common)
    // Resolvers learn all of it first: later answers then differ in nothing but age.
    for (const manner of MANNERS) for (const question of QUESTIONS) await put(peer.ports.dns, manner.query(question), 'tcp')
  })
  afterAll(() => lab.stop())

  for (const path of ALL)
    for (const proto of ['udp', 'tcp'] as const)
      test(`${path}, client by ${proto}`, async (context) => {
        const port = ours.ports[path === 'cache' && proto === 'tcp' ? 'cache_tcp' : path]
        if (port === undefined) return context.skip(`${name} has no such transport`)
        const found: string[] = []
        for (const manner of MANNERS)
          for (const question of QUESTIONS)
            for (const text of await compareSteadily(peer, port, path, proto, manner, question))
              found.push(`${question.join(' ')} ${manner.label}: ${text}`)
        if (found.length > 0) expect.fail(found.join('\n').replaceAll(/(.)\1{20,}/g, '$1…'))
      })

  for (const path of ALL.filter((one) => one !== 'case' && one !== 'cookies'))
    for (const proto of ['udp', 'tcp'] as const)
      test(`${path}, client by ${proto}, beside CoreDNS`, async (context) => {
        const key = path === 'cache' && proto === 'tcp' ? 'cache_tcp' : path
        const [port, other] = [ours.ports[key], theirs?.ports[key]]
        if (port === undefined || other === undefined) return context.skip('no CoreDNS (COREDNS), or no such transport')
        const found: string[] = []
        for (const manner of MANNERS)
          for (const question of QUESTIONS) {
            const texts = await besideCoreDns(port, other, proto, path === 'cache', manner, question)
            if (isWanted(path, question, manner, texts)) continue
            for (const text of texts) found.push(`${question.join(' ')} ${manner.label}: ${text}`)
          }
        if (found.length > 0) expect.fail(found.join('\n').replaceAll(/(.)\1{20,}/g, '$1…'))
      })
})
