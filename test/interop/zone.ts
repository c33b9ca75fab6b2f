/** The zone that every upstream serves: one of each kind of answer. Signed where BIND's tools are there. */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { find } from './programs.js'

export const ORIGIN = 'interop.test.'

/** Records of four full strings: with their signature just below the 65,535 octets that a message may have. (BIND takes 100 per set.) */
const full = (i: number): string => ['w', 'x', 'y', 'z'].map((c) => `"${String(i).padStart(3, '0')}${c.repeat(252)}"`).join(' ')
const huge = Array.from({ length: 62 }, (_, i) => `huge 600 IN TXT ${full(i)}`)
const many = Array.from({ length: 60 }, (_, i) => `many 600 IN A 192.0.2.${i + 1}`)
const label = 'l'.repeat(63)
/** 255 octets on the wire, the most that a name may have. */
export const LONGEST = `${label}.${label}.${label}.${'m'.repeat(63 - ORIGIN.length - 2)}.${ORIGIN}`

export const zoneText = (): string => `$ORIGIN ${ORIGIN}
$TTL 600
@ 3600 IN SOA ns1 hostmaster 2024010101 7200 3600 1209600 30
@ 3600 IN NS ns1
@ 3600 IN NS ns2
ns1 IN A 127.0.0.1
ns2 IN AAAA ::1
www IN A 192.0.2.1
www IN A 192.0.2.2
www IN AAAA 2001:db8::1
www IN AAAA 2001:db8::2
mail IN MX 10 mx1
mail IN MX 20 mx2
mx1 IN A 192.0.2.25
mx2 IN AAAA 2001:db8::25
txt IN TXT "one" "two; \\"quoted\\"" "" "\\000\\127\\255 \\\\"
large IN TXT ${Array.from({ length: 16 }, (_, i) => `"${String.fromCharCode(97 + i).repeat(255)}"`).join(' ')}
middle IN TXT ${Array.from({ length: 3 }, (_, i) => `"${String.fromCharCode(97 + i).repeat(220)}"`).join(' ')}
_sip._tcp IN SRV 0 5 5060 www
_sip._tcp IN SRV 10 5 5060 mx1
caa IN CAA 0 issue "ca.example; account=1"
caa IN CAA 128 iodef "mailto:security@interop.test"
https IN HTTPS 1 . alpn="h2,h3" ipv4hint=192.0.2.1 ipv6hint=2001:db8::1
alias-https IN HTTPS 0 www
_dns IN SVCB 1 www alpn=dot port=853 key65000=hello
naptr IN NAPTR 100 10 "S" "SIP+D2U" "" _sip._tcp
sshfp IN SSHFP 4 2 123456789ABCDEF67890123456789ABCDEF67890123456789ABCDEF123456789
_443._tcp IN TLSA 3 1 1 0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF
loc IN LOC 52 22 23.000 N 4 53 32.000 E -2.00m 0.00m 10000m 10m
hinfo IN HINFO "PC-Intel-700mhz" "a \\"b\\""
rp IN RP hostmaster txt
uri IN URI 10 1 "ftp://ftp1.example.com/public"
cert IN CERT PKIX 0 0 MxFcby9k/yvedMfQgKzhH5er0Mu/vILz45IkskceFGgiWCn/GxHhai6VAuHAoNUz4YoU1tVfSCSqQYn6//11U6Nld80jEeC8aTrO+KKmCaY=
eui IN EUI48 01-23-45-67-89-ab
dnameowner IN DNAME www
new-type IN TYPE65280 \\# 6 0A0000FF0102
empty-type IN TYPE65281 \\# 0
c1 IN CNAME c2
c2 IN CNAME c3
c3 IN CNAME www
c-missing IN CNAME nothing
c-nodata IN CNAME txt
c-outside IN CNAME elsewhere.other.test.
c-loop1 IN CNAME c-loop2
c-loop2 IN CNAME c-loop1
old IN DNAME new
host.new IN A 192.0.2.30
*.wild IN A 192.0.2.40
*.wild IN TXT "from a wildcard"
c.wild IN CNAME any.wild
a.b.ent IN A 192.0.2.50
MiXeD IN A 192.0.2.60
short 3 IN A 192.0.2.70
zero 0 IN A 192.0.2.80
week 604800 IN A 192.0.2.90
popular 20 IN A 192.0.2.100
sp\\032ace IN A 192.0.2.110
do\\.t IN A 192.0.2.111
\\000\\255 IN A 192.0.2.112
_ IN TXT "underscore"
${LONGEST} IN A 192.0.2.120
sub IN NS ns.sub
ns.sub IN A 127.0.0.9
${many.join('\n')}
${huge.join('\n')}
`

export interface Zone {
  readonly file: string
  readonly signed: boolean
  /** The DS records of a signed zone, for validators; '' otherwise. */
  readonly trustAnchor: string
}

/** Writes the zone to `folder`, signed if dnssec-keygen and dnssec-signzone are there. */
export function makeZone(folder: string): Zone {
  const plain = path.join(folder, 'interop.zone')
  fs.writeFileSync(plain, zoneText())
  const [keygen, sign] = [find('dnssec-keygen'), find('dnssec-signzone')]
  if (keygen === undefined || sign === undefined) return { file: plain, signed: false, trustAnchor: '' }
  const run = (program: string, ...args: string[]): string => execFileSync(program, args, { cwd: folder, stdio: 'pipe', encoding: 'utf8' })
  const key = run(keygen, '-q', '-a', 'ECDSAP256SHA256', '-f', 'KSK', ORIGIN).trim()
  run(keygen, '-q', '-a', 'ECDSAP256SHA256', ORIGIN)
  run(sign, '-q', '-S', '-o', ORIGIN, '-f', 'interop.signed', 'interop.zone')
  const anchor = fs
    .readFileSync(path.join(folder, `${key}.key`), 'utf8')
    .split('\n')
    .find((line) => line.includes(' DNSKEY '))!
  return { file: path.join(folder, 'interop.signed'), signed: true, trustAnchor: anchor }
}
