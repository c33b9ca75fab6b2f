/** `tls`: set-up. Certificates are read and tried here, so that a bad one is found before anything serves with it. */
import { closeSync, openSync, readFileSync } from 'node:fs'
import { isAbsolute, resolve } from 'node:path'
import { type Argument, type Directive, type PluginModule, quote, type SetupContext, type TlsConfig, wrongCount } from '../contract.js'
import { checkAcme } from './acme.js'

const CLIENT_AUTH = ['nocert', 'request', 'require', 'verify_if_given', 'require_and_verify'] as const
type ClientAuth = TlsConfig['clientAuth']

const module: PluginModule = {
  name: 'tls',
  apiVersion: 1,
  setup(uses, ctx) {
    for (const use of uses) {
      if (use.args.length === 0) checkAcme(use, ctx)
      ctx.block.tls = manual(use, ctx) ?? ctx.block.tls
    }
    return null
  },
}
export default module

/** `tls CERT KEY [CA] { client_auth MODE; keylog FILE }`; undefined if `check` runs on a machine without the files. */
function manual(use: Directive, ctx: SetupContext): TlsConfig | undefined {
  const [cert, key, ca, more] = use.args
  if (cert === undefined || key === undefined || more !== undefined) throw ctx.error(wrongCount(use), use.args.at(-1) ?? use)
  let clientAuth: ClientAuth = 'nocert'
  let keylog: string | undefined
  for (const option of use.block ?? []) {
    const [value, extra] = option.args
    if (option.name !== 'client_auth' && option.name !== 'keylog')
      throw ctx.error(`unknown option '${option.name}'`, option, ['client_auth', 'keylog'])
    if (value === undefined || extra !== undefined) throw ctx.error(wrongCount(option), extra ?? option)
    if (option.name === 'keylog') keylog = keylogFile(value, ctx)
    else if (isClientAuth(value.text)) clientAuth = value.text
    else throw ctx.error(`unknown authentication type '${value.text}'`, value, CLIENT_AUTH)
  }
  const read = (file: Argument, what: (error: Error) => string): string | undefined => readFile(file, what, ctx)
  const pair = (error: Error): string => `could not load TLS cert: ${error.message}`
  const config = {
    cert: read(cert, pair),
    key: read(key, pair),
    ca: ca && read(ca, (error) => `error reading ${ca.text}: ${error.message}`),
    clientAuth,
    keylog,
  }
  if (config.cert === undefined || config.key === undefined || (ca !== undefined && config.ca === undefined)) return undefined
  tryOut(config, use, ctx)
  return config
}

const isClientAuth = (text: string): text is ClientAuth => (CLIENT_AUTH as readonly string[]).includes(text)

/** The text of a file; in `check` a file that is not there is a note. */
function readFile(file: Argument, what: (error: Error) => string, ctx: SetupContext): string | undefined {
  try {
    return readFileSync(ctx.path(file.text), 'utf8')
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    const text = what(missing ? new Error(`open ${ctx.path(file.text)}: no such file or directory`) : (error as Error))
    if (!ctx.checking) throw ctx.fail(text, file)
    ctx.note(text, file)
    return undefined
  }
}

function tryOut({ cert, key, ca }: TlsConfig, use: Directive, ctx: SetupContext): void {
  try {
    needCertificate(cert)
    process.getBuiltinModule('node:tls').createSecureContext({ cert, key })
  } catch (error) {
    throw ctx.fail(`could not load TLS cert: ${(error as Error).message}`, use)
  }
  if (ca === undefined) return
  try {
    needCertificate(ca)
    process.getBuiltinModule('node:tls').createSecureContext({ ca })
  } catch (error) {
    throw ctx.fail(`could not read root certs: ${(error as Error).message}`, use)
  }
}

/** Node takes a file without any for no certificate at all. */
function needCertificate(pem: string | undefined): void {
  if (!pem?.includes('-----BEGIN CERTIFICATE-----')) throw new Error('no certificate in the file')
}

/** The absolute path, once it is sure that it can be written to. */
function keylogFile(file: Argument, ctx: SetupContext): string {
  const path = isAbsolute(file.text) ? file.text : resolve(ctx.path(file.text))
  if (ctx.checking) return path
  try {
    closeSync(openSync(path, 'a', 0o600))
  } catch (error) {
    throw ctx.error(`unable to write TLS Key Log to ${quote(path)}: ${(error as Error).message}`, file)
  }
  ctx.log.warning(`Writing TLS Key Log to ${quote(path)}`)
  return path
}
