import { afterEach, describe, expect, it } from 'vitest'
import { type Message, OPTION } from '../../src/dns/index.js'
import { query } from '../../src/plugins/testing.js'
import { type Answer, type Asked, FakeUpstream, reply } from '../../test/fakes/upstream.js'
import { type Started, start } from '../../test/support/forward.js'

let upstream: FakeUpstream
let forward: Started
afterEach(async () => {
  forward.stop()
  await upstream.stop()
})

const SERVER = Buffer.from('serverserver')
const sent = (asked: Asked): Buffer | undefined => asked.message.edns?.options.find(({ code }) => code === OPTION.COOKIE)?.data
const records = (asked: Asked): string[] => [`${asked.question.split(' ')[0]} 60 IN A 192.0.2.${asked.proto === 'udp' ? 1 : 2}`]

/** A reply with this cookie (none: undefined), and an OPT record of another size. */
function says(asked: Asked, cookie: Buffer | undefined, rcode = 0): Message {
  const options = cookie === undefined ? [] : [{ code: OPTION.COOKIE, data: cookie }]
  const edns = { size: 1232, extendedRcode: rcode >> 4, version: 0, dnssecOk: false, z: 0, options }
  return reply(asked, rcode === 0 ? records(asked) : [], { edns, rcode })
}
const right: Answer = (asked) =>
  asked.proto === 'udp' ? says(asked, Buffer.concat([sent(asked)!.subarray(0, 8), SERVER])) : reply(asked, records(asked))

async function begin(answer: Answer, option = 'cookies'): Promise<void> {
  upstream = await FakeUpstream.start(answer)
  forward = await start(`forward . ${upstream.address} {\n ${option}\n}`)
}
const ask = (options = {}): Promise<Message> => forward.ask(query('www.example.org.', 'A', options))

describe('cookies', () => {
  it('go along with the last one that the upstream gave, and stay between the two', async () => {
    await begin(right)
    const first = await ask({ size: 1400 })
    expect(first.edns!.options).toEqual([])
    await ask({ size: 1400, options: [{ code: OPTION.COOKIE, data: Buffer.from('12345678') }] })
    const [one, two] = upstream.asked.map((asked) => sent(asked)!)
    expect([one!.length, two!.length]).toEqual([8, 8 + SERVER.length])
    expect(two!.subarray(0, 8)).toEqual(one)
    expect(two!.subarray(8)).toEqual(SERVER)
    expect(upstream.asked[1]!.message.edns!.options).toHaveLength(1)
  })

  it('make an OPT record for a client that sent none, of the size that it takes', async () => {
    await begin(right)
    const message = await ask()
    expect(message.count(1)).toBe(1)
    expect(upstream.asked[0]!.message.edns).toMatchObject({ size: 512 })
  })

  it('are not sent by TCP, nor unless asked for', async () => {
    await begin((asked) => reply(asked, records(asked)), 'prefer_udp')
    await ask({ size: 1232 })
    expect(sent(upstream.asked[0]!)).toBeUndefined()
    forward.stop()
    forward = await start(`forward . ${upstream.address} {\n cookies\n}`)
    await ask({ size: 1232, proto: 'tcp' })
    expect(sent(upstream.asked[1]!)).toBeUndefined()
  })

  it('that are not ours mark a forged reply; the right one is still taken', async () => {
    await begin((asked) => [
      { send: says(asked, Buffer.concat([Buffer.from('deadbeef'), SERVER]), 3) },
      { after: 20, send: says(asked, Buffer.concat([sent(asked)!.subarray(0, 8), SERVER])) },
    ])
    expect((await ask({ size: 1232 })).rcode).toBe(0)
    expect(upstream.asked).toHaveLength(1)
  })

  it.each([
    ['none, from an upstream that has sent some', (asked: Asked) => says(asked, undefined)],
    ['BADCOOKIE', (asked: Asked) => says(asked, Buffer.concat([sent(asked)!.subarray(0, 8), SERVER]), 23)],
  ])('%s: the question goes by TCP', async (_, answer) => {
    await begin(right)
    await ask({ size: 1232 })
    upstream.answer = (asked) => (asked.proto === 'udp' ? answer(asked) : reply(asked, records(asked)))
    const message = await ask({ size: 1232 })
    expect(upstream.asked.map(({ proto }) => proto)).toEqual(['udp', 'udp', 'tcp'])
    expect(message.answers[0]?.data).toMatchObject({ address: '192.0.2.2' })
  })

  it('an upstream without cookies is asked as before, and one without EDNS as the client asked', async () => {
    await begin((asked) =>
      asked.message.edns === undefined ? reply(asked, records(asked)) : reply(asked, [], { rcode: 1, edns: undefined }),
    )
    expect((await ask()).rcode).toBe(0)
    expect((await ask()).rcode).toBe(0)
    expect(upstream.asked.map(({ proto }) => proto)).toEqual(['udp', 'tcp', 'udp'])
    upstream.answer = (asked) => says(asked, undefined)
    expect((await ask({ size: 1232 })).count(1)).toBe(1)
  })
})
