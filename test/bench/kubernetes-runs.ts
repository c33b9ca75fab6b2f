/** The single measurements of the kubernetes bench that need no load. */
import net from 'node:net'
import { Message, RCODE, TYPE } from '../../src/dns/index.js'
import { clusterAddress, headlessAddress, headlessName, namespaceName, SIZES, serviceName } from './cluster.js'
import { Asker, question } from './load.js'
import { type Figure, figure, percentile } from './report.js'
import { Api, pause, Subject, type ThreadState } from './subject.js'

/** Milliseconds that follow a list, until memory is read. */
const SETTLE = 4000
const RESOURCES = 3

/** Megabytes are MiB, times milliseconds. */
export interface LargeRun {
  readonly synced: number
  readonly cpu: number
  readonly listPeak: number
  readonly resident: number
  readonly relistPeak: number
  readonly afterRelist: number
  readonly reloadPeak: number
  /** Of the serving thread, at a floor of 10 ms (probe.cjs): what the loop was late, and what of it was our own work. 0 for CoreDNS. */
  readonly lateRelist: number
  readonly lateReload: number
  /** The first list is not served beside; its longest stretch is a start's alone. */
  readonly busyFirst: number
  readonly busyRelist: number
  readonly busyReload: number
}

const NONE: ThreadState['loop'] = { p50: 0, p999: 0, max: 0, count: 0 }

/** `command`: a CoreDNS. */
export async function largeRun(command: string | undefined): Promise<LargeRun> {
  const api = await Api.start('large')
  const subject = await Subject.start(api, command)
  const held = async () => (command === undefined ? (await subject.threads())[1]! : { loop: NONE, busy: NONE })
  try {
    await subject.begun()
    await held()
    const synced = await subject.ready()
    const cpu = subject.cpu()
    await spotCheck(subject)
    await pause(SETTLE)
    const { now: resident, peak: listPeak } = subject.memory()
    const first = await held()
    subject.forgetPeak()
    await listed(api, () => api.tell({ op: 'relist' }))
    const { now: afterRelist, peak: relistPeak } = subject.memory()
    const again = await held()
    await spotCheck(subject)
    subject.forgetPeak()
    await listed(api, () => subject.reload(command === undefined ? 'apiserver_qps 1000' : 'namespace_labels !none'))
    const { peak: reloadPeak } = subject.memory()
    const anew = await held()
    await spotCheck(subject)
    return {
      ...{ synced, cpu, listPeak, resident, relistPeak, afterRelist, reloadPeak },
      ...{ lateRelist: again.loop.p999, lateReload: anew.loop.p999 },
      ...{ busyFirst: first.busy.max, busyRelist: again.busy.max, busyReload: anew.busy.max },
    }
  } finally {
    await subject.stop()
    api.stop()
  }
}

/** Does what makes the server list, and waits until it has and all is quiet. */
async function listed(api: Api, act: () => void): Promise<void> {
  let left = RESOURCES
  const done = api.next((report) => (report.kind === 'listed' && --left === 0 ? true : undefined))
  act()
  await done
  await pause(SETTLE)
}

/** Some answers, from first to last. */
async function spotCheck(subject: Subject): Promise<void> {
  const asker = new Asker()
  const last = SIZES.large!.services - 1
  try {
    for (const i of [0, 1, last >> 1, last]) {
      const reply = await asker.ask(subject.port, `${serviceName(i)}.${namespaceName(i)}.svc.cluster.local.`)
      const record = reply?.answers[0]
      if (record?.data.kind !== 'A' || record.data.address !== clusterAddress(i)) throw new Error(`wrong answer for ${serviceName(i)}`)
    }
    const [reply, host] = [headlessName(0, 7), `${headlessName(0, 7)}-99.${headlessName(0, 7)}`]
    for (const name of [reply, host]) {
      const answer = await asker.ask(subject.port, `${name}.${namespaceName(7)}.svc.cluster.local.`)
      if (answer?.rcode !== RCODE.NOERROR) throw new Error(`no answer for ${name}`)
    }
  } finally {
    asker.close()
  }
}

/** From the start of the process to its first answer, in milliseconds. */
export async function smallRun(): Promise<number> {
  const api = await Api.start('small')
  const subject = await Subject.start(api, undefined)
  const asker = new Asker()
  try {
    for (;;) {
      const reply = await asker.ask(subject.port, `${serviceName(3)}.${namespaceName(3)}.svc.cluster.local.`, TYPE.A, 10)
      if (reply?.rcode === RCODE.NOERROR) return subject.age
      if (subject.age > 60_000) throw new Error(`no answer: ${subject.output}`)
    }
  } finally {
    asker.close()
    await subject.stop()
    api.stop()
  }
}

/** Headless services of 5,000 and 4,000 endpoints: one name of an endpoint, beside the name of a service of ten; whole sets. */
export async function wideRun(): Promise<Figure[]> {
  const api = await Api.start('wide')
  const subject = await Subject.start(api, undefined)
  const asker = new Asker()
  try {
    await subject.ready()
    const wide = `${headlessName(0, 0)}.${namespaceName(0)}.svc.cluster.local.`
    const label = headlessAddress(0, 0, 4321).replaceAll('.', '-')
    const one = await times(() => asker.ask(subject.port, `${label}.${wide}`))
    const plain = await times(() => asker.ask(subject.port, `${serviceName(3)}.${namespaceName(3)}.svc.cluster.local.`))
    const overUdp = await asker.ask(subject.port, wide)
    const whole = await overTcp(subject.port, wide)
    const smaller = await overTcp(subject.port, `${headlessName(1, 0)}.${namespaceName(0)}.svc.cluster.local.`)
    return [
      figure('one of 5,000 endpoints, time over that of a ClusterIP name', 'ms', one - plain),
      figure('5,000 endpoints over UDP: TC set', '', Number(overUdp?.tc)),
      figure('5,000 endpoints over TCP: records', '', whole.answers.length),
      figure('5,000 endpoints over TCP: TC set', '', Number(whole.tc)),
      figure('4,000 endpoints over TCP: records', '', smaller.answers.length),
    ]
  } finally {
    asker.close()
    await subject.stop()
    api.stop()
  }
}

/** Median time of one call out of 500, in milliseconds, after as many to warm up. */
async function times(call: () => Promise<Message | undefined>): Promise<number> {
  const taken = new Float64Array(500)
  for (let i = -taken.length; i < taken.length; i++) {
    const start = performance.now()
    const reply = await call()
    if (reply?.rcode !== RCODE.NOERROR) throw new Error('no answer')
    if (i >= 0) taken[i] = performance.now() - start
  }
  return percentile(taken, 0.5)
}

function overTcp(port: number, name: string): Promise<Message> {
  const query = question(name)
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0)
    const socket = net.connect(port, '127.0.0.1', () =>
      socket.write(Buffer.concat([Buffer.from([query.length >> 8, query.length & 255]), query])),
    )
    socket.on('error', reject)
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return
      socket.destroy()
      resolve(Message.view(received.subarray(2)))
    })
  })
}
