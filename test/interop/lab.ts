/** What a test file works with: the zone, the peers that are installed, a certificate, and servers in front of them. */
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { CA, CERT, KEY } from '../fakes/certificate.js'
import { freePorts, type Running, run } from '../support/process.js'
import { isInstalled, Peer, type PeerName } from './peers.js'
import { makeZone, type Zone } from './zone.js'

/** Any of these can be the authority that resolvers take the zone from. */
const AUTHORITIES: readonly PeerName[] = ['bind', 'knot', 'nsd']

export interface Server<K extends string> {
  readonly ports: Readonly<Record<K, number>>
  readonly running: Running
}

interface Place {
  readonly folder: string
  readonly zone: Zone
  /** PEM files. */
  readonly cert: string
  readonly key: string
  readonly ca: string
}

export class Lab {
  #made: Place | undefined
  readonly #peers: Peer[] = []
  readonly #servers: Running[] = []
  readonly #ports = new Map<string, number>()
  #authority: Peer | undefined

  /** Made when first needed: tests that are left out leave nothing behind. */
  get #place(): Place {
    if (this.#made !== undefined) return this.#made
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairndns-interop-'))
    const file = (name: string, text: string): string => {
      const full = path.join(folder, name)
      fs.writeFileSync(full, text)
      return full
    }
    this.#made = {
      folder,
      cert: file('cert.pem', CERT + CA),
      key: file('key.pem', KEY),
      ca: file('ca.pem', CA),
      zone: makeZone(folder),
    }
    return this.#made
  }

  get zone(): Zone {
    return this.#place.zone
  }

  /** PEM file of the authority that signed the peers' certificate. */
  get ca(): string {
    return this.#place.ca
  }

  /** The authority is started along with the first resolver. */
  async peer(name: PeerName): Promise<Peer> {
    const context = this.#place
    if (AUTHORITIES.includes(name)) return this.#kept(await Peer.start(name, { ...context, authority: 0 }))
    this.#authority ??= this.#kept(await Peer.start(AUTHORITIES.find(isInstalled)!, { ...context, authority: 0 }))
    return this.#kept(await Peer.start(name, { ...context, authority: this.#authority.ports.dns }))
  }

  /** A free port, the same each time for one name. */
  async port(name: string): Promise<number> {
    const port = this.#ports.get(name) ?? (await freePorts(1))[0]!
    this.#ports.set(name, port)
    return port
  }

  /** Ours, in one process, with a server block of this body for each. */
  async ours<K extends string>(bodies: Readonly<Record<K, string>>): Promise<Server<K>> {
    return this.#serve(bodies, undefined)
  }

  /** CoreDNS with the same, if the variable COREDNS names its binary. */
  async coredns<K extends string>(bodies: Readonly<Record<K, string>>): Promise<Server<K> | undefined> {
    return process.env.COREDNS ? this.#serve(bodies, process.env.COREDNS) : undefined
  }

  async stop(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop()))
    await Promise.all(this.#peers.map((peer) => peer.stop()))
    if (this.#made !== undefined) fs.rmSync(this.#made.folder, { recursive: true, force: true })
  }

  #kept(peer: Peer): Peer {
    this.#peers.push(peer)
    return peer
  }

  async #serve<K extends string>(bodies: Readonly<Record<K, string>>, command: string | undefined): Promise<Server<K>> {
    const names = Object.keys(bodies) as K[]
    const ports = await freePorts(names.length)
    const corefile = names.map((name, i) => `.:${ports[i]} {\n    bind 127.0.0.1\n${bodies[name]}\n}\n`).join('')
    const running = await run(corefile, ports.at(-1)!, command === undefined ? {} : { command })
    this.#servers.push(running)
    return { ports: Object.fromEntries(names.map((name, i) => [name, ports[i]!])) as Record<K, number>, running }
  }
}

export const canAuthority = (): boolean => AUTHORITIES.some(isInstalled)
