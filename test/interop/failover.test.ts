/** Two different servers behind one `forward`, one of which dies or falls silent in mid traffic: clients must not notice much. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Message } from '../../src/dns/index.js'
import { until } from '../support/process.js'
import { ask, udp } from '../support/wire.js'
import { canAuthority, Lab, type Server } from './lab.js'
import { isInstalled, PEER_NAMES, type Peer, type PeerName } from './peers.js'

const [one, two] = [PEER_NAMES.filter(isInstalled)[0], PEER_NAMES.filter(isInstalled).at(-1)] as [PeerName, PeerName]
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

describe.skipIf(!canAuthority() || one === two)(`${one} and ${two}`, () => {
  const lab = new Lab()
  let first: Peer
  let second: Peer
  let ours: Server<'plain' | 'tcp'>

  beforeAll(async () => {
    first = await lab.peer(one)
    second = await lab.peer(two)
    const to = `forward . ${first.address} ${second.address} {\n        health_check 200ms`
    ours = await lab.ours({ plain: `    ${to}\n    }`, tcp: `    ${to}\n        force_tcp\n    }` })
  })
  afterEach(async () => {
    first.thaw()
    await first.kill()
    await first.up()
  })
  afterAll(() => lab.stop())

  /** Questions one after the other for `ms`, ten at once; how each ended and how long it took. */
  async function traffic(port: number, ms: number): Promise<{ failed: number; slowest: number; count: number }> {
    const end = performance.now() + ms
    const result = { failed: 0, slowest: 0, count: 0 }
    const client = async (): Promise<void> => {
      while (performance.now() < end) {
        const began = performance.now()
        const reply = await udp(port, ask('www.interop.test.'), '127.0.0.1', 5000)
        result.count++
        result.slowest = Math.max(result.slowest, performance.now() - began)
        if (reply === undefined || Message.view(reply).count(1) !== 2) result.failed++
        await wait(2)
      }
    }
    await Promise.all(Array.from({ length: 10 }, client))
    return result
  }

  // Killed: ICMP and RST at once. Frozen: its packets are taken and nothing comes back.
  for (const path of ['plain', 'tcp'] as const)
    for (const how of ['killed', 'restarted', 'frozen'] as const)
      test(`${path}: nobody gets SERVFAIL when one is ${how}`, async (context) => {
        if (first.resolver) return context.skip('the authority is needed by the other')
        await traffic(ours.ports[path], 300)
        const during = traffic(ours.ports[path], 3000)
        await wait(200)
        if (how === 'frozen') first.freeze()
        else await first.kill()
        if (how === 'restarted') await first.up()
        const result = await during
        console.log(`${path}, ${how}: ${result.count} answers, slowest ${Math.round(result.slowest)} ms`)
        expect(result.failed).toBe(0)
        expect(result.slowest).toBeLessThan(1000)
      })

  test('both gone and back: answers again within a second', async () => {
    await Promise.all([first.kill(), second.kill()])
    const reply = await udp(ours.ports.plain, ask('www.interop.test.'), '127.0.0.1', 6000)
    expect(Message.view(reply!).rcode).toBe(2)
    await Promise.all([first.up(), second.up()])
    const began = performance.now()
    await until(
      async () => {
        const again = await udp(ours.ports.plain, ask('www.interop.test.'), '127.0.0.1', 1000)
        return again !== undefined && Message.view(again).count(1) === 2
      },
      1000,
      () => 'no answer',
    )
    console.log(`back after ${Math.round(performance.now() - began)} ms`)
  })
})
