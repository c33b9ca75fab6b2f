/** Character strings (RFC 1035 §5.1) between octets and text. */
import { WireError } from './errors.js'

/** In double quotes; quotes and backslashes escaped, octets outside 0x20…0x7e as \DDD. */
export function quote(octets: Uint8Array): string {
  let text = '"'
  for (const octet of octets) {
    if (octet === 0x22 || octet === 0x5c) text += `\\${String.fromCharCode(octet)}`
    else if (octet < 0x20 || octet > 0x7e) text += `\\${String(octet).padStart(3, '0')}`
    else text += String.fromCharCode(octet)
  }
  return `${text}"`
}

/** One word of a zone file, quoted or not, to octets. Throws WireError 'TEXT'. */
export function parseCharacterString(word: string): Buffer {
  const quoted = word.length >= 2 && word.startsWith('"') && word.endsWith('"')
  const source = Buffer.from(quoted ? word.slice(1, -1) : word, 'utf8')
  const out = Buffer.alloc(source.length)
  let length = 0
  for (let at = 0; at < source.length; at++) {
    let octet = source[at]!
    if (octet === 0x5c) {
      const digits = source.toString('latin1', at + 1, at + 4)
      if (/^\d{3}$/.test(digits)) {
        octet = Number(digits)
        if (octet > 255) throw new WireError('TEXT', `bad escape in ${word.slice(0, 40)}`)
        at += 3
      } else {
        if (at + 1 >= source.length) throw new WireError('TEXT', `bad escape in ${word.slice(0, 40)}`)
        octet = source[++at]!
      }
    }
    out[length++] = octet
  }
  return out.subarray(0, length)
}

/** Splits a line into words at blanks; quoted parts stay together with their quotes, `;` starts a comment, parentheses are words of their own. */
export function splitWords(line: string): string[] {
  const words: string[] = []
  let word = ''
  let quoted = false
  const end = (): void => {
    if (word !== '') words.push(word)
    word = ''
  }
  for (let at = 0; at < line.length; at++) {
    const letter = line[at]!
    if (letter === '\\') {
      word += letter + (line[++at] ?? '')
      continue
    }
    if (letter === '"') {
      quoted = !quoted
      word += letter
      continue
    }
    if (quoted) word += letter
    else if (letter === ';') break
    else if (letter === ' ' || letter === '\t' || letter === '\r') end()
    else if (letter === '(' || letter === ')') {
      end()
      words.push(letter)
    } else word += letter
  }
  if (quoted) throw new WireError('TEXT', 'quote not closed')
  end()
  return words
}
