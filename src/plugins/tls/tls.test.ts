import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { setUp } from '../testing.js'
import tls from './index.js'

const dir = mkdtempSync(join(tmpdir(), 'cairndns-tls-'))
beforeAll(() => {
  for (const name of ['one', 'two'])
    execFileSync(
      'openssl',
      ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '30', '-subj', `/CN=${name}`].concat([
        '-keyout',
        join(dir, `${name}.key`),
        '-out',
        join(dir, `${name}.pem`),
      ]),
      { stdio: 'ignore' },
    )
  writeFileSync(join(dir, 'empty.pem'), '')
})
afterAll(() => rmSync(dir, { recursive: true }))

const path = (file: string): string => join(dir, file)
/** Names of files in the text stand for their paths in the temporary folder. */
const set = (text: string, checking = false) => setUp(tls, text, { checking, path }).context

describe('certificates', () => {
  it('are read into the block', () => {
    const { block } = set('tls one.pem one.key two.pem {\n client_auth require_and_verify\n}')
    expect(block.tls).toEqual({
      cert: readFileSync(path('one.pem'), 'utf8'),
      key: readFileSync(path('one.key'), 'utf8'),
      ca: readFileSync(path('two.pem'), 'utf8'),
      clientAuth: 'require_and_verify',
      keylog: undefined,
    })
    expect(set('tls one.pem one.key').block.tls).toMatchObject({ ca: undefined, clientAuth: 'nocert' })
  })

  it('are tried out at set-up', () => {
    expect(() => set('tls one.pem two.key')).toThrow('plugin/tls: could not load TLS cert: ')
    expect(() => set('tls empty.pem one.key')).toThrow('plugin/tls: could not load TLS cert: ')
    expect(() => set('tls one.pem one.key empty.pem')).toThrow('plugin/tls: could not read root certs')
    expect(() => set('tls none.pem one.key')).toThrow(`could not load TLS cert: open ${path('none.pem')}: no such file or directory`)
    expect(() => set('tls one.pem one.key none.pem')).toThrow('error reading none.pem')
  })

  it('are noted by `check` where they are missing', () => {
    const context = set('tls none.pem none.key', true)
    expect(context.notes).toHaveLength(2)
    expect(context.block.tls).toBeUndefined()
  })

  it('may come with a file for session keys, which only its owner can read', () => {
    const context = set('tls one.pem one.key {\n keylog keys.log\n}')
    expect(context.block.tls?.keylog).toBe(path('keys.log'))
    expect(statSync(path('keys.log')).mode & 0o777).toBe(0o600)
    expect(context.log.lines).toEqual([`[WARNING] plugin/tls: Writing TLS Key Log to "${path('keys.log')}"`])
    expect(() => set('tls one.pem one.key {\n keylog none/keys.log\n}')).toThrow('unable to write TLS Key Log to')
  })
})

it.each([
  ['tls a', "plugin/tls: Corefile:2 - Error during parsing: Wrong argument count or unexpected line ending after 'a'"],
  ['tls a b c d', 'Wrong argument count'],
  ['tls one.pem one.key {\n unknown\n}', "unknown option 'unknown'"],
  ['tls one.pem one.key {\n client_auth\n}', 'Wrong argument count'],
  ['tls one.pem one.key {\n client_auth none bogus\n}', 'Wrong argument count'],
  ['tls one.pem one.key {\n client_auth bogus\n}', "unknown authentication type 'bogus'"],
  ['tls', 'plugin/tls: ACME requires at least one domain'],
  ['tls {\n acme dns.example\n resolver 1.1.1.1\n}', 'invalid ACME resolver "1.1.1.1": address 1.1.1.1: missing port in address'],
  ['tls {\n acme dns.example\n resolver 1.1.1.1:0\n}', 'invalid ACME resolver port "0"'],
  ['tls {\n acme dns.example\n resolver :53\n}', 'host is empty'],
  ['tls {\n acme dns.example\n acme other.example\n}', 'ACME option "acme" can only be specified once'],
  ['tls {\n acme dns.example\n provider example\n}', 'unknown ACME option "provider"'],
  ['tls {\n acme 1.2.3.4\n}', 'invalid ACME domain "1.2.3.4"'],
  ['tls {\n acme dns.example\n ca ftp://x\n}', 'invalid ACME CA URL "ftp://x"'],
  ['tls {\n acme dns.example *.dns.example\n}', 'certificates by ACME are known, but not built yet'],
])('refuses %j', (text, error) => {
  expect(() => set(text)).toThrow(error)
})
