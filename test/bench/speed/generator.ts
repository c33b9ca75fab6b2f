/**
 * The load generator: a process of its own, on a core of its own, that does nothing but send, receive and check, and holds the upstream of
 * the servers meanwhile. Started by `run.mjs speed/generator.ts`; a job comes over IPC, its result goes back.
 */
import { type Libc, loadLibc } from '../../../src/server/native/libc.js'
import { Client, Packets, type Sink } from './client.js'
import { Histogram } from './histogram.js'
import { spent, type Usage, usageOf } from './process-cpu.js'
import { questionsOf, type Workload } from './questions.js'
import { Upstream } from './upstream.js'

export interface Job {
  readonly workload: Workload
  readonly port: number
  /** Of the server: its processor time is read at both ends of the measured span. undefined: not read. */
  readonly pid?: number
  /** Questions a second, evenly spaced; undefined: `outstanding` under way at all times. */
  readonly rate?: number
  readonly outstanding: number
  readonly sockets: number
  readonly seconds: number
  /** Before the measured span. */
  readonly warmUp: number
  /** Sleeps for moments when there is nothing to do, for what shares its core; latencies are coarser then. */
  readonly yields?: boolean
}

export interface Outcome {
  /** Answers in the measured span, and what of them was not as it should be. */
  readonly answered: number
  readonly wrong: number
  /** Questions of the span that got no answer. */
  readonly lost: number
  readonly stray: number
  /** Answers a second. */
  readonly qps: number
  /** Milliseconds; at a rate from the time that the question was due. */
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly p999: number
  /** Microseconds of processor time per answer, all threads; NaN without a pid. */
  readonly cpu: number
  /** Share of it that is not the kernel's. */
  readonly user: number
  /** Resident MiB at the end. */
  readonly rss: number
  /** Share of the generator's turns in which nothing had come: near 0, it may be the bottleneck itself. */
  readonly idle: number
}

export type Message = { readonly kind: 'ready'; readonly upstream: number } | { readonly kind: 'outcome'; readonly outcome: Outcome }

/** After it a question counts as lost; in a closed loop another is sent instead. */
const LOST_MS = 400
/** Turns without a question upstream after which it is looked at only now and then. */
const CALM = 64
const BATCH = 64
/** So many under way on one socket of an open loop are too many: nobody answers any more. */
const FLOOD = 16_384

/** struct timespec: 50 µs. */
const NAP = Buffer.from(new BigInt64Array([0n, 50_000n]).buffer)

class Run implements Sink {
  readonly #job: Job
  readonly #libc: Libc
  readonly #upstream: Upstream
  readonly #clients: Client[]
  readonly #histogram = new Histogram()
  readonly #start: number
  readonly #from: number
  readonly #to: number
  /** The number of the first question: serial numbers go on from job to job. */
  readonly #first: number
  #sent: number
  #answered = 0
  #wrong = 0
  #lost = 0
  #stray = 0
  #turns = 0
  #idle = 0
  #calm = 0
  #before: Usage | undefined
  #after: Usage | undefined
  #began = 0
  #ended = 0

  constructor(libc: Libc, job: Job, upstream: Upstream, firstSerial: number) {
    this.#libc = libc
    this.#job = job
    this.#upstream = upstream
    const set = questionsOf(job.workload)
    const packets = new Packets(set)
    this.#clients = Array.from(
      { length: job.sockets },
      (_, i) => new Client(libc, packets, this, set.ipv6 && i % 2 === 1 ? '::1' : '127.0.0.1', job.port),
    )
    this.#sent = this.#first = firstSerial
    this.#start = performance.now()
    this.#from = this.#start + job.warmUp * 1000
    this.#to = this.#from + job.seconds * 1000
  }
  /** How many were sent, warm-up included. */
  get sent(): number {
    return this.#sent - this.#first
  }

  run(): Outcome {
    for (;;) {
      const now = performance.now()
      if (this.#began === 0 && now >= this.#from) this.#begin()
      if (this.#ended === 0 && now >= this.#to) this.#end()
      this.#turns++
      let received = 0
      for (const client of this.#clients) received += client.receive()
      if (received === 0) this.#idle++
      if (this.#ended === 0) this.#send(now)
      else if (now > this.#to + LOST_MS || this.#clients.every((client) => client.underWay === 0)) break
      this.#serveUpstream()
      if (received === 0 && this.#job.yields === true) this.#libc.nanosleep(NAP, null)
      if (this.#turns % 256 === 0) for (const client of this.#clients) client.expire(now - LOST_MS)
    }
    for (const client of this.#clients) {
      client.expire(Number.POSITIVE_INFINITY)
      client.close()
    }
    return this.#outcome()
  }

  answered(sentAt: number, now: number, right: boolean): void {
    if (this.#began === 0) return
    if (this.#ended === 0) {
      this.#answered++
      if (!right) this.#wrong++
    }
    if (sentAt >= this.#from && sentAt < this.#to) this.#histogram.record(now - sentAt)
  }
  lost(sentAt: number): void {
    if (sentAt >= this.#from && sentAt < this.#to) this.#lost++
  }
  stray(): void {
    this.#stray++
  }

  #begin(): void {
    this.#before = this.#usage()
    this.#turns = this.#idle = 0
    this.#began = performance.now()
  }
  #end(): void {
    this.#ended = performance.now()
    this.#after = this.#usage()
  }
  #usage(): Usage | undefined {
    return this.#job.pid === undefined ? undefined : usageOf(this.#job.pid)
  }

  #send(now: number): void {
    const { rate } = this.#job
    if (rate !== undefined) this.#sendDue(now, rate)
    else this.#keepUnderWay(now)
  }

  #keepUnderWay(now: number): void {
    const each = Math.max(1, Math.floor(this.#job.outstanding / this.#clients.length))
    for (const client of this.#clients) {
      const n = Math.min(BATCH, each - client.underWay)
      if (n > 0) this.#sent += client.send(n, this.#sent, now, 0)
    }
  }

  /** What is due by now, each counted from the time that it was due: a generator that is late does not make the server look quick. */
  #sendDue(now: number, rate: number): void {
    const spacing = 1000 / rate
    const due = Math.floor((now - this.#start) / spacing)
    while (this.sent < due) {
      const client = this.#clients[this.#sent % this.#clients.length]!
      const n = Math.min(due - this.sent, 4)
      const at = this.#start + (this.sent + 1) * spacing
      const taken = client.underWay < FLOOD ? client.send(n, this.#sent, at, spacing) : 0
      for (let i = taken; i < n; i++) this.lost(at)
      this.#sent += n
    }
  }

  #serveUpstream(): void {
    if (this.#calm > CALM && this.#turns % 16 !== 0) return
    this.#calm = this.#upstream.poll() === 0 ? this.#calm + 1 : 0
  }

  #outcome(): Outcome {
    const [before, after] = [this.#before, this.#after]
    const used = before === undefined || after === undefined ? undefined : spent(before, after)
    const [user, system] = before === undefined || after === undefined ? [0, 0] : [after.user - before.user, after.system - before.system]
    const at = (share: number): number => this.#histogram.percentile(share)
    return {
      answered: this.#answered,
      wrong: this.#wrong,
      lost: this.#lost,
      stray: this.#stray,
      qps: (this.#answered / (this.#ended - this.#began)) * 1000,
      ...{ p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999) },
      cpu: used === undefined || this.#answered === 0 ? Number.NaN : used / 1000 / this.#answered,
      user: user + system === 0 ? Number.NaN : user / (user + system),
      rss: after?.rss ?? Number.NaN,
      idle: this.#idle / Math.max(1, this.#turns),
    }
  }
}

const tell = (message: Message): void => void process.send!(message)
/** Between jobs the servers ask little: probes, and what they check at their start. */
const LOOK_MS = 1

/** Here, not in `main`: what a bench imports later than it is loaded itself is not found any more (run.mjs). */
const libc = await loadLibc()

export default function main(): Promise<never> {
  const upstream = new Upstream(libc)
  let serial = 0
  setInterval(() => {
    while (upstream.poll() > 0);
  }, LOOK_MS)
  process.on('message', (job: Job) => {
    const run = new Run(libc, job, upstream, serial)
    const outcome = run.run()
    serial += run.sent
    tell({ kind: 'outcome', outcome })
  })
  process.on('disconnect', () => process.exit(0))
  tell({ kind: 'ready', upstream: upstream.port })
  return new Promise(() => undefined)
}
