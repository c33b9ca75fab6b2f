import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { Message, Name } from '../../src/dns/index.js'
import { address, FakeUpstream, reply, silent } from './upstream.js'

const question = (id: number): Buffer => Message.query(Name.parse('www.example.org.'), 1, { id }).toBuffer()
let upstream: FakeUpstream
afterEach(() => upstream.stop())

describe('the fake upstream', () => {
  it('answers over UDP and TCP on one port', async () => {
    upstream = await FakeUpstream.start(address('192.0.2.7'))
    const udp = createSocket('udp4')
    udp.send(question(5), upstream.port, '127.0.0.1')
    const [data] = (await once(udp, 'message')) as [Buffer]
    udp.close()
    expect(Message.view(data).id).toBe(5)
    expect(Message.view(data).answers[0]?.data).toEqual({ kind: 'A', address: '192.0.2.7' })

    const tcp = connect(upstream.port, '127.0.0.1')
    tcp.write(Buffer.concat([Buffer.from([0, question(6).length]), question(6)]))
    const [frame] = (await once(tcp, 'data')) as [Buffer]
    tcp.destroy()
    expect(Message.view(frame, 2).id).toBe(6)
    expect(upstream.asked.map((asked) => `${asked.proto} ${asked.question}`)).toEqual(['udp www.example.org. A', 'tcp www.example.org. A'])
  })

  it('comes back on its port after it was down', async () => {
    upstream = await FakeUpstream.start(silent)
    const { port } = upstream
    await upstream.down()
    await upstream.up()
    expect(upstream.port).toBe(port)
  })

  it('sends garbage, foreign datagrams and late replies as told', async () => {
    upstream = await FakeUpstream.start((asked) => [
      { send: Buffer.from('garbage') },
      { send: reply(asked, ['www.example.org. 60 IN A 203.0.113.1']), elsewhere: true },
      { after: 20, send: reply(asked, ['www.example.org. 60 IN A 192.0.2.1']) },
    ])
    const udp = createSocket('udp4')
    const ports: number[] = []
    const done = new Promise<void>((resolve) => {
      udp.on('message', (_, peer) => {
        ports.push(peer.port)
        if (ports.length === 3) resolve()
      })
    })
    udp.send(question(1), upstream.port, '127.0.0.1')
    await done
    udp.close()
    expect(ports.filter((port) => port === upstream.port)).toHaveLength(2)
    expect(ports[2]).toBe(upstream.port)
  })
})
