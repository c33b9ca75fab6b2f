/** `whoami`: tells the client its own address, port and transport, in the additional section. */
import { Name, RCODE, type RR, TYPE } from '../../dns/index.js'
import type { Plugin, PluginModule, Query, Reply } from '../contract.js'

const MAX_NAME = 255

const module: PluginModule = {
  name: 'whoami',
  apiVersion: 1,
  setup: () => whoami,
}
export default module

const LABELS = { udp: Name.parse('_udp.'), tcp: Name.parse('_tcp.') }

const whoami: Plugin = {
  name: 'whoami',
  serveDNS(query: Query): Reply {
    const { name, peer } = query
    const head = { class: query.class, ttl: 0 }
    const additionals: RR[] =
      peer.family === 4
        ? [{ name, type: TYPE.A, ...head, data: { kind: 'A', address: peer.address } }]
        : [{ name, type: TYPE.AAAA, ...head, data: { kind: 'AAAA', address: peer.address } }]
    const label = query.proto === 'udp' ? LABELS.udp : LABELS.tcp
    // There is no such name if the one asked is as long as names can be.
    if (name.wire.length + 5 <= MAX_NAME)
      additionals.push({
        name: label.append(name),
        type: TYPE.SRV,
        ...head,
        data: { kind: 'SRV', priority: 0, weight: 0, port: peer.port, target: Name.root },
      })
    return query.reply('whoami', RCODE.NOERROR, { additionals })
  },
}
