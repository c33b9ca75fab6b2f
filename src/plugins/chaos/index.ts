/** `chaos`: answers the TXT questions of class CH about the server itself. */
import { hostname } from 'node:os'
import { CLASS, RCODE, type RR, TYPE } from '../../dns/index.js'
import { type Handler, type Passing, type Plugin, type PluginModule, type Query, type Reply, UNTOUCHED } from '../contract.js'
import { SERVER_NAME } from '../version.js'

const MAX_STRING = 255
const AUTHORS = ['The CairnDNS authors']

const module: PluginModule = {
  name: 'chaos',
  apiVersion: 1,
  /** `chaos [VERSION] [AUTHORS...]`; as in CoreDNS only the first use counts. */
  setup(uses, ctx) {
    for (const option of uses[0]?.block ?? []) throw ctx.error(`unknown property '${option.name}'`, option)
    const [version, ...authors] = uses[0]?.args.map(({ text }) => text) ?? []
    ctx.block.chaos = true
    return new Chaos(version ?? SERVER_NAME, authors.length === 0 ? AUTHORS : [...new Set(authors)].sort())
  },
}
export default module

class Chaos implements Plugin {
  readonly name = 'chaos'
  readonly #answers: ReadonlyMap<string, () => readonly string[]>

  constructor(version: string, authors: readonly string[]) {
    const host = hostname() || 'localhost'
    this.#answers = new Map([
      ['\x07version\x04bind', () => [version]],
      ['\x07version\x06server', () => [version]],
      ['\x07authors\x04bind', () => shuffled(authors)],
      ['\x08hostname\x04bind', () => [host]],
      ['\x02id\x06server', () => [host]],
    ])
  }

  stands({ class: cls }: Query): Passing | undefined {
    return cls === CLASS.CH ? undefined : UNTOUCHED
  }

  serveDNS(query: Query, next: Handler): Reply | Promise<Reply> {
    if (query.class !== CLASS.CH || query.type !== TYPE.TXT) return next(query)
    const texts = this.#answers.get(query.name.key)?.()
    if (texts === undefined) return next(query)
    const answers = texts.map(
      (text): RR => ({
        name: query.name,
        type: TYPE.TXT,
        class: CLASS.CH,
        ttl: 0,
        data: { kind: 'TXT', strings: [Buffer.from(text).subarray(0, MAX_STRING)] },
      }),
    )
    return query.reply('chaos', RCODE.NOERROR, { answers, aa: false })
  }
}

function shuffled(texts: readonly string[]): string[] {
  const list = [...texts]
  for (let i = list.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1))
    const moved = list[i]!
    list[i] = list[j]!
    list[j] = moved
  }
  return list
}
