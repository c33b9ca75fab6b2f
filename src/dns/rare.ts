/**
 * Rare types through dns-packet's RDATA codecs. It is not strict (it reads past short data, and its text is UTF-8), so a result counts only if
 * encoding it again gives the same octets; what fails that is printed by our own table or in the generic form.
 */
import { createRequire } from 'node:module'
import { TYPE } from './constants.js'
import { quote } from './strings.js'

interface Codec {
  encode(data: unknown, buffer: Buffer, offset: number): Buffer
  decode(buffer: Buffer, offset: number): unknown
}

/** Types read through dns-packet, with the names of their fields in text order. */
export const RARE: ReadonlyMap<number, string> = new Map([
  [TYPE.HINFO, 'hinfo'],
  [TYPE.SSHFP, 'sshfp'],
])

let codecs: Readonly<Record<string, Codec>> | undefined

/** Text of the data, or undefined where dns-packet does not read these very octets. */
export function formatRare(type: number, octets: Buffer): string | undefined {
  codecs ??= createRequire(import.meta.url)('dns-packet') as Readonly<Record<string, Codec>>
  const codec = codecs[RARE.get(type) ?? '']
  if (codec === undefined) return undefined
  const framed = Buffer.alloc(octets.length + 2)
  framed.writeUInt16BE(octets.length)
  octets.copy(framed, 2)
  let value: unknown
  try {
    value = codec.decode(framed, 0)
    const again = Buffer.alloc(framed.length + 512)
    codec.encode(value, again, 0)
    if (!again.subarray(0, framed.length).equals(framed)) return undefined
  } catch {
    // Whatever it trips over is data it can't read: the caller prints it otherwise.
    return undefined
  }
  if (type === TYPE.HINFO) {
    const { cpu, os } = value as { cpu: string; os: string }
    return `${quote(Buffer.from(cpu))} ${quote(Buffer.from(os))}`
  }
  const { algorithm, hash, fingerprint } = value as { algorithm: number; hash: number; fingerprint: string }
  return `${algorithm} ${hash} ${fingerprint.toUpperCase()}`
}
