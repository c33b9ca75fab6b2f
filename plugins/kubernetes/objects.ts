/**
 * What a source tells the replicas of a cluster: plain records that survive structured cloning, cut down to what answers need.
 *
 * Rules for whoever emits them:
 * - A `put` replaces the object of the same kind, namespace and name whole; a `delete` of something unknown does nothing.
 * - Only what selectors (`labels`, `namespace_labels`) and the watches in `SourceNeeds` let through is emitted, and nothing that did not
 *   change in these fields. A selector is the source's work; the `namespaces` option is the answers'.
 * - Names, hostnames and zones come in the spelling of the object; the replica folds them.
 * - Optional members are left out where the object says nothing (smaller clones, no empty arrays).
 */

export interface PortRecord {
  /** "" for the only, unnamed port. */
  readonly name: string
  /** As in the object ("TCP", "UDP", "SCTP"); the API's default "TCP" where it is left out. */
  readonly protocol: string
  /** 1…65535, or -1 where a slice leaves it out (all ports): no SRV record then. */
  readonly port: number
}

export interface ServicePut {
  readonly op: 'put'
  readonly kind: 'service'
  readonly namespace: string
  readonly name: string
  /** spec.type; "ClusterIP" where it is left out. */
  readonly type: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName'
  /** spec.clusterIPs, or the one of spec.clusterIP; without "None" and "". */
  readonly addresses?: readonly string[]
  /** spec.clusterIP is "None". */
  readonly headless?: true
  /** Of type ExternalName, as written. */
  readonly externalName?: string
  readonly ports?: readonly PortRecord[]
  /** spec.externalIPs, then IP or hostname of each status.loadBalancer.ingress (for k8s_external). */
  readonly external?: readonly string[]
}

/**
 * The ready endpoints of an EndpointSlice (conditions.ready true or absent), or of an Endpoints object in the same shape: `kind`
 * "endpoints" counts only while its service has no slice. "mcslice" is a slice of the multi-cluster API (label
 * multicluster.kubernetes.io/service-name). One slice may carry both labels: then it is emitted as both kinds.
 *
 * Endpoints are parallel arrays, one entry per address of each ready endpoint; `name` of an Endpoints object with several subsets with
 * unequal ports gets one record per subset ("web/0", "web/1", …: a slash can't stand in a name). Not ready, no entry; a slice without
 * ready endpoints is still emitted, with `addresses` left out.
 */
export interface SlicePut {
  readonly op: 'put'
  readonly kind: 'slice' | 'endpoints' | 'mcslice'
  readonly namespace: string
  readonly name: string
  /** The service it belongs to: label kubernetes.io/service-name (or the multi-cluster one), or an Endpoints object's own name. Without it, not emitted. */
  readonly service: string
  readonly addresses?: readonly string[]
  /** "" where an endpoint has none; the member is left out if all have none. */
  readonly hostnames?: readonly string[]
  /** Name of the pod (targetRef.name) if it has less than 64 characters, else ""; only with `SourceNeeds.podNames`. */
  readonly pods?: readonly string[]
  /** Topology zone of the endpoint, "" for none; only with `SourceNeeds.zones`. */
  readonly zones?: readonly string[]
  readonly ports?: readonly PortRecord[]
  /** mcslice: label multicluster.kubernetes.io/source-cluster. */
  readonly cluster?: string
}

export interface NamespacePut {
  readonly op: 'put'
  readonly kind: 'namespace'
  readonly name: string
}

/**
 * A pod with an address; only with `SourceNeeds.pods`. One that terminates stays what it was until it is gone, and is not taken up if it was
 * terminating when it was first seen.
 */
export interface PodPut {
  readonly op: 'put'
  readonly kind: 'pod'
  readonly namespace: string
  readonly name: string
  /** status.podIP. */
  readonly address: string
  /** For the metadata `kubernetes/client-label/…`. */
  readonly labels?: Readonly<Record<string, string>>
}

export interface ServiceImportPut {
  readonly op: 'put'
  readonly kind: 'serviceimport'
  readonly namespace: string
  readonly name: string
  /** spec.type "Headless". */
  readonly headless?: true
  /** spec.ips. */
  readonly addresses?: readonly string[]
  readonly ports?: readonly PortRecord[]
}

export type ObjectPut = ServicePut | SlicePut | NamespacePut | PodPut | ServiceImportPut
export type ObjectKind = ObjectPut['kind']

export interface ObjectDelete {
  readonly op: 'delete'
  readonly kind: ObjectKind
  /** "" for a namespace. */
  readonly namespace: string
  readonly name: string
}

/**
 * State of the source: at the end of every snapshot, and behind the records of a delta that changed it. Serials are seconds since 1970 of
 * the last change that answers can show (a pod's labels are none), 0 before the first. They never go back; of several changes within a
 * second the first after it was seen takes the next second, and the serial is never more than that one ahead.
 */
export interface StateRecord {
  readonly op: 'state'
  /** All watched kinds have been listed once, or come from a snapshot. Never goes back to false. */
  readonly synced: boolean
  /** Seconds since 1970 when the snapshot was saved that is served until all has been listed. */
  readonly staleSince?: number
  readonly serial: number
  /** Of ServiceImports and multi-cluster slices. */
  readonly multiclusterSerial: number
  /** Of services with external addresses. */
  readonly externalSerial: number
}

export type ClusterRecord = ObjectPut | ObjectDelete | StateRecord
