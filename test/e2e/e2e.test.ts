/** The end-to-end suite: one control plane for all, one server that follows it through everything, in this order. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { accesses } from './access.js'
import { changes } from './changes.js'
import { options } from './options.js'
import { outages } from './outages.js'
import { restarts } from './restarts.js'
import { specification } from './specification.js'
import { transfers } from './transfers.js'
import { startWorld, type World } from './world.js'

let world: World
beforeAll(async () => {
  world = await startWorld()
  console.log(`[e2e] ${world.own?.versions ?? 'cluster of KUBECONFIG'}; Node ${process.version}`)
  if (world.theirs === undefined) console.log('[e2e] SKIPPED: the comparison with CoreDNS (COREDNS=path of its binary)')
})
afterAll(() => world?.stop())

const get = (): World => world

it('becomes ready', async () => {
  const { ours } = world
  await ours.sees(['NOERROR', '"1.1.0"'], 'dns-version.cluster.local', 'TXT')
  expect(await ours.http(ours.ready, '/ready')).toEqual({ status: 200, body: 'OK' })
})

describe('the DNS specification, name by name', () => specification(get))
describe('changes', () => changes(get))
describe('options', () => options(get))
describe('zone transfers', () => transfers(get))
describe('restarts', () => restarts(get))
describe.skipIf(!process.env.E2E_BINARIES)('outages', () => outages(get))
describe.skipIf(!process.env.E2E_BINARIES)('ways of access', () => accesses(get))
