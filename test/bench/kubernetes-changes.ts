/** Changes at a high rate while queries go on: their latency, memory, and whether what is answered is what the API server said. */
import { RCODE } from '../../src/dns/index.js'
import { ENDPOINTS, endpointAddress, headlessName, namespaceName, SIZES, serviceName } from './cluster.js'
import { Asker, Load, question } from './load.js'
import { type Figure, figure, median, percentile } from './report.js'
import { Api, pause, Subject } from './subject.js'

const CHANGES = 1000
const QUERIES = 5000
/** A change must show after so many ms; the way over two processes of the bench is part of it. */
const SHOWN_WITHIN = 20
/** All of it cold is a start, which other figures are about; in ms. */
const WARM_UP = 10_000
/** First without changes: what the machine makes of it alone, in ms. */
const QUIET = 10_000
/** Memory is read so often, in ms. */
const SAMPLING = 200
/** Endpoints asked for once all is quiet. */
const CHECKED_AT_END = 2000

const endpointName = (service: number, k: number): string =>
  `${endpointAddress(service, k).replaceAll('.', '-')}.${serviceName(service)}.${namespaceName(service)}.svc.cluster.local.`

export async function changesRun(seconds: number): Promise<Figure[]> {
  const api = await Api.start('large')
  const subject = await Subject.start(api, undefined)
  const asker = new Asker()
  try {
    await subject.ready()
    const quiet = new Load()
    quiet.start(subject.port, questions(), QUERIES)
    await pause(WARM_UP)
    quiet.forget()
    await pause(QUIET)
    const before = await quiet.stop()
    const load = new Load()
    load.start(subject.port, questions(), QUERIES)
    api.tell({ op: 'change', rate: CHANGES, seconds: WARM_UP / 1000 })
    await api.next((report) => (report.kind === 'done' ? true : undefined))
    load.forget()
    await subject.threads()
    const samples = sampleAnswers(api, subject, asker)
    const memory: number[] = []
    const reading = setInterval(() => memory.push(subject.memory().now), SAMPLING)
    const cpu = subject.cpu()
    const done = api.next((report) => (report.kind === 'done' ? report.changes : undefined), (seconds + 30) * 1000)
    api.tell({ op: 'change', rate: CHANGES, seconds })
    const changes = await done
    const spent = subject.cpu() - cpu
    clearInterval(reading)
    const [, serving] = await subject.threads()
    const result = await load.stop()
    const { late, wrong, asked } = await samples()
    return [
      figure('queries without changes, p50', 'ms', percentile(before.latencies, 0.5)),
      figure('queries without changes, p99', 'ms', percentile(before.latencies, 0.99)),
      figure('changes made', '', changes),
      figure('queries under changes, p50', 'ms', percentile(result.latencies, 0.5)),
      figure('queries under changes, p99', 'ms', percentile(result.latencies, 0.99), 5),
      figure('queries under changes, p99.9', 'ms', percentile(result.latencies, 0.999)),
      figure('queries lost or failed', '', result.lost + result.failed, 0),
      figure('serving thread busy at a stretch, under changes, p99.9', 'ms', serving!.busy.p999, 20),
      figure('event loop delay under changes, p99.9', 'ms', serving!.loop.p999, 20),
      figure('CPU of both threads under changes', '%', (100 * spent) / seconds),
      ...growth(memory),
      figure('changes looked at', '', asked),
      figure(`of them shown after ${SHOWN_WITHIN} ms only`, '', late),
      figure('of them wrong still after 1 s', '', wrong, 0),
      figure('endpoints wrong at the end', '', await wrongAtEnd(api, subject, asker), 0),
    ]
  } finally {
    asker.close()
    await subject.stop()
    api.stop()
  }
}

/** Half of them ClusterIP services, the rest endpoints of headless ones, which never change here. */
function questions(): Buffer[] {
  const { services, headless } = SIZES.large!
  return Array.from({ length: 1000 }, (_, n) => {
    const i = (n * 7919) % services
    const j = n % headless[0]!.count
    if (n % 2 === 0) return question(`${serviceName(i)}.${namespaceName(i)}.svc.cluster.local.`)
    return question(`${headlessName(0, j)}-${n % 100}.${headlessName(0, j)}.${namespaceName(j)}.svc.cluster.local.`)
  })
}

/**
 * Medians of two quarters. V8 takes up to 200 s until its young generations have the size that they keep; with `--seconds 400` what is
 * left of the growth is ours.
 */
function growth(memory: readonly number[]): Figure[] {
  const quarter = Math.floor(memory.length / 4)
  const early = median(memory.slice(quarter, 2 * quarter)) ?? 0
  const late = median(memory.slice(-quarter)) ?? 0
  return [
    figure('resident under changes, second quarter', 'MiB', early),
    figure('resident under changes, last quarter', 'MiB', late, 180),
    figure('growth between them', 'MiB', late - early),
  ]
}

/** Asks for each endpoint that the API server reports changed. */
function sampleAnswers(api: Api, subject: Subject, asker: Asker): () => Promise<{ asked: number; late: number; wrong: number }> {
  const running: Promise<void>[] = []
  let late = 0
  let wrong = 0
  const off = api.hear((report) => {
    if (report.kind !== 'changed') return
    const { service, endpoint, ready } = report
    const right = async () => isReady(await asker.ask(subject.port, endpointName(service, endpoint))) === ready
    const check = async () => {
      await pause(SHOWN_WITHIN)
      if (await right()) return
      late++
      await pause(1000)
      if (!(await right())) wrong++
    }
    running.push(check())
  })
  return async () => {
    off()
    await Promise.all(running)
    return { asked: running.length, late, wrong }
  }
}

const isReady = (reply: { readonly rcode: number } | undefined): boolean | undefined =>
  reply === undefined ? undefined : reply.rcode === RCODE.NOERROR

async function wrongAtEnd(api: Api, subject: Subject, asker: Asker): Promise<number> {
  const state = api.next((report) => (report.kind === 'state' ? report.ready : undefined))
  api.tell({ op: 'state' })
  const ready = await state
  let wrong = 0
  for (let n = 0; n < CHECKED_AT_END; n++) {
    const service = (n * 7919) % ready.length
    const k = n % ENDPOINTS
    const should = (ready[service]! & (1 << k)) !== 0
    if (isReady(await asker.ask(subject.port, endpointName(service, k))) !== should) wrong++
  }
  return wrong
}
