/** Numbers of the IANA "Domain Name System (DNS) Parameters" registry, and their names both ways. */

export const TYPE = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  NULL: 10,
  PTR: 12,
  HINFO: 13,
  MX: 15,
  TXT: 16,
  RP: 17,
  AFSDB: 18,
  SIG: 24,
  KEY: 25,
  AAAA: 28,
  LOC: 29,
  SRV: 33,
  NAPTR: 35,
  CERT: 37,
  DNAME: 39,
  OPT: 41,
  DS: 43,
  SSHFP: 44,
  IPSECKEY: 45,
  RRSIG: 46,
  NSEC: 47,
  DNSKEY: 48,
  DHCID: 49,
  NSEC3: 50,
  NSEC3PARAM: 51,
  TLSA: 52,
  SMIMEA: 53,
  HIP: 55,
  CDS: 59,
  CDNSKEY: 60,
  OPENPGPKEY: 61,
  CSYNC: 62,
  ZONEMD: 63,
  SVCB: 64,
  HTTPS: 65,
  SPF: 99,
  EUI48: 108,
  EUI64: 109,
  TKEY: 249,
  TSIG: 250,
  IXFR: 251,
  AXFR: 252,
  MAILB: 253,
  MAILA: 254,
  ANY: 255,
  URI: 256,
  CAA: 257,
} as const

export const CLASS = { IN: 1, CH: 3, HS: 4, NONE: 254, ANY: 255 } as const

export const OPCODE = { QUERY: 0, IQUERY: 1, STATUS: 2, NOTIFY: 4, UPDATE: 5, DSO: 6 } as const

export const RCODE = {
  NOERROR: 0,
  FORMERR: 1,
  SERVFAIL: 2,
  NXDOMAIN: 3,
  NOTIMP: 4,
  REFUSED: 5,
  YXDOMAIN: 6,
  YXRRSET: 7,
  NXRRSET: 8,
  NOTAUTH: 9,
  NOTZONE: 10,
  BADVERS: 16,
  BADKEY: 17,
  BADTIME: 18,
  BADMODE: 19,
  BADNAME: 20,
  BADALG: 21,
  BADTRUNC: 22,
  BADCOOKIE: 23,
} as const

/** Bits of the second header word. */
export const FLAG = { QR: 0x8000, AA: 0x0400, TC: 0x0200, RD: 0x0100, RA: 0x0080, Z: 0x0040, AD: 0x0020, CD: 0x0010 } as const

/** EDNS option codes that the server itself treats (RFC 6891 and its registry). */
export const OPTION = { NSID: 3, ECS: 8, EXPIRE: 9, COOKIE: 10, KEEPALIVE: 11, PADDING: 12, EDE: 15 } as const

const invert = (table: Readonly<Record<string, number>>): ReadonlyMap<number, string> =>
  new Map(Object.entries(table).map(([k, v]) => [v, k]))
const TYPE_NAMES = invert(TYPE)
const CLASS_NAMES = invert(CLASS)
const RCODE_NAMES = invert(RCODE)
const OPCODE_NAMES = invert(OPCODE)

/** "A", "AAAA", … or RFC 3597's "TYPE12345". */
export const typeName = (type: number): string => TYPE_NAMES.get(type) ?? `TYPE${type}`
/** "IN", "CH", … or RFC 3597's "CLASS123". */
export const className = (value: number): string => CLASS_NAMES.get(value) ?? `CLASS${value}`
export const rcodeName = (rcode: number): string => RCODE_NAMES.get(rcode) ?? `RCODE${rcode}`
export const opcodeName = (opcode: number): string => OPCODE_NAMES.get(opcode) ?? `OPCODE${opcode}`

/** Number of a type mnemonic or TYPEn, case-insensitive; undefined if it is neither. */
export function typeNumber(text: string): number | undefined {
  return lookUp(TYPE, 'TYPE', text)
}
/** Number of a class mnemonic or CLASSn, case-insensitive; undefined if it is neither. */
export function classNumber(text: string): number | undefined {
  return lookUp(CLASS, 'CLASS', text)
}
export function rcodeNumber(text: string): number | undefined {
  return lookUp(RCODE, 'RCODE', text)
}

function lookUp(table: Readonly<Record<string, number>>, prefix: string, text: string): number | undefined {
  const upper = text.toUpperCase()
  if (Object.hasOwn(table, upper)) return table[upper]
  if (!upper.startsWith(prefix)) return undefined
  const digits = upper.slice(prefix.length)
  const value = Number(digits)
  return /^\d{1,5}$/.test(digits) && value <= 0xffff ? value : undefined
}
