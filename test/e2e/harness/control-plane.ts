/** etcd, kube-apiserver and kube-controller-manager on loopback, in a folder of their own. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts, until } from '../../support/process.js'
import { Api, type ApiTarget, type Json } from './api.js'
import { type Daemon, daemon } from './processes.js'

const ADMIN = 'admin-token-of-a-test'

export interface ControlPlane {
  readonly folder: string
  readonly api: Api
  readonly url: string
  /** PEM files: `ca.crt`, `client.crt` and `client.key` of user "cairndns" in no group. */
  file(name: string): string
  stopApi(): Promise<void>
  startApi(): Promise<void>
  /** Makes etcd forget all revisions but the newest. */
  compact(): Promise<void>
  /** A token for a user of this name, valid at once. */
  readonly versions: string
  stop(): Promise<void>
}

export async function startControlPlane(binaries: string): Promise<ControlPlane> {
  const folder = mkdtempSync(join(tmpdir(), 'cairndns-e2e-'))
  const [client, peer, secure, manager] = (await freePorts(4)) as [number, number, number, number]
  const file = (name: string): string => join(folder, name)
  const binary = (name: string): string => join(binaries, name)
  makeKeys(folder)
  writeFileSync(file('tokens.csv'), `${ADMIN},admin,1,"system:masters"\nlimited-token,limited,2\n`)

  const etcdUrl = `http://127.0.0.1:${client}`
  const etcd = daemon(process.env.ETCD || binary('etcd'), etcdFlags(file('etcd'), etcdUrl, `http://127.0.0.1:${peer}`), file('etcd.log'))
  const url = `https://127.0.0.1:${secure}`
  const ca = readFileSync(file('ca.crt'), 'utf8')
  const api = new Api(tokenTarget(url, ca, ADMIN))
  let server: Daemon | undefined
  const startApi = async (): Promise<void> => {
    const started = daemon(binary('kube-apiserver'), apiFlags(folder, secure, etcdUrl), file('kube-apiserver.log'))
    server = started
    let gone = false
    void started.exited.then(() => (gone = true))
    await until(
      () => gone || api.get('/readyz').then(isOk, () => false),
      120_000,
      () => `the API server does not get ready:\n${started.tail()}`,
    )
    if (gone) throw new Error(`the API server ended:\n${started.tail()}`)
  }
  await startApi()

  let controllers: Daemon | undefined
  if (existsSync(binary('kube-controller-manager'))) {
    writeFileSync(file('manager.kubeconfig'), kubeconfig(url, ca, { token: ADMIN }))
    controllers = daemon(binary('kube-controller-manager'), managerFlags(folder, manager), file('kube-controller-manager.log'))
  }
  const version = await api.get('/version')
  return {
    folder,
    api,
    url,
    file,
    startApi,
    stopApi: async () => server?.stop('SIGKILL'),
    compact: () => compact(etcdUrl),
    versions: `Kubernetes ${version.gitVersion}, etcd ${(await etcdRequest(etcdUrl, '/version', undefined)).etcdserver}`,
    async stop() {
      api.close()
      await controllers?.stop()
      await server?.stop()
      await etcd.stop()
      if (process.env.KEEP === undefined) rmSync(folder, { recursive: true, force: true })
      else console.log(`kept: ${folder}`)
    },
  }
}

const isOk = (body: unknown): boolean => body === 'ok'

export const tokenTarget = (url: string, ca: string, token: string): ApiTarget => ({
  base: new URL(url),
  options: async () => ({ ca, headers: { authorization: `Bearer ${token}` } }),
})

export function kubeconfig(server: string, ca: string, user: Json): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'main',
    clusters: [{ name: 'main', cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
    users: [{ name: 'main', user }],
    contexts: [{ name: 'main', context: { cluster: 'main', user: 'main' } }],
  })
}

function etcdFlags(data: string, client: string, peer: string): string[] {
  return [
    `--data-dir=${data}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    '--log-level=error',
  ]
}

function apiFlags(folder: string, port: number, etcd: string): string[] {
  return [
    `--etcd-servers=${etcd}`,
    `--secure-port=${port}`,
    '--bind-address=127.0.0.1',
    `--tls-cert-file=${folder}/server.crt`,
    `--tls-private-key-file=${folder}/server.key`,
    `--client-ca-file=${folder}/ca.crt`,
    `--token-auth-file=${folder}/tokens.csv`,
    '--authorization-mode=RBAC',
    `--service-account-key-file=${folder}/account.key`,
    `--service-account-signing-key-file=${folder}/account.key`,
    '--service-account-issuer=https://kubernetes.default.svc',
    '--service-cluster-ip-range=10.96.0.0/16,fd00:96::/112',
    '--endpoint-reconciler-type=none',
    // Pods of the tests have no service account and no node that runs them.
    '--disable-admission-plugins=ServiceAccount',
  ]
}

function managerFlags(folder: string, port: number): string[] {
  return [
    `--kubeconfig=${folder}/manager.kubeconfig`,
    `--secure-port=${port}`,
    '--bind-address=127.0.0.1',
    `--cert-dir=${folder}`,
    '--leader-elect=false',
    '--controllers=endpointslice-controller,endpointslice-mirroring-controller,namespace-controller',
    '--concurrent-service-endpoint-syncs=5',
  ]
}

/** A CA, a server certificate for loopback, a client certificate, and the key that service account tokens are signed with. */
function makeKeys(folder: string): void {
  mkdirSync(folder, { recursive: true })
  const openssl = (...args: string[]): void => void execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' })
  const key = (name: string): void => openssl('ecparam', '-genkey', '-name', 'prime256v1', '-noout', '-out', name)
  for (const name of ['ca.key', 'server.key', 'client.key', 'account.key']) key(name)
  openssl('req', '-x509', '-new', '-key', 'ca.key', '-days', '2', '-subj', '/CN=e2e-ca', '-out', 'ca.crt')
  const signed = (name: string, subject: string, extensions: string): void => {
    writeFileSync(join(folder, `${name}.ext`), extensions)
    openssl('req', '-new', '-key', `${name}.key`, '-subj', subject, '-out', `${name}.csr`)
    const into = ['-out', `${name}.crt`, '-extfile', `${name}.ext`]
    openssl('x509', '-req', '-in', `${name}.csr`, '-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', ...into)
  }
  signed('server', '/CN=kube-apiserver', 'subjectAltName=IP:127.0.0.1,IP:::1,DNS:localhost\nextendedKeyUsage=serverAuth\n')
  signed('client', '/CN=cairndns', 'extendedKeyUsage=clientAuth\n')
}

async function etcdRequest(base: string, path: string, body: Json): Promise<Json> {
  const answer = await fetch(base + path, body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) })
  if (!answer.ok) throw new Error(`etcd ${path}: ${answer.status} ${await answer.text()}`)
  return answer.json()
}

async function compact(etcd: string): Promise<void> {
  const { header } = await etcdRequest(etcd, '/v3/kv/range', { key: Buffer.from('x').toString('base64') })
  await etcdRequest(etcd, '/v3/kv/compaction', { revision: header.revision, physical: true })
}
