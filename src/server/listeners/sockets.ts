/**
 * All bound sockets of a serving thread. They belong to the process, not to a generation: a new one opens only what is missing, and what
 * nobody wants any more closes after the change. The wildcard is one UDP socket per local address; TCP, where the accepted socket knows
 * its own address, needs only one.
 */
import { createServer, type Server, type Socket } from 'node:net'
import type { Clock, Logger, Timer } from '../../plugins/contract.js'
import { bindError, errorCode, isExtraLoopback, isWildcard, joinHostPort, localAddresses, plainAddress } from './addresses.js'
import type { Binding, Claim, OpenDatagramPort, Sink } from './ports.js'
import type { Sharing, Taken } from './sharing.js'

/** How often the addresses of the machine are looked at. */
const RESCAN_MS = 5000
const BACKLOG = 1024

/** A bound socket of either kind. */
interface Bound {
  readonly network: 'udp' | 'tcp'
  /** "" for TCP on all addresses. */
  readonly address: string
  readonly port: number
  /** Who is served here; undefined: nobody any more. */
  sink: Sink | undefined
  share(on: boolean): Promise<void>
  close(): void
}

export class Sockets {
  readonly #bound = new Map<string, Bound>()
  readonly #log: Logger
  readonly #clock: Clock
  readonly #openDatagram: OpenDatagramPort
  readonly #sharing: Sharing
  /** What the serving generation wants. */
  #bindings: readonly Binding[] = []
  /** What a generation that is being prepared wants; new sockets serve it. */
  #prepared: readonly Binding[] | undefined
  #timer: Timer | undefined
  /** The rescan that is under way: a change of configuration waits for it. */
  #scan: Promise<void> = Promise.resolve()
  #closed = false
  /** How what is opened now is taken; where the port is ours already, as one of several if there are several. */
  #claim: Claim = 'alone'
  /** Networks and ports that this thread had when the opening began. */
  #ours: ReadonlySet<string> = new Set()

  constructor(log: Logger, clock: Clock, sharing: Sharing, openDatagram: OpenDatagramPort) {
    this.#log = log
    this.#clock = clock
    this.#openDatagram = openDatagram
    this.#sharing = sharing
  }

  /** Binds what `bindings` need and is not bound yet; all or nothing. Throws as Go words it. */
  async open(bindings: readonly Binding[], claim: Claim): Promise<() => void> {
    const opened: Bound[] = []
    this.#prepared = bindings
    await this.#scan
    this.#claim = claim
    this.#ours = new Set([...this.#bound.values()].map(({ network, port }) => `${network} ${port}`))
    const rollback = (): void => {
      this.#prepared = undefined
      for (const bound of opened) this.#remove(bound)
    }
    try {
      if (this.#closed) throw new Error('the server is stopping')
      if (claim !== 'alone') await this.#sharing.load()
      // UDP first: whoever sees the TCP port open may ask by UDP at once. Where a port is taken, TCP has the first word, as in CoreDNS.
      await this.#openAll('udp', bindings, opened).catch(async (error: unknown) => {
        await this.#openAll('tcp', bindings, opened)
        throw error
      })
      await this.#openAll('tcp', bindings, opened)
      return rollback
    } catch (error) {
      rollback()
      throw error
    }
  }

  /** The generation that was opened for serves now. Returns how to close what nobody wants any more; until then it takes nothing in. */
  commit(bindings: readonly Binding[]): () => void {
    this.#bindings = bindings
    this.#prepared = undefined
    const gone: Bound[] = []
    for (const bound of this.#bound.values()) {
      if (this.#wanted(bound)) bound.sink = this.#resolve(bound.network, bound.address, bound.port)
      else gone.push(bound)
    }
    for (const bound of gone) this.#retire(bound)
    this.#arm()
    return () => {
      for (const bound of gone) bound.close()
    }
  }

  /** Other threads will have sockets on the same addresses, or have them no more. Rejects if that is not possible. */
  async share(on: boolean): Promise<void> {
    if (on) await this.#sharing.load()
    await this.#scan
    for (const bound of this.#bound.values()) await bound.share(on)
    this.#claim = on ? 'join' : 'alone'
  }

  /** Takes nothing in any more; replies still leave. */
  stop(): void {
    this.#closed = true
    this.#timer?.cancel()
    for (const bound of this.#bound.values()) {
      bound.sink = undefined
      if (bound.network === 'tcp') bound.close()
    }
  }

  close(): void {
    this.stop()
    for (const bound of this.#bound.values()) bound.close()
    this.#bound.clear()
  }

  /** A port that is free for TCP, for bindings that leave the choice to the system. */
  static async freePort(host: string): Promise<number> {
    const server = createServer()
    const port = await listen(server, isWildcard(host) ? '::' : host, 0).catch(() => listen(server, '0.0.0.0', 0))
    await new Promise((resolve) => server.close(resolve))
    return port
  }

  /** The wildcard first: one that is there saves the sockets for single addresses. */
  async #openAll(network: 'udp' | 'tcp', bindings: readonly Binding[], opened: Bound[]): Promise<void> {
    const wanted = bindings.filter((binding) => binding.network === network)
    for (const binding of wanted.filter(({ host }) => isWildcard(host))) await this.#openWildcard(binding, opened)
    for (const { host, port } of wanted.filter((binding) => !isWildcard(binding.host))) await this.#ensure(network, host, port, opened)
  }

  async #openWildcard(binding: Binding, opened: Bound[]): Promise<void> {
    const { network, host, port } = binding
    if (network === 'tcp' && (this.#bound.has(keyOf('tcp', '', port)) || (await this.#openAnyTcp(host, port, opened)))) return
    let count = 0
    let lastError: unknown
    for (const address of localAddresses()) {
      try {
        await this.#ensure(network, address, port, opened)
        count++
      } catch (error) {
        const code = errorCode((error as Error).cause)
        if ((code === 'EADDRINUSE' && !isExtraLoopback(address)) || code === 'EACCES')
          throw bindError(network, host, port, (error as Error).cause)
        lastError = error
        if (!isExtraLoopback(address)) this.#log.warning(`${(error as Error).message}; will be tried again`)
      }
    }
    if (count === 0) throw lastError ?? new Error(`listen ${network} ${joinHostPort(host, port)}: no local address`)
  }

  /** One socket for all addresses. false: own sockets for single addresses of the port are in the way. */
  async #openAnyTcp(host: string, port: number, opened: Bound[]): Promise<boolean> {
    try {
      await this.#bind('tcp', '', port, opened)
      return true
    } catch (error) {
      for (const bound of this.#bound.values()) if (bound.network === 'tcp' && bound.port === port) return false
      throw bindError('tcp', host, port, error)
    }
  }

  async #ensure(network: 'udp' | 'tcp', address: string, port: number, opened: Bound[]): Promise<void> {
    if (this.#bound.has(keyOf(network, address, port)) || (network === 'tcp' && this.#bound.has(keyOf('tcp', '', port)))) return
    try {
      await this.#bind(network, address, port, opened)
    } catch (error) {
      throw bindError(network, address, port, error)
    }
  }

  async #bind(network: 'udp' | 'tcp', address: string, port: number, opened: Bound[]): Promise<void> {
    const bound = network === 'udp' ? await this.#bindUdp(address, port) : await this.#bindTcp(address, port)
    opened.push(bound)
    this.#bound.set(keyOf(network, address, port), bound)
    bound.sink = this.#resolve(network, address, port)
  }

  async #bindUdp(address: string, port: number): Promise<Bound> {
    const onError = (error: Error): void => this.#log.warning(`udp ${joinHostPort(address, port)}: ${error.message}`)
    const socket = await this.#openDatagram(
      address,
      port,
      this.#claimOf('udp', port),
      (data, length, origin) => bound.sink?.packet(data, length, origin),
      onError,
    )
    const bound: Bound = {
      network: 'udp',
      address,
      port,
      sink: undefined,
      share: (on) => socket.share(on),
      close: () => socket.close(),
    }
    return bound
  }

  async #bindTcp(address: string, port: number): Promise<Bound> {
    const server = createServer({ allowHalfOpen: true })
    const taken = await this.#takeTcp(address, port)
    const bound: Bound = {
      network: 'tcp',
      address,
      port,
      sink: undefined,
      share: (on) => this.#sharing.set(taken, server, on),
      close: () => void server.close(),
    }
    server.on('connection', (socket: Socket) => {
      const sink = address === '' ? this.#resolve('tcp', plainAddress(socket.localAddress ?? ''), port) : bound.sink
      if (sink === undefined || this.#closed) socket.destroy()
      else sink.accept(socket)
    })
    await (address === '' ? withoutIpv6((any) => listen(server, any, port, taken)) : listen(server, address, port, taken))
    server.on('error', (error) => this.#log.warning(`tcp ${joinHostPort(address, port)}: ${error.message}`))
    return bound
  }

  #takeTcp(address: string, port: number): Promise<Taken> {
    const claim = this.#claimOf('tcp', port)
    const take = (host: string): Promise<Taken> => this.#sharing.bind('tcp', host, port, claim)
    return address === '' ? withoutIpv6((any) => take(any === '::' ? '' : any)) : take(address)
  }

  /** Nobody else is on a port that we have: a new address there is not looked at first, as one of our threads may be quicker. */
  #claimOf(network: 'udp' | 'tcp', port: number): Claim {
    return this.#claim === 'first' && this.#ours.has(`${network} ${port}`) ? 'join' : this.#claim
  }

  /** The sink for an address: the one that names it, else the wildcard of the port. */
  #resolve(network: 'udp' | 'tcp', address: string, port: number): Sink | undefined {
    return find(this.#bindings, network, address, port) ?? (this.#prepared && find(this.#prepared, network, address, port))
  }

  #wanted(bound: Bound): boolean {
    if (bound.address !== '') return find(this.#bindings, bound.network, bound.address, bound.port) !== undefined
    return this.#bindings.some(({ network, port }) => network === bound.network && port === bound.port)
  }

  #retire(bound: Bound): void {
    this.#bound.delete(keyOf(bound.network, bound.address, bound.port))
    bound.sink = undefined
    if (bound.network === 'tcp') bound.close()
  }

  #remove(bound: Bound): void {
    this.#bound.delete(keyOf(bound.network, bound.address, bound.port))
    bound.close()
  }

  #arm(): void {
    if (this.#closed) return
    this.#timer ??= this.#clock.timer(RESCAN_MS, () => {
      this.#timer = undefined
      void this.rescan().finally(() => this.#arm())
    })
  }

  /** Follows the addresses of the machine, for wildcards. */
  rescan(): Promise<void> {
    this.#scan = this.#scan.then(() => this.#follow())
    return this.#scan
  }

  async #follow(): Promise<void> {
    if (this.#prepared !== undefined || this.#closed) return
    if (this.#claim === 'first') this.#claim = 'join'
    const addresses = localAddresses()
    const wildcards = this.#bindings.filter(({ host, network, port }) => isWildcard(host) && !this.#bound.has(keyOf(network, '', port)))
    for (const { network, port } of wildcards) {
      for (const address of addresses)
        await this.#ensure(network, address, port, []).catch((error: Error) => this.#log.debug(error.message))
      for (const bound of [...this.#bound.values()]) {
        const named = this.#bindings.some((b) => b.network === network && b.port === port && b.host === bound.address)
        if (bound.network === network && bound.port === port && !named && !addresses.includes(bound.address)) this.#remove(bound)
      }
    }
  }
}

const keyOf = (network: string, address: string, port: number): string => `${network} ${address} ${port}`

function find(bindings: readonly Binding[], network: string, address: string, port: number): Sink | undefined {
  let any: Sink | undefined
  for (const binding of bindings) {
    if (binding.network !== network || binding.port !== port) continue
    if (binding.host === address) return binding.sink
    if (isWildcard(binding.host)) any ??= binding.sink
  }
  return any
}

/** The wildcard of a machine without IPv6 is that of IPv4. */
async function withoutIpv6<T>(bind: (host: '::' | '0.0.0.0') => Promise<T>): Promise<T> {
  try {
    return await bind('::')
  } catch (error) {
    if (errorCode(error) === 'EADDRINUSE' || errorCode(error) === 'EACCES') throw error
    return bind('0.0.0.0')
  }
}

function listen(server: Server, host: string, port: number, taken: Taken = { reusePort: false }): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    const how = 'fd' in taken ? { fd: taken.fd } : { host, port, exclusive: true, ...(taken.reusePort ? { reusePort: true } : {}) }
    server.listen({ ...how, backlog: BACKLOG }, () => {
      server.off('error', reject)
      resolve((server.address() as { port: number }).port)
    })
  })
}
