/** Several serving threads, from outside: a plugin that ends or stops the thread it runs in, and questions that reach all of them. */
import type { Message } from '../../src/dns/index.js'
import { type Client, udp } from './client.js'

/** `kill`: "die." ends the thread that it reaches, "hang." stops it. All else goes on to the next plugin. */
const KILL = `export default { name: 'kill', apiVersion: 1, setup: () => ({ name: 'kill', serveDNS(query, next) {
  const name = query.name.toString()
  if (name === 'die.') process.exit(1)
  if (name === 'hang.') for (;;);
  return next(query)
} }) }`

/**
 * `thread WORD` answers TXT "WORD INDEX COUNT"; `thread WORD fails` fails at its start in all threads but the first, `thread WORD dies` takes
 * the thread along.
 */
const THREAD = `export default { name: 'thread', apiVersion: 1, setup: ([use], ctx) => {
  const [word, fate] = use.args.map(({ text }) => text)
  const { index, count } = ctx.thread
  return {
    name: 'thread',
    onStartup() {
      if (index > 0 && fate === 'fails') throw new Error('thread ' + index + ' does not like it')
      if (index > 0 && fate === 'dies') process.exit(1)
    },
    serveDNS(query) {
      const data = { kind: 'TXT', strings: [word, index, count].map((text) => Buffer.from(String(text))) }
      return query.reply('thread', 0, { answers: [{ name: query.name, type: 16, class: 1, ttl: 0, data }] })
    } } } }`

/** Into the folder of the server, with `-plugin-cfg table.cfg`. */
export const threadFiles = {
  'kill.mjs': KILL,
  'thread.mjs': THREAD,
  'table.cfg': 'kill:./kill.mjs\nerrors:errors\nthread:./thread.mjs\nwhoami:whoami\n',
}

/** Asks from so many sockets at once, so that every thread is met, and returns the sorted different outcomes. */
export async function outcomes(
  connect: () => Promise<Client>,
  name: string,
  type: string,
  text: (message: Message) => string,
  count = 24,
): Promise<string[]> {
  const clients = await Promise.all(Array.from({ length: count }, connect))
  try {
    const asked = clients.map((client) => client.ask(name, type, { ms: 2000 }).then(text, (error: Error) => error.message))
    return [...new Set(await Promise.all(asked))].sort()
  } finally {
    for (const client of clients) client.close()
  }
}

/** Asks what nobody lives to answer. */
export async function shout(port: number, name: 'die.' | 'hang.'): Promise<void> {
  const client = await udp(port)
  await client.ask(name, 'A', { ms: 50 }).catch(() => undefined)
  client.close()
}

/** Sum over all series of a metric family. */
export async function metricSum(port: number, family: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  return [...text.matchAll(new RegExp(`^${family}(?:\\{.*\\})? (\\S+)$`, 'gm'))].reduce((sum, [, value]) => sum + Number(value), 0)
}
