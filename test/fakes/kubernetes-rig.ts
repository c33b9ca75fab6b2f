/** Test helper: the plugin over records given by hand, replies as text. */

import module from '../../plugins/kubernetes/index.js'
import type { Kubernetes } from '../../plugins/kubernetes/kubernetes.js'
import type { ClusterRecord, PortRecord, ServicePut, SlicePut } from '../../plugins/kubernetes/objects.js'
import { parseCorefile } from '../../src/corefile/index.js'
import { type Message, typeName } from '../../src/dns/index.js'
import { type Handler, isMessage, type Reply, ServeError } from '../../src/plugins/contract.js'
import { type FakeContext, fakeBlock, fakeContext, type QueryOptions, query } from '../../src/plugins/testing.js'

export const port = (name: string, number: number, protocol = 'TCP'): PortRecord => ({ name, protocol, port: number })

export const namespace = (name: string): ClusterRecord => ({ op: 'put', kind: 'namespace', name })
export const service = (
  path: string,
  addresses: readonly string[],
  ports: readonly PortRecord[] = [],
  over: Partial<ServicePut> = {},
): ServicePut => ({
  op: 'put',
  kind: 'service',
  ...split(path),
  type: 'ClusterIP',
  ...(addresses[0] === 'None' ? { headless: true } : { addresses }),
  ...(ports.length > 0 ? { ports } : {}),
  ...over,
})
export const alias = (path: string, externalName: string): ServicePut => service(path, [], [], { type: 'ExternalName', externalName })
export const slice = (path: string, owner: string, addresses: readonly string[], over: Partial<SlicePut> = {}): SlicePut => ({
  op: 'put',
  kind: 'slice',
  ...split(path),
  service: owner,
  addresses,
  ...over,
})
export const gone = (
  kind: ClusterRecord extends infer R ? (R extends { op: 'delete'; kind: infer K } ? K : never) : never,
  path: string,
): ClusterRecord => ({
  op: 'delete',
  kind,
  ...split(path),
})
export const synced: ClusterRecord = {
  op: 'state',
  synced: true,
  serial: 1_700_000_000,
  multiclusterSerial: 1_700_000_001,
  externalSerial: 0,
}

function split(path: string): { namespace: string; name: string } {
  const [ns = '', name = ''] = path.split('/')
  return { namespace: ns, name }
}

export interface Rig {
  readonly plugin: Kubernetes
  readonly ctx: FakeContext
  apply(...records: ClusterRecord[]): void
  ask(name: string, type: string, options?: QueryOptions): Promise<Message>
  /** "NOERROR aa | answers | authorities | additionals", records as text in order. */
  text(name: string, type: string, options?: QueryOptions): Promise<string>
}

const noNext: Handler = () => {
  throw new ServeError('no next plugin found')
}

export function rig(
  corefile: string,
  records: readonly ClusterRecord[],
  over: Parameters<typeof fakeContext>[1] & { next?: Handler } = {},
): Rig {
  const { next = noNext, ...rest } = over
  const ctx = fakeContext('kubernetes', { block: fakeBlock(), ...rest })
  const uses = parseCorefile(`. {\n${corefile}\n}\n`, 'Corefile').blocks[0]!.directives
  const plugin = module.setup(uses, ctx) as Kubernetes
  const replica = [...ctx.replicas.values()][0]!
  replica.begin()
  replica.apply(records.map((record) => structuredClone(record)))
  replica.swap()
  const ask = async (name: string, type: string, options?: QueryOptions): Promise<Message> => {
    const reply: Reply = await plugin.serveDNS(query(name, type, options), next)
    if (!isMessage(reply)) throw new Error('no message')
    return reply
  }
  return {
    plugin,
    ctx,
    apply: (...more) => replica.apply(more),
    ask,
    text: async (name, type, options) => show(await ask(name, type, options)),
  }
}

const RCODES = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED']

function show(reply: Message): string {
  const section = (records: Message['answers']): string => records.map(showRecord).join('; ')
  const flags = [reply.aa ? ' aa' : '', reply.tc ? ' tc' : ''].join('')
  return [`${RCODES[reply.rcode]}${flags}`, section(reply.answers), section(reply.authorities), section(reply.additionals)]
    .join(' | ')
    .trim()
}

function showRecord({ name, type, ttl, data }: Message['answers'][number]): string {
  const head = `${name} ${ttl} ${typeName(type)}`
  switch (data.kind) {
    case 'A':
    case 'AAAA':
      return `${head} ${data.address}`
    case 'NAME':
      return `${head} ${data.target}`
    case 'SRV':
      return `${head} ${data.weight} ${data.port} ${data.target}`
    case 'SOA':
      return `${head} ${data.serial} ${data.minimum}`
    case 'TXT':
      return `${head} ${data.strings.join(' ')}`
    default:
      return head
  }
}
