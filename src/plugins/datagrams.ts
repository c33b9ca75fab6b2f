/** UDP sockets that plugins ask other servers through. Who turns the loop, and how octets are moved, is the server's business. */

/** A socket connected to one server: it hears nobody else, and hears of ICMP errors. */
export interface DatagramSocket {
  /** Our end, "10.0.0.2:41234"; "" while there is none (not connected yet, closed). */
  readonly local: string
  /**
   * Where a message of up to 512 octets may be written, from octet 2 on, and given to `send` as it lies there, which then need not copy it. Good
   * until then. undefined: bring your own.
   */
  room(): Buffer | undefined
  /** Sends the octets at `offset`…`offset + length` of `data`; they are read before this returns. A failure comes by `onError`, never from here. */
  send(data: Buffer, offset: number, length: number): void
  /** Nothing is heard of it any more. */
  close(): void
}

export interface DatagramOptions {
  /** An IP address, with zone where link-local. */
  readonly host: string
  readonly port: number
  /** Address to send from; undefined: the system's choice. */
  readonly source: string | undefined
  /** One datagram: octets 0…`length` of `data`, which are others once this has returned. */
  readonly onMessage: (data: Buffer, length: number) => void
  /** `code` as Node names it (ECONNREFUSED, EMFILE…). `connected`: false while no datagram could have been sent yet. May come more than once. */
  readonly onError: (error: NodeJS.ErrnoException, connected: boolean) => void
}

/** Opens a connected socket. Never throws: what fails comes by `onError` in a later turn. */
export type ConnectDatagram = (options: DatagramOptions) => DatagramSocket
