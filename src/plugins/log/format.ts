/** Log formats: text with tokens, compiled once into a list of functions. */
import { FLAG, fullLength, Message, RCODE, rcodeName } from '../../dns/index.js'
import type { Query } from '../contract.js'
import { questionClass, questionType } from '../words.js'

export const COMMON = '{remote}:{port} - {>id} "{type} {class} {name} {proto} {size} {>do} {>bufsize}" {rcode} {>rflags} {rsize} {duration}'
export const COMBINED = `${COMMON} "{>opcode}"`

/** What a line is made of. */
export interface Entry {
  readonly query: Query
  /** undefined: nothing was sent. */
  readonly reply: Message | undefined
  readonly rcode: number
  /** Octets of the reply without compression. */
  readonly size: number
  /** Milliseconds. */
  readonly duration: number
}

type Part = string | ((entry: Entry) => string)

const MISSING = '-'

const TOKENS: Readonly<Record<string, (entry: Entry) => string>> = {
  '{type}': ({ query }) => questionType(query.type),
  '{name}': ({ query }) => query.name.toLowerCase(),
  '{class}': ({ query }) => questionClass(query.class),
  '{proto}': ({ query }) => (query.proto === 'udp' ? 'udp' : 'tcp'),
  '{size}': ({ query }) => String(fullLength(query.message)),
  '{remote}': ({ query }) => bracketed(query.peer.address),
  '{port}': ({ query }) => String(query.peer.port),
  '{local}': ({ query }) => bracketed(query.peer.localAddress),
  '{>id}': ({ query }) => String(query.message.id),
  '{>opcode}': ({ query }) => String(query.message.opcode),
  '{>do}': ({ query }) => String(query.dnssecOk),
  '{>bufsize}': ({ query }) => String(bufferSize(query)),
  '{rcode}': ({ reply, rcode }) => (reply === undefined ? MISSING : rcodeText(rcode)),
  '{rsize}': ({ size }) => String(size),
  '{>rflags}': (entry) => (entry.reply === undefined ? MISSING : flagsText(entry.reply, entry)),
  '{duration}': ({ duration }) => `${seconds(duration)}s`,
}

/** Compiles a format; `{common}` and `{combined}` stand for those formats. What is no known token stays as it is. */
export function compileFormat(format: string): (entry: Entry) => string {
  const text = format.replaceAll('{common}', COMMON).replaceAll('{combined}', COMBINED)
  const parts: Part[] = []
  let at = 0
  for (const match of text.matchAll(/\{[^{}]*\}/g)) {
    const part = token(match[0])
    if (part === undefined) continue
    parts.push(text.slice(at, match.index), part)
    at = match.index + match[0].length
  }
  parts.push(text.slice(at))
  return (entry) => {
    let line = ''
    for (const part of parts) line += typeof part === 'string' ? part : part(entry)
    return line
  }
}

function token(text: string): ((entry: Entry) => string) | undefined {
  if (Object.hasOwn(TOKENS, text)) return TOKENS[text]
  if (!text.startsWith('{/')) return undefined
  const label = text.slice(2, -1)
  return ({ query }) => query.metadata?.get(label)?.() ?? MISSING
}

const bracketed = (address: string): string => (address.includes(':') ? `[${address}]` : address)

const bufferSize = (query: Query): number => (query.proto === 'udp' ? Math.max(512, query.lowered ?? query.size) : 65_535)

/** CoreDNS prints 16 as BADSIG, and a code without a name as its number. */
function rcodeText(rcode: number): string {
  if (rcode === RCODE.BADVERS) return 'BADSIG'
  const name = rcodeName(rcode)
  return name.startsWith('RCODE') ? String(rcode) : name
}

const FLAGS = [
  ['qr', FLAG.QR],
  ['aa', FLAG.AA],
  ['tc', FLAG.TC],
  ['rd', FLAG.RD],
  ['ra', FLAG.RA],
  ['z', FLAG.Z],
  ['ad', FLAG.AD],
  ['cd', FLAG.CD],
] as const

function flagsText(reply: Message, entry: Entry): string {
  const flags = willBeCut(reply, entry) ? reply.flags | FLAG.TC : reply.flags
  let text = ''
  for (const [name, bit] of FLAGS) if ((flags & bit) !== 0) text += text === '' ? name : `,${name}`
  return text
}

/** Whether the reply, at its longest larger than the client's buffer, stays so when compressed. */
function willBeCut(reply: Message, { query, size }: Entry): boolean {
  if (size === 0) return false
  const opt = query.message.edns !== undefined && reply.edns === undefined ? 11 : 0
  const room = bufferSize(query) - opt
  return size > room && Message.view(reply.toBuffer(room)).tc
}

/** Plain decimal number as Go's FormatFloat prints it: no exponent, no trailing zeros. */
function seconds(ms: number): string {
  return (Math.round(ms * 1e6) / 1e9).toFixed(9).replace(/\.?0+$/, '')
}
