/** What TLS towards upstreams is made of: certificates to trust, and a certificate of our own where an upstream wants one. */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import type { SecureContext, SecureContextOptions } from 'node:tls'
import type { Argument, SetupContext } from '../../src/plugins/contract.js'

interface Files {
  readonly cert: string | undefined
  readonly key: string | undefined
  /** undefined: the system's authorities. */
  readonly ca: string | undefined
}

/** Loaded when it is needed: it takes 3 MB. */
const tls = (): typeof import('node:tls') => process.getBuiltinModule('node:tls')

export class TlsClient {
  /** The same for the same files. */
  readonly id: string
  readonly #files: Files
  #context: SecureContext | undefined

  constructor(files: Files) {
    this.#files = files
    this.id = createHash('sha256')
      .update(JSON.stringify([files.cert, files.key, files.ca]))
      .digest('base64')
  }

  /** Made once: reading all authorities of a system takes some 30 ms. */
  get context(): SecureContext {
    this.#context ??= tls().createSecureContext(contextOptions(this.#files, this.#files.ca ?? systemAuthorities()))
    return this.#context
  }

  /** Never shown: it holds keys. */
  toJSON(): string {
    return this.id
  }
}

/** Where systems keep their authorities; Node brings a list of its own, which a private authority is not on. */
const SYSTEM_BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/tls/cacert.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

/** Reads the files of a `tls` line: CA; CERT KEY; CERT KEY CA. In `check` a missing one is a note. */
export function readTls(args: readonly Argument[], ctx: SetupContext): TlsClient {
  const read = (arg: Argument | undefined, what: string): string | undefined => {
    if (arg === undefined) return undefined
    try {
      return readFileSync(ctx.path(arg.text), 'utf8')
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      const reason = code === 'ENOENT' ? 'no such file or directory' : (code ?? 'unreadable')
      const message = `${what}: open ${arg.text}: ${reason}`
      if (!ctx.checking) throw ctx.fail(message, arg)
      ctx.note(message, arg)
      return undefined
    }
  }
  const pair = args.length >= 2
  const files: Files = {
    cert: read(pair ? args[0] : undefined, 'could not load TLS cert'),
    key: read(pair ? args[1] : undefined, 'could not load TLS cert'),
    ca: read(args.length === 1 ? args[0] : args[2], 'error reading'),
  }
  if (args.length > 0) checkFiles(files, args, ctx)
  return new TlsClient(files)
}

/** A key that does not fit its certificate is found out now, not at the first query. */
function checkFiles(files: Files, args: readonly Argument[], ctx: SetupContext): void {
  if (ctx.checking && files.cert === undefined && files.key === undefined && files.ca === undefined) return
  try {
    tls().createSecureContext(contextOptions(files, files.ca ?? ''))
  } catch (error) {
    throw ctx.fail(`could not load TLS cert: ${(error as Error).message}`, args[0])
  }
}

const contextOptions = (files: Files, ca: string | string[]): SecureContextOptions => ({
  minVersion: 'TLSv1.2',
  ...(ca === '' ? {} : { ca }),
  ...(files.cert === undefined ? {} : { cert: files.cert }),
  ...(files.key === undefined ? {} : { key: files.key }),
})

function systemAuthorities(): string[] {
  const bundle = process.env.SSL_CERT_FILE ?? SYSTEM_BUNDLES.find((file) => existsSync(file))
  if (bundle === undefined || !existsSync(bundle)) return [...tls().rootCertificates]
  return [...tls().rootCertificates, readFileSync(bundle, 'utf8')]
}
