/**
 * The loop of a serving thread that moves its datagrams itself. The thread waits in an epoll of its own, in which the descriptor of Node's
 * epoll of this thread is one among others; so a datagram that wakes it costs no turn of Node's loop, and a TCP connection, a message from
 * control or a finished file operation wakes it just as well.
 *
 * This loop runs inside a callback of Node's (a setImmediate). Until it lets Node's loop turn, promises go on, but nothing else of Node's
 * does: no nextTick, no timer, no stream, no registration of new descriptors. When it turns:
 * - Node's epoll is readable; then twice, as libuv registers what it newly watches only at its next turn;
 * - somebody asked (`turn`), a timer went off, or what a query waits for does not come through sockets of ours: it was kept waiting and none
 *   of them sent something, or a reply came and no answer followed from it;
 * - `IDLE_MS` have passed, as timers of Node's own may be due;
 * - once a millisecond while a configuration is changed (`attend`), which is made of Node's files, promises and sockets.
 */
import dgram from 'node:dgram'
import fs from 'node:fs'
// The global of this name is a getter, which costs as much again as reading the clock.
import { performance } from 'node:perf_hooks'
import type { Clock } from '../../plugins/contract.js'
import { EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLLIN, type Libc, PR_SET_TIMERSLACK, SOCK_CLOEXEC, systemError } from './libc.js'
import { Naps } from './naps.js'
import { openSocket, ownDescriptor } from './sockets.js'
import { Timers } from './timers.js'

/** A descriptor that is watched. */
export interface Watched {
  /** There is something to read. */
  ready(): void
}

/** Something that collects what leaves at the end of a round. */
export interface Flushing {
  flush(): void
}

const IDLE_MS = 10
const EVENTS = 64
/** struct epoll_event is packed on x86-64 only. */
const EVENT_SIZE = process.arch === 'x64' ? 12 : 16
const EVENT_DATA = EVENT_SIZE - 8
/** Promises that hang on each other between a reply from upstream and the answer to the client: rounds of microtasks given before Node's loop is asked. */
const MAX_TICKS = 12
/** Nanoseconds by which the kernel may be late with waking us; its default is 50,000. */
const TIMER_SLACK_NS = 1000

export class Loop {
  /** What is exact to a millisecond here would be to `IDLE_MS` with timers of Node's. */
  readonly clock: Clock = {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    recent: () => this.#begun,
    timer: (ms, fn) => this.#timers.add(performance.now() + ms, fn),
  }
  /** Counted up in a round by those who know: queries that began to wait, datagrams sent upstream, answers to what waited, replies from upstream. */
  kept = 0
  /** Datagrams that the round brought. */
  taken = 0
  asked = 0
  answered = 0
  replied = 0
  readonly #libc: Libc
  readonly #epoll: number
  readonly #nodeEpoll: number
  readonly #events = Buffer.from(new ArrayBuffer(EVENTS * EVENT_SIZE))
  readonly #eventWords = new Int32Array(this.#events.buffer)
  readonly #watched: (Watched | undefined)[] = []
  readonly #timers = new Timers()
  readonly #naps = new Naps()
  readonly #napTime = new Uint32Array(4)
  readonly #napOctets = new Uint8Array(this.#napTime.buffer)
  #flushing: Flushing[] = []
  /** Turns of Node's loop that are due at once. */
  #turns = 2
  #turning = false
  #lastTurn = performance.now()
  /** Monotonic milliseconds when what is being looked at was read. */
  #begun = performance.now()
  #attentive = 0
  #stopped = false

  /** Rejects with what is missing. */
  static async make(libc: Libc): Promise<Loop> {
    const nodeEpoll = await findNodeEpoll(libc)
    const epoll = libc.epoll_create1(SOCK_CLOEXEC)
    if (epoll < 0) throw systemError(libc.errno(), 'epoll_create1')
    return new Loop(libc, ownDescriptor(libc, epoll), nodeEpoll)
  }

  private constructor(libc: Libc, epoll: number, nodeEpoll: number) {
    this.#libc = libc
    this.#epoll = epoll
    this.#nodeEpoll = nodeEpoll
    this.#control(EPOLL_CTL_ADD, nodeEpoll)
    libc.prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0)
  }

  /** `watched.ready()` is called while `fd` is readable. */
  watch(fd: number, watched: Watched): void {
    this.#control(EPOLL_CTL_ADD, fd)
    this.#watched[fd] = watched
  }

  /** Before `fd` is closed. */
  unwatch(fd: number): void {
    this.#watched[fd] = undefined
    this.#control(EPOLL_CTL_DEL, fd)
  }

  /** Calls `flush` once at the end of this round. */
  flushLater(what: Flushing): void {
    this.#flushing.push(what)
  }

  /** Something is about to be read. */
  stamp(): void {
    this.#begun = performance.now()
  }

  /** Something may have been begun that only Node's loop brings to an end. */
  turn(): void {
    if (!this.#turning && this.#turns < 2) this.#turns = 2
  }

  /** Until the function returned is called, Node's loop turns at least once a millisecond. */
  attend(): () => void {
    this.#attentive++
    let done = false
    return () => {
      if (!done) this.#attentive--
      done = true
    }
  }

  /** Runs until `stop`. A fault in what it calls ends the thread, as it would in a callback of Node's. */
  run(): void {
    this.#run().catch((error: unknown) => {
      setImmediate(() => {
        throw error
      })
    })
  }

  stop(): void {
    this.#stopped = true
  }

  async #run(): Promise<void> {
    await turnOfNode()
    while (!this.#stopped) {
      const count = this.#libc.epoll_wait(this.#epoll, this.#events, EVENTS, this.#patience())
      this.stamp()
      this.#take(count)
      if (this.#timers.next <= this.#begun && this.#timers.fire(this.#begun)) this.turn()
      await null
      for (let tick = 1; tick < MAX_TICKS && this.#isOwing(); tick++) await null
      if (this.#isOwing()) this.turn()
      this.kept = this.asked = this.answered = this.replied = 0
      this.#flush()
      if (this.#turns > 0 || this.#isTurnDue()) await this.#turnNode()
      else this.#nap()
      this.taken = 0
    }
  }

  #nap(): void {
    const time = this.#naps.after(this.taken, performance.now())
    if (time === 0) return
    // A timespec: seconds and nanoseconds, 64 bits each.
    this.#napTime[2] = time
    this.#libc.nanosleep(this.#napOctets, null)
  }

  /** Milliseconds to wait at most. */
  #patience(): number {
    if (this.#turns > 0 || this.#flushing.length > 0) return 0
    if (this.#attentive > 0) return 1
    const now = performance.now()
    return Math.max(0, Math.ceil(Math.min(this.#lastTurn + IDLE_MS, this.#timers.next) - now))
  }

  #take(count: number): void {
    for (let i = 0; i < count; i++) {
      const fd = this.#eventWords[(i * EVENT_SIZE + EVENT_DATA) >> 2]!
      if (fd === this.#nodeEpoll) this.#turns = 2
      else this.#watched[fd]?.ready()
    }
  }

  /** Whether something that this round began or heard is not yet where it should be. */
  #isOwing(): boolean {
    return this.kept > this.asked || this.replied > this.answered
  }

  #isTurnDue(): boolean {
    return this.#attentive > 0 || performance.now() - this.#lastTurn >= IDLE_MS
  }

  async #turnNode(): Promise<void> {
    this.#turning = true
    do {
      this.#turns--
      this.stamp()
      await turnOfNode()
    } while (this.#turns > 0)
    this.#turns = 0
    this.#turning = false
    this.#lastTurn = performance.now()
    this.kept = this.asked = this.answered = this.replied = 0
    this.#flush()
  }

  #flush(): void {
    if (this.#flushing.length === 0) return
    const due = this.#flushing
    this.#flushing = []
    for (const what of due) what.flush()
  }

  #control(operation: number, fd: number): void {
    const event = Buffer.alloc(EVENT_SIZE)
    event.writeUInt32LE(EPOLLIN, 0)
    event.writeInt32LE(fd, EVENT_DATA)
    if (this.#libc.epoll_ctl(this.#epoll, operation, fd, event) !== 0) throw systemError(this.#libc.errno(), 'epoll_ctl')
  }
}

/** One turn of Node's loop: timers, what its epoll has, closing callbacks, and all that hangs on those. */
const turnOfNode = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/**
 * The descriptor of this thread's epoll in libuv. There is no call that tells; but the kernel tells what each epoll of the process watches
 * (`tfd:` lines in /proc/self/fdinfo), and a socket that Node was given to watch is watched by the one that is sought.
 */
async function findNodeEpoll(libc: Libc): Promise<number> {
  const { fd } = openSocket(libc, { network: 'udp', address: '127.0.0.1', port: 0 })
  const socket = dgram.createSocket('udp4')
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.bind({ fd }, resolve)
    })
    // It is registered when the loop next waits.
    for (let i = 0; i < 4; i++) {
      await turnOfNode()
      const found = epollsWatching(fd)
      if (found.length === 1) return found[0]!
    }
    throw new Error("the descriptor of Node's epoll was not found")
  } finally {
    socket.close()
  }
}

function epollsWatching(fd: number): number[] {
  const line = new RegExp(`^tfd:\\s*${fd}\\s`, 'm')
  return fs
    .readdirSync('/proc/self/fdinfo')
    .filter((name) => line.test(readIfThere(`/proc/self/fdinfo/${name}`)))
    .map(Number)
}

/** Other threads open and close descriptors meanwhile. */
function readIfThere(file: string): string {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
