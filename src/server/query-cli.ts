/** `cairndns query`: asks one question and prints the answer as dig does. */
import { randomInt } from 'node:crypto'
import dns from 'node:dns'
import { CLASS, FLAG, formatMessage, formatRdata, Message, Name, parseAddress, typeNumber } from '../dns/index.js'
import { splitHostPort } from '../plugins/contract.js'
import { exchange, type Target } from './client.js'

interface Question {
  name: string
  type: string | undefined
  class: number
  server: string | undefined
  port: number
  tcp: boolean
  short: boolean
  /** Take a truncated answer as it is. */
  ignore: boolean
  rd: boolean
  ad: boolean
  cd: boolean
  dnssecOk: boolean
  /** EDNS size; 0: no OPT. */
  size: number
  /** Milliseconds. */
  timeout: number
}

const CLASSES: ReadonlyMap<string, number> = new Map([
  ['IN', CLASS.IN],
  ['CH', 3],
  ['HS', 4],
  ['ANY', 255],
])

/** Resolves to dig's exit codes: 0 for an answer of any kind, 9 for none. Throws Error for words that can't be read. */
export async function query(words: readonly string[]): Promise<number> {
  const question = parseWords(words)
  const type = typeNumber(question.type ?? 'A')
  if (type === undefined) throw new Error(`unknown type '${question.type}'`)
  const target = targetOf(question)
  const { size, dnssecOk, rd, ad, cd } = question
  const edns = size === 0 ? undefined : { size, extendedRcode: 0, version: 0, dnssecOk, z: 0, options: [] }
  const message = Message.query(Name.parse(question.name), type, { id: randomInt(65_536), rd, ad, cd, edns }, question.class).toBuffer()
  const began = performance.now()
  try {
    let used = target
    let reply = await exchange(message, target)
    if ((reply.flags & FLAG.TC) !== 0 && target.proto === 'udp' && !question.ignore) {
      if (!question.short) process.stdout.write(';; Truncated, retrying in TCP mode.\n')
      used = { ...target, proto: 'tcp' }
      reply = await exchange(message, used)
    }
    process.stdout.write(question.short ? shortText(reply) : longText(reply, used, performance.now() - began))
    return 0
  } catch (error) {
    process.stdout.write(`;; ${(error as Error).message}\n`)
    return 9
  }
}

function targetOf({ server, port, tcp, timeout }: Question): Target {
  const proto = tcp ? 'tcp' : 'udp'
  const address = server ?? dns.getServers()[0] ?? '127.0.0.1'
  // An address with a port: "10.0.0.1:1053", "[::1]:1053". A bare IPv6 address has colons but no port.
  if (/^\[.*\]:\d+$|^[^:]*:\d+$/.test(address)) {
    const split = splitHostPort(address)
    return { host: split.host, port: Number(split.port), proto, timeout }
  }
  return { host: address.replace(/^\[(.*)\]$/, '$1'), port, proto, timeout }
}

function shortText(reply: Message): string {
  return reply.answers.map((rr) => `${formatRdata(rr.type, rr.data)}\n`).join('')
}

function longText(reply: Message, { host, port, proto }: Target, ms: number): string {
  const footer = [
    `;; Query time: ${Math.round(ms)} msec`,
    `;; SERVER: ${host}#${port} (${proto.toUpperCase()})`,
    `;; MSG SIZE  rcvd: ${reply.toBuffer().length}`,
  ]
  return `${formatMessage(reply)}\n${footer.join('\n')}\n\n`
}

function parseWords(words: readonly string[]): Question {
  const question: Question = {
    name: '.',
    type: undefined,
    class: CLASS.IN,
    server: undefined,
    port: 53,
    tcp: false,
    short: false,
    ignore: false,
    rd: true,
    ad: true,
    cd: false,
    dnssecOk: false,
    size: 1232,
    timeout: 5_000,
  }
  const rest = [...words]
  let named = false
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word.startsWith('@')) question.server = word.slice(1)
    else if (word.startsWith('+')) option(question, word.slice(1))
    else if (/^-[xptc]$/.test(word)) named = dashed(question, word, rest.shift()) || named
    else if (named && question.type === undefined && typeNumber(word) !== undefined) question.type = word
    else if (named && CLASSES.has(word.toUpperCase())) question.class = CLASSES.get(word.toUpperCase())!
    else if (!named) {
      question.name = word
      named = true
    } else throw new Error(`don't know what '${word}' means`)
  }
  if (!named) throw new Error('no name to ask for')
  return question
}

/** dig's options with a dash; true if it named what to ask. */
function dashed(question: Question, word: string, value: string | undefined): boolean {
  if (value === undefined) throw new Error(`${word} needs a value`)
  if (word === '-p') question.port = inRange(value, 1, 65_535, 'port')
  else if (word === '-t') question.type = value
  else if (word === '-c') question.class = CLASSES.get(value.toUpperCase()) ?? CLASS.IN
  else {
    question.name = reverseName(value)
    question.type ??= 'PTR'
    return true
  }
  return false
}

/** 4.3.2.1.in-addr.arpa. of 1.2.3.4, and the ip6.arpa counterpart. */
function reverseName(address: string): string {
  const octets = parseAddress(address)
  if (octets === undefined) throw new Error(`'${address}' is no IP address`)
  if (octets.length === 4) return `${[...octets].reverse().join('.')}.in-addr.arpa.`
  return `${[...octets.toString('hex')].reverse().join('.')}.ip6.arpa.`
}

function option(question: Question, word: string): void {
  const [name = '', value] = word.split('=', 2)
  const on = !name.startsWith('no')
  switch (on ? name : name.slice(2)) {
    case 'tcp':
    case 'vc':
      question.tcp = on
      break
    case 'short':
      question.short = on
      break
    case 'ignore':
      question.ignore = on
      break
    case 'rec':
    case 'recurse':
      question.rd = on
      break
    case 'ad':
    case 'adflag':
      question.ad = on
      break
    case 'cd':
    case 'cdflag':
      question.cd = on
      break
    case 'dnssec':
    case 'do':
      question.dnssecOk = on
      break
    case 'edns':
      question.size = on ? 1232 : 0
      break
    case 'bufsize':
      question.size = inRange(value, 0, 65_535, 'bufsize')
      break
    case 'time':
      question.timeout = inRange(value, 1, 600, 'time') * 1000
      break
    default:
      throw new Error(`unknown option +${word}`)
  }
}

function inRange(text: string | undefined, low: number, high: number, what: string): number {
  const value = Number(text)
  if (text === undefined || !Number.isInteger(value) || value < low || value > high)
    throw new Error(`${what} takes a number from ${low} to ${high}`)
  return value
}
