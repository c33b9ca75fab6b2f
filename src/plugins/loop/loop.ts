/**
 * The loop guard as it serves. Soon after the start it puts questions for names that nobody can guess to each nameserver that the `forward`
 * lines of its block use. A name that arrives here as a question came back through that nameserver; three different ones in a row are a
 * loop. CoreDNS counts one name going round three times, which a cache on the way may stop, and cannot tell whose fault it is.
 */
import { type Name, RCODE, TYPE } from '../../dns/index.js'
import type { Handler, Plugin, Query, Reply, SetupContext, Timer } from '../contract.js'
import { type Guarded, isGuarded, probeZone } from './guarded.js'
import { Probe, type Sighting, type Watched } from './probe.js'

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
  /** Names under way, of all guards of this thread: a question may come back through another block, or to the generation before. */
  #watched: Watched | undefined
  readonly #probes = new Set<Probe>()
  readonly #timers = new Set<Timer>()

  constructor(ctx: SetupContext, exits: boolean) {
    this.#ctx = ctx
    this.#exits = exits
  }

  onStartup(): void {
    const watched = this.#ctx.shared<Watched>(
      'loop',
      () => new Map(),
      (map) => map.clear(),
    )
    this.#watched = watched
    for (const forward of this.#ctx.findAll('forward')) {
      const zone = isGuarded(forward) ? probeZone(forward, this.#ctx.block) : undefined
      if (isGuarded(forward) && zone !== undefined) this.#await(forward, zone, watched, FIRST_DELAY)
    }
  }

  /** Begins once the upstreams are known. */
  #await(forward: Guarded, zone: Name, watched: Watched, waited: number): void {
    const timer = this.#ctx.clock.timer(FIRST_DELAY, () => {
      this.#timers.delete(timer)
      if (forward.upstreams.length > 0) this.#guard(forward, zone, watched)
      else if (waited < LAST_START) this.#await(forward, zone, watched, waited + FIRST_DELAY)
    })
    this.#timers.add(timer)
  }

  #guard(forward: Guarded, zone: Name, watched: Watched): void {
    for (const { label, file } of forward.upstreams) {
      const probe = new Probe(this.#ctx.clock, watched, zone, (name) => forward.put(label, name, TYPE.HINFO))
      this.#probes.add(probe)
      probe.run(0, (sighting) => {
        if (sighting !== undefined) this.#detected(probe, forward, label, file, sighting)
      })
    }
  }

  onShutdown(): void {
    for (const timer of this.#timers) timer.cancel()
    this.#timers.clear()
    for (const probe of this.#probes) probe.stop()
    this.#probes.clear()
  }

  serveDNS(query: Query, next: Handler): Reply | Promise<Reply> {
    if (query.type !== TYPE.HINFO || this.#watched === undefined || this.#watched.size === 0) return next(query)
    const seen = this.#watched.get(query.name.key)
    if (seen === undefined) return next(query)
    seen({ client: query.peer, name: query.name })
    // An answer, so that the question goes round no further.
    return query.reply('loop', RCODE.NOERROR, { aa: false })
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
    forward.suspend(label, `forwarding loop: nameserver ${label}${file === undefined ? '' : ` of ${file}`} sends queries back`)
    this.#lookAgain(probe, forward, label, culprit)
  }

  #lookAgain(probe: Probe, forward: Guarded, label: string, culprit: string): void {
    probe.run(RETRY_INTERVAL, (sighting, answered) => {
      if (sighting === undefined && answered) {
        forward.resume(label)
        this.#ctx.log.info(`${culprit} sends our queries back no longer and is asked again`)
      } else this.#lookAgain(probe, forward, label, culprit)
    })
  }
}
