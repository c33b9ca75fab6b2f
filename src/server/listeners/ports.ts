/** What sockets and the dispatcher know of each other. Whoever turns the loop and however octets come: only this is used. */
import type { Socket } from 'node:net'
import type { Peer, Proto } from '../../plugins/contract.js'

/** Where a query came from, and where what answers it goes. Used for one query; without `retain`, others may get it once the handler has returned. */
export interface Origin {
  readonly peer: Peer
  readonly proto: Proto
  /**
   * The answer takes time: from here on the octets of the query, the peer and this are nobody else's. Called at most once, before the
   * handler returns.
   */
  retain(): void
  /**
   * Room for a message of up to `limit` octets that begins at `HEADROOM`, which `send` then need not copy. undefined: bring your own.
   * Good until `send`, or until somebody else asks.
   */
  room(limit: number): Buffer | undefined
  /**
   * Sends the message at `offset`…`offset + length` of `data`. The two octets before `offset` may be written to; nothing of it is kept.
   * false: the client is gone.
   */
  send(data: Buffer, offset: number, length: number): boolean
  /** Nothing more will be sent. Called exactly once, with or without a message before it. */
  end(): void
  /** A promise while the client reads more slowly than messages are sent; streams wait for it. */
  drained(): Promise<void> | undefined
}

/** Octets in front of a message that is to be sent: room for the length that TCP wants. */
export const HEADROOM = 2

/** Octets 0…`length` of one datagram or frame. They may be changed, and are others once this has returned, save after `origin.retain()`. */
export type PacketHandler = (data: Buffer, length: number, origin: Origin) => void

/**
 * How an address is taken. `alone`: nobody else can have it. `first`: it must be free, and then sockets of our other serving threads may
 * come beside (SO_REUSEPORT). `join`: beside those of our other threads. A second server that is started by mistake so finds the address
 * in use, whatever the number of threads.
 */
export type Claim = 'alone' | 'first' | 'join'

/** One bound UDP socket. */
export interface DatagramPort {
  readonly address: string
  readonly port: number
  /** Who gets what arrives. */
  handler: PacketHandler
  /** Lets sockets of other serving threads come beside it from now on, or no more. Rejects where that can't be done to a bound socket. */
  share(on: boolean): Promise<void>
  close(): void
}

/** Binds `address` (an IP address, with zone where link-local). Rejects with the system's error. */
export type OpenDatagramPort = (
  address: string,
  port: number,
  claim: Claim,
  handler: PacketHandler,
  onError: (error: Error) => void,
) => Promise<DatagramPort>

/** The server behind an address, as sockets see it. */
export interface Sink {
  packet: PacketHandler
  accept(socket: Socket): void
}

/** One address that a generation wants served. `host` "" is the wildcard. */
export interface Binding {
  readonly network: 'udp' | 'tcp'
  readonly host: string
  readonly port: number
  readonly sink: Sink
}
