import { createServer, type Server } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { type Libc, loadLibc } from '../native/libc.js'
import { knowsReusePort, Sharing, type Taken } from './sharing.js'

const none = (): Promise<Libc> => Promise.reject(new Error('none'))
/** Whether this machine has the C library for us; where it has not, there is nothing to try. */
const libc = await loadLibc().catch(() => undefined)

let open: Server[] = []
afterEach(async () => {
  for (const server of open) await new Promise((resolve) => server.close(resolve))
  open = []
})

async function listen(taken: Taken, port: number): Promise<Server> {
  const server = createServer()
  open.push(server)
  const how = 'fd' in taken ? { fd: taken.fd } : { port, host: '127.0.0.1', exclusive: true }
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(how, resolve))
  return server
}
const portOf = (server: Server): number => (server.address() as { port: number }).port

test.each([
  ['20.20.2', 'linux', false],
  ['22.11.0', 'linux', false],
  ['22.12.0', 'linux', true],
  ['23.0.0', 'linux', false],
  ['23.1.0', 'linux', true],
  ['24.0.0', 'linux', true],
  ['24.0.0', 'darwin', false],
])('Node %s on %s knows the option: %s', (version, platform, knows) => {
  expect(knowsReusePort(version, platform)).toBe(knows)
})

test('with neither Node nor the C library it says why', async () => {
  await expect(new Sharing(none, false).load()).rejects.toThrow('sharing an address takes Node 22.12 or the C library (none)')
  await expect(new Sharing(none, true).load()).resolves.toBeUndefined()
})

test('without the C library a bound socket is not shared any more, and an address that is taken is noticed', async () => {
  const sharing = new Sharing(none, true)
  await sharing.load()
  const alone = await sharing.bind('tcp', '127.0.0.1', 0, 'alone')
  const server = await listen(alone, 0)
  await expect(sharing.set(alone, server, true)).rejects.toThrow('takes effect with a restart')
  await expect(sharing.bind('tcp', '127.0.0.1', portOf(server), 'first')).rejects.toThrow('EADDRINUSE')
  expect(await sharing.bind('tcp', '127.0.0.1', portOf(server), 'join')).toEqual({ reusePort: true })
})

test.skipIf(libc === undefined)('a socket that was alone lets those in that join, and nobody else', async () => {
  const sharing = new Sharing(async () => libc!, false)
  await sharing.load()
  const alone = await sharing.bind('tcp', '127.0.0.1', 0, 'alone')
  const server = await listen(alone, 0)
  const join = () => sharing.bind('tcp', '127.0.0.1', portOf(server), 'join')
  await expect(join()).rejects.toThrow('EADDRINUSE')
  await sharing.set(alone, server, true)
  const second = await listen(await join(), 0)
  await expect(sharing.bind('tcp', '127.0.0.1', portOf(server), 'first')).rejects.toThrow('EADDRINUSE')
  open = open.filter((one) => one !== second)
  await new Promise((resolve) => second.close(resolve))
  await sharing.set(alone, server, false)
  for (const claim of ['alone', 'first'] as const)
    await expect(sharing.bind('tcp', '127.0.0.1', portOf(server), claim).then((taken) => listen(taken, portOf(server)))).rejects.toThrow(
      'EADDRINUSE',
    )
})
