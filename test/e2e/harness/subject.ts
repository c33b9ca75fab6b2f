/** The server under test, and CoreDNS beside it where COREDNS names its binary. */
import { formatRecord, type Message, rcodeName } from '../../../src/dns/index.js'
import { type Client, tcp, udp } from '../../support/client.js'
import { freePorts, type Running, run, until } from '../../support/process.js'

export interface Subject {
  readonly server: Running
  readonly client: Client
  readonly dns: number
  readonly ready: number
  readonly metrics: number
  /** "NOERROR" and the answer section, sorted: name and TTL left out. */
  answers(name: string, type?: string): Promise<string[]>
  /** Waits for these answers; resolves with the milliseconds it took. Fails with what came instead. */
  sees(expected: readonly string[], name: string, type?: string, ms?: number): Promise<number>
  http(port: number, path: string): Promise<{ status: number; body: string }>
  stop(): Promise<void>
}

export interface SubjectOptions {
  /** Lines of the kubernetes block. */
  readonly kubernetes: string
  readonly env?: Readonly<Record<string, string>>
  readonly command?: string
  /** Lines beside the kubernetes block. */
  readonly more?: string
  /** Zones of the kubernetes block. */
  readonly zones?: string
}

export async function startSubject(options: SubjectOptions): Promise<Subject> {
  const [dns, ready, metrics] = (await freePorts(3)) as [number, number, number]
  const corefile = `.:${dns} {
    errors
    ready 127.0.0.1:${ready} {
        monitor continuously
    }
    prometheus 127.0.0.1:${metrics}
    reload 2s 1s
    kubernetes ${options.zones ?? 'cluster.local in-addr.arpa ip6.arpa'} {
        ${options.kubernetes}
    }
    ${options.more ?? ''}
}
`
  const { env, command } = options
  const server = await run(corefile, dns, { ...(env && { env }), ...(command && { command }) })
  const client = await udp(dns)
  const answers = async (name: string, type = 'A'): Promise<string[]> => {
    let reply = await client.ask(name, type, { size: 4096 })
    if (reply.tc) {
      const stream = await tcp(dns)
      reply = await stream.ask(name, type).finally(() => stream.close())
    }
    return textOf(reply)
  }
  return {
    server,
    client,
    dns,
    ready,
    metrics,
    answers,
    async sees(expected, name, type = 'A', ms = 10_000) {
      const wanted = [...expected].sort().join('\n')
      const started = performance.now()
      let got = ''
      await until(
        async () => {
          got = (await answers(name, type)).join('\n')
          return got === wanted
        },
        ms,
        () => `${name} ${type}: wanted\n${wanted}\ngot\n${got}\n${server.output().slice(-2000)}`,
      )
      return performance.now() - started
    },
    async http(port, path) {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`)
      return { status: answer.status, body: await answer.text() }
    },
    async stop() {
      client.close()
      await server.stop()
    },
  }
}

export function textOf(reply: Message): string[] {
  const records = reply.answers.map((rr) => formatRecord(rr).split('\t').slice(4).join(' '))
  return [rcodeName(reply.rcode), ...records.sort()].sort()
}
