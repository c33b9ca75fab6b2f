/** The batched transport put together: the C library, tried out, a loop and the rings of a serving thread. */
import { Batches } from '../listeners/batch.js'
import { Clients } from '../listeners/batch-client.js'
import { BatchWatch } from '../listeners/batch-watch.js'
import type { Transport } from '../transport.js'
import { type Libc, loadLibc } from './libc.js'
import { Loop } from './loop.js'
import { type Segments, trySegments } from './segments.js'
import { testRings } from './slab.js'
import { toSocketAddress } from './sockaddr.js'
import { openSocket } from './sockets.js'

/** Rejects with what is missing, in words for the log. The loop that it makes owns its thread from `run` on. */
export async function makeBatchTransport(): Promise<Transport> {
  const libc = await loadLibc()
  const segments = tryOut(libc)
  const loop = await Loop.make(libc)
  const poison = process.env.CAIRNDNS_POISON === '1'
  const batches = new Batches(libc, loop, poison)
  const clients = new Clients(libc, loop, poison, segments)
  return {
    name: 'batch',
    clock: loop.clock,
    endOfRound: (what) => loop.flushLater(what),
    openDatagram: () => async (address, port, claim, handler) => batches.open(address, port, claim, handler),
    connectDatagram: clients.connect,
    attend: () => loop.attend(),
    touch: () => loop.turn(),
    observe: (metrics, log) => void new BatchWatch(batches, clients, metrics, log),
    run: () => loop.run(),
  }
}

/** Datagrams to ourselves: what comes back as it was sent shows that calls and structures are as we take them to be. Returns what not every kernel has. */
function tryOut(libc: Libc): Segments | undefined {
  const { fd, port } = openSocket(libc, { network: 'udp', address: '127.0.0.1', port: 0 })
  try {
    const { bytes } = toSocketAddress(libc, '127.0.0.1', port)
    testRings(libc, fd, bytes)
    return libc.connect(fd, bytes, bytes.length) === 0 ? trySegments(libc, fd) : undefined
  } finally {
    libc.close(fd)
  }
}
