/**
 * The loop guard as it serves. Soon after the start it puts questions for names that nobody can guess to each nameserver that the `forward`
 * lines of its block use. A name that arrives here as a question came back through that nameserver; three different ones in a row are a
 * loop. CoreDNS counts one name going round three times, which a cache on the way may stop, and cannot tell whose fault it is.
 */
import { type Name, RCODE, TYPE } from '../../dns/index.js'
import { type Handler, type Passing, type Plugin, type Query, type Reply, type SetupContext, type Timer, UNTOUCHED } from '../contract.js'
import { type Guarded, isGuarded, probeZone } from './guarded.js'
import { Names, type Sighting } from './names.js'
import { Probe } from './probe.js'
import { Verdicts } from './verdicts.js'

/** Until listeners are open, a reload is through, and `forward` has started (it is behind this plugin). */
const FIRST_DELAY = 100
/** Host names among its upstreams may take their time. */
const LAST_START = 30_000
/** A nameserver that was switched off is looked at again this often. */
const RETRY_INTERVAL = 30_000

export class Loop implements Plugin {
  readonly name = 'loop'
  readonly #ctx: SetupContext
  readonly #exits: boolean
  #names: Names | undefined
  #verdicts: Verdicts | undefined
  readonly #probes = new Set<Probe>()
  readonly #timers = new Set<Timer>()

  constructor(ctx: SetupContext, exits: boolean) {
    this.#ctx = ctx
    this.#exits = exits
  }

  onStartup(): void {
    const names = this.#ctx.shared<Names>(
      'loop',
      () => new Names(this.#ctx),
      (all) => all.close(),
    )
    this.#names = names
    const forwards = this.#ctx.findAll('forward').filter(isGuarded)
    const verdicts = new Verdicts(forwards, this.#ctx)
    this.#verdicts = verdicts
    // One thread asks for all.
    if (this.#ctx.thread.index > 0) {
      verdicts.ask()
      return
    }
    for (const forward of forwards) {
      const zone = probeZone(forward, this.#ctx.block)
      if (zone !== undefined) this.#await(forward, zone, names, FIRST_DELAY)
    }
  }

  /** Begins once the upstreams are known. */
  #await(forward: Guarded, zone: Name, names: Names, waited: number): void {
    const timer = this.#ctx.clock.timer(FIRST_DELAY, () => {
      this.#timers.delete(timer)
      if (forward.upstreams.length > 0) this.#guard(forward, zone, names)
      else if (waited < LAST_START) this.#await(forward, zone, names, waited + FIRST_DELAY)
    })
    this.#timers.add(timer)
  }

  #guard(forward: Guarded, zone: Name, names: Names): void {
    for (const { label, file } of forward.upstreams) {
      const probe = new Probe(this.#ctx.clock, names, zone, (name) => forward.put(label, name, TYPE.HINFO))
      this.#probes.add(probe)
      probe.run(0, (sighting) => {
        if (sighting !== undefined) this.#detected(probe, forward, label, file, sighting)
        // A thread that was here before may have judged otherwise.
        else this.#verdicts?.on(forward, label)
      })
    }
  }

  onShutdown(): void {
    for (const timer of this.#timers) timer.cancel()
    this.#timers.clear()
    for (const probe of this.#probes) probe.stop()
    this.#probes.clear()
    this.#verdicts?.close()
  }

  serveDNS(query: Query, next: Handler): Reply | Promise<Reply> {
    if (query.type !== TYPE.HINFO || this.#names?.came(query.name, query.peer) !== true) return next(query)
    // An answer, so that the question goes round no further.
    return query.reply('loop', RCODE.NOERROR, { aa: false })
  }

  stands({ type }: Query): Passing | undefined {
    return type === TYPE.HINFO ? undefined : UNTOUCHED
  }

  #detected(probe: Probe, forward: Guarded, label: string, file: string | undefined, sighting: Sighting): void {
    const { log, block } = this.#ctx
    const { address, port } = sighting.client
    const from = address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
    const to = (block.servers[0] ?? '').replace(/^.*:\/\//, '')
    const zone = block.zones[0] ?? '.'
    const { pos } = forward.use
    const culprit = `nameserver ${label}${file === undefined ? '' : ` of ${file}`} ("forward ${forward.from}" at ${pos.file}:${pos.line})`
    const query = `Query: "HINFO ${sighting.name}"`
    if (this.#exits) {
      log.error(`${culprit} sends our queries back to us`)
      this.#ctx.fatal(`Loop (${from} -> ${to}) detected for zone "${zone}", see https://coredns.io/plugins/loop#troubleshooting. ${query}`)
      return
    }
    const again = `${RETRY_INTERVAL / 1000}s`
    log.error(
      `Loop (${from} -> ${to}) detected for zone "${zone}": ${culprit} sends our queries back to us and is asked no more; next look in ${again}. ${query}`,
    )
    this.#verdicts?.off(forward, label, `forwarding loop: nameserver ${label}${file === undefined ? '' : ` of ${file}`} sends queries back`)
    this.#lookAgain(probe, forward, label, culprit)
  }

  #lookAgain(probe: Probe, forward: Guarded, label: string, culprit: string): void {
    probe.run(RETRY_INTERVAL, (sighting, answered) => {
      if (sighting === undefined && answered) {
        this.#verdicts?.on(forward, label)
        this.#ctx.log.info(`${culprit} sends our queries back no longer and is asked again`)
      } else this.#lookAgain(probe, forward, label, culprit)
    })
  }
}
