/** The cluster's zones by AXFR: whole, in step with what is answered, and what CoreDNS hands out. */
import net from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { formatRecord, Message, Name, TYPE } from '../../src/dns/index.js'
import { until } from '../support/process.js'
import { namespace, service, slice } from './harness/objects.js'
import { type Subject, startSubject } from './harness/subject.js'
import type { World } from './world.js'

const NS = 'e2e-transfer'
const ZONE = 'cluster.local'
const name = (labels: string): string => `${labels}.${NS}.svc.${ZONE}.`

export function transfers(get: () => World): void {
  let ours: Subject
  let theirs: Subject | undefined

  beforeAll(async () => {
    const { api, proxy } = get()
    await api.create('namespaces', namespace(NS))
    await api.create('services', service(NS, 'web', { ipFamilyPolicy: 'SingleStack' }))
    await api.create('services', service(NS, 'db', { clusterIP: 'None' }))
    await api.create('endpointslices', slice(NS, 'db-1', 'db', [{ address: '10.252.0.1', hostname: 'db-0' }, { address: '10.252.0.2' }]))
    await api.create('services', service(NS, 'outside', { type: 'ExternalName', externalName: 'www.example.org', ports: undefined }))
    const options = { kubernetes: `endpoint ${proxy.url}\n        ttl 5`, more: 'transfer {\n        to *\n    }' }
    ours = await startSubject(options)
    const command = process.env.COREDNS
    theirs = command ? await startSubject({ ...options, command }) : undefined
    for (const subject of [ours, theirs]) await subject?.sees(['NOERROR', '10.252.0.1', '10.252.0.2'], name('db'))
  })
  afterAll(async () => {
    await ours?.stop()
    await theirs?.stop()
    await get().api.delete('namespaces', '', NS)
  })

  it('has every record of the zone between two SOA records', async () => {
    const records = await transfer(ours.dns, ZONE)
    expect(records[0]).toMatch(/SOA/)
    expect(records.at(-1)).toBe(records[0])
    const { spec } = await get().api.get(`/api/v1/namespaces/${NS}/services/web`)
    const mine = records.filter((line) => line.includes(`.${NS}.svc.`))
    expect([...new Set(mine)].sort()).toEqual(
      [
        `${name('web')} 5 IN A ${spec.clusterIP}`,
        `${name('web')} 5 IN SRV 0 100 80 ${name('web')}`,
        `${name('_http._tcp.web')} 5 IN SRV 0 100 80 ${name('web')}`,
        `${name('db')} 5 IN A 10.252.0.1`,
        `${name('db')} 5 IN A 10.252.0.2`,
        `${name('db-0.db')} 5 IN A 10.252.0.1`,
        `${name('10-252-0-2.db')} 5 IN A 10.252.0.2`,
        `${name('_http._tcp.db')} 5 IN SRV 0 50 80 ${name('db-0.db')}`,
        `${name('_http._tcp.db')} 5 IN SRV 0 50 80 ${name('10-252-0-2.db')}`,
        `${name('outside')} 5 IN CNAME www.example.org.`,
      ].sort(),
    )
    if (theirs === undefined) return
    const other = (await transfer(theirs.dns, ZONE)).filter((line) => line.includes(`.${NS}.svc.`))
    expect([...new Set(mine)].sort()).toEqual([...new Set(other)].sort())
  })

  it('has a new serial when something changed', async () => {
    const serial = async (): Promise<number> => Number((await transfer(ours.dns, ZONE))[0]!.split(' ')[6])
    // Serials are seconds, and at most one ahead.
    await until(
      async () => (await serial()) < Math.floor(Date.now() / 1000),
      5000,
      () => 'the serial stays ahead',
    )
    const before = await serial()
    await get().api.patch('endpointslices', NS, 'db-1', { endpoints: [{ addresses: ['10.252.0.7'] }] })
    await ours.sees(['NOERROR', '10.252.0.7'], name('db'))
    expect(await serial()).toBeGreaterThan(before)
    const records = await transfer(ours.dns, ZONE)
    expect(records).toContain(`${name('10-252-0-7.db')} 5 IN A 10.252.0.7`)
    expect(records.join('\n')).not.toContain('10.252.0.2')
  })
}

/** All records of a zone as lines, with one blank between fields. */
function transfer(port: number, zone: string): Promise<string[]> {
  const query = Message.query(Name.parse(zone), TYPE.AXFR, { id: 7 }).toBuffer()
  return new Promise((resolve, reject) => {
    const records: string[] = []
    let received = Buffer.alloc(0)
    const socket = net.connect(port, '127.0.0.1', () => {
      socket.write(Buffer.concat([Buffer.from([query.length >> 8, query.length & 255]), query]))
    })
    socket.setTimeout(20_000, () => socket.destroy(new Error(`the transfer came to a halt after ${records.length} records`)))
    socket.on('error', reject)
    socket.on('close', () => reject(new Error(`the transfer ended after ${records.length} records`)))
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
        const end = 2 + received.readUInt16BE(0)
        const message = Message.view(received.subarray(2, end))
        if (message.rcode !== 0) reject(new Error(`rcode ${message.rcode}`))
        records.push(...message.answers.map((rr) => formatRecord(rr).replaceAll('\t', ' ')))
        received = received.subarray(end)
      }
      if (records.length < 2 || records[0] !== records.at(-1)) return
      resolve(records)
      socket.destroy()
    })
  })
}
