/** Objects of the API as the tests make them. */
import type { Json } from './api.js'

const port = (name: string, number: number, protocol = 'TCP'): Json => ({ name, port: number, targetPort: number, protocol })
export const ports = {
  http: [port('http', 80)],
  dns: [port('dns', 53, 'UDP'), port('dns-tcp', 53)],
  plain: [{ port: 81, protocol: 'TCP' }],
}

export const namespace = (name: string): Json => ({ kind: 'Namespace', metadata: { name } })

export const service = (ns: string, name: string, spec: Json = {}): Json => ({
  kind: 'Service',
  metadata: { namespace: ns, name },
  spec: { ports: ports.http, ...spec },
})

export interface Endpoint {
  readonly address: string
  readonly hostname?: string
  readonly ready?: boolean
}

export function slice(ns: string, name: string, owner: string, endpoints: readonly Endpoint[], number = 80): Json {
  const six = endpoints[0]?.address.includes(':')
  return {
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    metadata: { namespace: ns, name, labels: { 'kubernetes.io/service-name': owner } },
    addressType: six ? 'IPv6' : 'IPv4',
    ports: [{ name: 'http', port: number, protocol: 'TCP' }],
    endpoints: endpoints.map(({ address, hostname, ready }) => ({
      addresses: [address],
      ...(hostname === undefined ? {} : { hostname }),
      ...(ready === undefined ? {} : { conditions: { ready } }),
    })),
  }
}

/** A pod that no kubelet runs: its status is the test's. */
export const pod = (ns: string, name: string, labels: Json, spec: Json = {}): Json => ({
  kind: 'Pod',
  metadata: { namespace: ns, name, labels },
  spec: { nodeName: 'node-1', containers: [{ name: 'c', image: 'none' }], terminationGracePeriodSeconds: 0, ...spec },
})

export const running = (address: string, ready = true): Json => ({
  status: {
    phase: 'Running',
    podIP: address,
    podIPs: [{ ip: address }],
    conditions: [{ type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: new Date().toISOString() }],
  },
})
