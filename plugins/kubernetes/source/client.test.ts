import http from 'node:http'
import { Socket } from 'node:net'
import { expect, it } from 'vitest'
import { FakeMetrics, realClock } from '../../../src/plugins/testing.js'
import { ApiClient, clientMetrics } from './client.js'
import { Limiter } from './limiter.js'

/** Its connections never come about, as where packets get lost. */
class SilentAgent extends http.Agent {
  readonly made: Socket[] = []
  override createConnection(): Socket {
    const socket = Object.assign(new Socket(), { connecting: true })
    this.made.push(socket)
    return socket
  }
}

it('gives up a connection that does not come about long before an answer would be overdue', async () => {
  const agent = new SilentAgent()
  const access = {
    base: new URL('http://192.0.2.1'),
    options: () => ({ agent }),
    refused: () => undefined,
    authority: () => '',
  }
  const limits = { connect: 30, head: 60_000, idle: 60_000 }
  const limiter = new Limiter({ qps: 0, burst: 0, maxInflight: 0 }, realClock)
  const client = new ApiClient(access, limits, clientMetrics(new FakeMetrics()), realClock, limiter)
  const opened = client.open('/api/v1/services', 'watch', new AbortController().signal)
  await expect(opened).rejects.toThrow('Get "http://192.0.2.1/api/v1/services": no connection in time')
  expect(agent.made.map((socket) => socket.destroyed)).toEqual([true])
})
