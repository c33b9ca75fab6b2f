/** Every way to reach the API server, with the permissions of the README and none else; tokens that end; permissions that are missing. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { parse } from 'yaml'
import { root, until } from '../support/process.js'
import { type Json, tokenOf } from './harness/accounts.js'
import { kubeconfig } from './harness/control-plane.js'
import { namespace, service, slice } from './harness/objects.js'
import { type Subject, type SubjectOptions, startSubject } from './harness/subject.js'
import { installImports } from './options.js'
import type { World } from './world.js'

const NS = 'e2e-access'
const NAME = `web.${NS}.svc.cluster.local`
const ANSWER = ['NOERROR', '10.247.0.1']
/** All that the server ever asks for, and the API group of each. */
const KINDS = [
  ['services', ''],
  ['namespaces', ''],
  ['endpointslices', 'discovery.k8s.io'],
  ['pods', ''],
  ['serviceimports', 'multicluster.x-k8s.io'],
] as const

export function accesses(get: () => World): void {
  const subjects: Subject[] = []
  const start = async (options: SubjectOptions): Promise<Subject> => {
    const subject = await startSubject(options)
    subjects.push(subject)
    return subject
  }
  const bind = (kind: string, who: string): Promise<Json> =>
    get().api.create('clusterrolebindings', {
      metadata: { name: `e2e-${who}` },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cairndns' },
      subjects: [kind === 'User' ? { kind, name: who, apiGroup: 'rbac.authorization.k8s.io' } : { kind, name: who, namespace: NS }],
    })

  beforeAll(async () => {
    const { api } = get()
    await api.create('namespaces', namespace(NS))
    await api.create('services', service(NS, 'web', { clusterIP: 'None' }))
    await api.create('endpointslices', slice(NS, 'web-1', 'web', [{ address: '10.247.0.1' }]))
    const readme = readFileSync(`${root}/plugins/kubernetes/README.md`, 'utf8')
    const role = parse(/```yaml\n(apiVersion: rbac[\s\S]*?)```/.exec(readme)?.[1] ?? '')
    await api.create('clusterroles', role)
    await bind('User', 'cairndns')
    await bind('ServiceAccount', 'dns')
    await api.create('serviceaccounts', { metadata: { namespace: NS, name: 'dns' } })
  })
  afterAll(async () => {
    for (const subject of subjects) await subject.stop()
    await get().api.delete('namespaces', '', NS)
  })

  it('endpoint with tls: a client certificate', async () => {
    const { file, url } = get().own!
    const files = `${file('client.crt')} ${file('client.key')} ${file('ca.crt')}`
    const subject = await start({ kubernetes: `endpoint ${url}\n        tls ${files}\n        pods verified` })
    await subject.sees(ANSWER, NAME)
    expect(await subject.http(subject.ready, '/ready')).toEqual({ status: 200, body: 'OK' })
  })

  it('kubeconfig: client certificate, token, exec', async () => {
    const { file, url } = get().own!
    const ca = readFileSync(file('ca.crt'), 'utf8')
    const base64 = (name: string): string => readFileSync(file(name)).toString('base64')
    const token = await tokenOf(get().api, NS, 'dns')
    const credential = { apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status: { token } }
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: 'echo',
      args: [JSON.stringify(credential)],
      interactiveMode: 'Never',
    }
    const users: Json[] = [
      { 'client-certificate-data': base64('client.crt'), 'client-key-data': base64('client.key') },
      { token },
      { exec },
    ]
    for (const [i, user] of users.entries()) {
      writeFileSync(file(`kubeconfig-${i}`), kubeconfig(url, ca, user))
      const subject = await start({ kubernetes: `kubeconfig ${file(`kubeconfig-${i}`)} main` })
      await subject.sees(ANSWER, NAME)
    }
  })

  it('in the cluster: a service account, whose token is revoked and renewed', async () => {
    const { api, own } = get()
    const { file, url } = own!
    const { hostname, port } = new URL(url)
    // Bound to an object: the token ends with it.
    const secret = { metadata: { namespace: NS, name: 'binding' }, stringData: { a: 'b' } }
    await api.create('secrets', secret)
    writeFileSync(file('token'), await tokenOf(api, NS, 'dns', 'binding'))
    const env = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port, CAIRNDNS_SERVICE_ACCOUNT: own!.folder }
    const subject = await start({ kubernetes: 'pods verified', env })
    await subject.sees(ANSWER, NAME)
    await api.delete('secrets', NS, 'binding')
    // New connections are needed for the old token to be refused.
    await own!.stopApi()
    await own!.startApi()
    await api.patch('endpointslices', NS, 'web-1', { endpoints: [{ addresses: ['10.247.0.2'] }] })
    await subject.server.saw(/Unauthorized/, 60_000)
    await subject.sees(ANSWER, NAME)
    writeFileSync(file('token'), await tokenOf(api, NS, 'dns'))
    await subject.sees(['NOERROR', '10.247.0.2'], NAME, 'A', 60_000)
    await api.patch('endpointslices', NS, 'web-1', { endpoints: [{ addresses: ['10.247.0.1'] }] })
    await subject.sees(ANSWER, NAME)
  })

  it('a missing permission is named in the log and in /ready, whichever kind it is for, and used as soon as it is granted', async () => {
    const { api, own } = get()
    await installImports(get())
    const folder = own!.file('limited')
    mkdirSync(folder)
    writeFileSync(`${folder}/token`, 'limited-token')
    writeFileSync(`${folder}/ca.crt`, readFileSync(own!.file('ca.crt')))
    const { hostname, port } = new URL(own!.url)
    const env = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port, CAIRNDNS_SERVICE_ACCOUNT: folder }
    await api.create('clusterroles', { metadata: { name: 'e2e-half' }, rules: [] })
    await api.create('clusterrolebindings', {
      metadata: { name: 'e2e-half' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'e2e-half' },
      subjects: [{ kind: 'User', name: 'limited', apiGroup: 'rbac.authorization.k8s.io' }],
    })
    const options = {
      kubernetes: 'pods verified\n        multicluster clusterset.local\n        startup_timeout 1s',
      zones: 'cluster.local clusterset.local in-addr.arpa ip6.arpa',
      env,
    }
    for (const [resource, group] of KINDS) {
      const rules = KINDS.filter(([other]) => other !== resource).map(([other, of]) => ({
        apiGroups: [of],
        resources: [other],
        verbs: ['list', 'watch'],
      }))
      await api.patch('clusterroles', '', 'e2e-half', { rules })
      const subject = await start(options)
      const words = `verb "(list|watch)" on resource "${resource}" of API group "${group}"`
      const only = new RegExp(`^kubernetes\nkubernetes: permission is missing: ${words}$`)
      let last = ''
      await until(
        async () => {
          const { status, body } = await subject.http(subject.ready, '/ready')
          last = `${status} ${body}`
          return status === 503 && only.test(body)
        },
        30_000,
        () => `without ${resource}: ${last}`,
      )
      await subject.server.saw(new RegExp(`cannot (list|watch) resource "${resource}" in API group "${group}"`), 30_000)
      expect((await subject.answers(NAME))[0]).not.toBe('NOERROR')
      if (resource !== KINDS.at(-1)?.[0]) await subjects.pop()!.stop()
    }
    const subject = subjects.at(-1)!
    await bind('User', 'limited')
    await subject.sees(ANSWER, NAME, 'A', 60_000)
    await until(
      async () => (await subject.http(subject.ready, '/ready')).body === 'OK',
      30_000,
      () => 'still not ready',
    )
  })
}
