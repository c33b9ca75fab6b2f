/** Resource records as plain values. What has no typed form keeps its RDATA as uncompressed octets, so that nothing is lost. */
import type { Name } from './name.js'

export type RData =
  | { readonly kind: 'A'; readonly address: string }
  | { readonly kind: 'AAAA'; readonly address: string }
  /** CNAME, NS, PTR, DNAME. */
  | { readonly kind: 'NAME'; readonly target: Name }
  | {
      readonly kind: 'SOA'
      readonly mname: Name
      readonly rname: Name
      readonly serial: number
      readonly refresh: number
      readonly retry: number
      readonly expire: number
      readonly minimum: number
    }
  | { readonly kind: 'MX'; readonly preference: number; readonly exchange: Name }
  | { readonly kind: 'SRV'; readonly priority: number; readonly weight: number; readonly port: number; readonly target: Name }
  | { readonly kind: 'TXT'; readonly strings: readonly Buffer[] }
  /** Everything else (RFC 3597); embedded names are uncompressed. `text.ts` prints and reads the known ones. */
  | { readonly kind: 'OPAQUE'; readonly octets: Buffer }

export interface RR {
  readonly name: Name
  readonly type: number
  readonly class: number
  /** Seconds, all 32 bits as they came. Whoever computes with it takes a set top bit for a long time (RFC 8767 §4). */
  readonly ttl: number
  readonly data: RData
}

/** EDNS (RFC 6891) as it stands in the OPT record. */
export interface Edns {
  /** Octets the sender takes by UDP, as written. */
  readonly size: number
  readonly extendedRcode: number
  readonly version: number
  /** The DO bit (RFC 3225). */
  readonly dnssecOk: boolean
  /** The other 15 flag bits, as they came. */
  readonly z: number
  readonly options: readonly EdnsOption[]
}
export interface EdnsOption {
  readonly code: number
  readonly data: Buffer
}
