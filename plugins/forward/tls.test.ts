import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { query } from '../../src/plugins/testing.js'
import { CA, CERT, KEY } from '../../test/fakes/certificate.js'
import { type Answer, address, FakeUpstream } from '../../test/fakes/upstream.js'
import { type Started, start } from '../../test/support/forward.js'

const open: { stop(): unknown }[] = []
afterEach(async () => {
  for (const thing of open.splice(0).reverse()) await thing.stop()
})

async function upstream(answer: Answer, options = {}): Promise<FakeUpstream> {
  const fake = await FakeUpstream.start(answer, options)
  open.push(fake)
  return fake
}
async function forward(text: string): Promise<Started> {
  const started = await start(text)
  open.push(started)
  return started
}
const www = (options = {}): ReturnType<typeof query> => query('www.example.org.', 'A', options)

describe('TLS upstreams', () => {
  const folder = mkdtempSync(join(tmpdir(), 'forward-'))
  writeFileSync(join(folder, 'ca.pem'), CA)
  const ca = join(folder, 'ca.pem')
  const tls = { tls: { cert: CERT, key: KEY } }

  it('are asked over one verified connection, by name, and sessions are resumed', async () => {
    const u = await upstream(address('192.0.2.1'), tls)
    const { ask, context } = await forward(`forward . tls://${u.address} {\n tls ${ca}\n tls_servername dns.example\n}`)
    await Promise.all([ask(www()), ask(www({ proto: 'tcp' })), ask(www())])
    expect(u.connections).toBe(1)
    expect(u.count('', 'tls')).toBe(3)
    u.cut()
    await ask(www())
    expect([u.connections, u.resumed]).toEqual([2, 1])
    expect([...context.metrics.values.keys()].some((key) => key.includes('proto="tcp-tls"'))).toBe(true)
  })

  it('are verified against their address without a name, and by the name behind the percent sign', async () => {
    const u = await upstream(address('192.0.2.1'), tls)
    const { ask } = await forward(`forward . tls://${u.address} {\n tls ${ca}\n}`)
    expect((await ask(www())).count(1)).toBe(1)
    const named = await forward(`forward . tls://127.0.0.1%localhost:${u.port} {\n tls ${ca}\n}`)
    expect((await named.ask(www())).count(1)).toBe(1)
  })

  it.each([
    ['of another name', `tls ${ca}\n tls_servername other.example`],
    ['of an unknown authority', 'tls'],
  ])('with a certificate %s are refused', async (_, options) => {
    const u = await upstream(address('192.0.2.1'), tls)
    const { ask } = await forward(`forward . tls://${u.address} {\n ${options}\n max_fails 0\n}`)
    await expect(ask(www())).rejects.toThrow(/^tls: /)
    expect(u.count()).toBe(0)
  })
})
