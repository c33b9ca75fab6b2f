/** NOTIFY (RFC 1996): a zone changed, said to each secondary by UDP, three times at most. */
import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { FLAG, Message, type Name, OPCODE, rcodeName, TYPE } from '../../dns/index.js'
import type { Secondary } from './handler.js'

const ATTEMPTS = 3
/** Milliseconds that one attempt waits for its answer. */
const PATIENCE = 2000

/** Tells all of `hosts`, at the same time. Rejects with the failures of those that did not take it, one a line. */
export async function notifyAll(zone: Name, hosts: readonly Secondary[], source: string | undefined, patience = PATIENCE): Promise<void> {
  const outcomes = await Promise.allSettled(hosts.map((host) => notify(zone, host, source, patience)))
  const failures = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [(outcome.reason as Error).message] : []))
  if (failures.length > 0) throw new Error(failures.join('\n'))
}

async function notify(zone: Name, host: Secondary, source: string | undefined, patience: number): Promise<void> {
  let why = ''
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    try {
      const rcode = await exchange(zone, host, source, patience)
      if (rcode === 0) return
      why = `rcode was "${rcodeName(rcode)}"`
    } catch (error) {
      why = `"${(error as Error).message}"`
    }
  }
  throw new Error(`notify for zone "${zone}" was not accepted by "${host.text}": ${why}`)
}

/** One question and the rcode of its answer; a socket of its own, hence a fresh port. */
function exchange(zone: Name, host: Secondary, source: string | undefined, patience: number): Promise<number> {
  const id = randomInt(0x10000)
  const query = Message.query(zone, TYPE.SOA, { id, flags: (OPCODE.NOTIFY << 11) | FLAG.AA })
  const socket = createSocket(isIPv6(host.host) ? 'udp6' : 'udp4')
  return new Promise<number>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('i/o timeout')), patience)
    const end = (settle: () => void): void => {
      clearTimeout(timer)
      settle()
    }
    socket.on('error', (error) => end(() => reject(error)))
    socket.on('message', (octets) => {
      if (octets.length < 12 || octets.readUInt16BE(0) !== id || (octets[2]! & 0xf8) !== (0x80 | (OPCODE.NOTIFY << 3))) return
      end(() => resolve(octets[3]! & 0xf))
    })
    // Connected: only the secondary's own answers come in, and a closed port is heard of at once.
    socket.on('connect', () => socket.send(query.toBuffer()))
    socket.on('listening', () => socket.connect(host.port, host.host))
    socket.bind(0, source)
  }).finally(() => socket.close())
}
