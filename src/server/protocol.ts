/** What control and a serving thread say to each other. Plain data: it crosses a MessagePort, or a direct channel in tests. */
import type { Corefile } from '../corefile/tree.js'
import type { PluginEntry } from '../plugins/load.js'
import type { Claim } from './listeners/ports.js'

import type { TransportChoice } from './transport-choice.js'

export type { PluginEntry }

/** The same for all serving threads of a process. */
export interface Common {
  /** Of board.ts. */
  readonly board: SharedArrayBuffer
  /** Random: what keys of TLS session tickets are made from, so that a session that one thread began, another takes up again. */
  readonly secret: Uint8Array
}

export interface ServingOptions extends Common {
  /** Default port of `dns://` keys (-dns.port). */
  readonly port: string
  readonly plugins: readonly PluginEntry[]
  /** `count` as it is at the start; a `prepare` brings its own. */
  readonly thread: { readonly index: number; readonly count: number }
  /** In a thread of its own: `auto` if not given. */
  readonly transport?: TransportChoice
}

/** Ports that were bound, by `server` label: where the Corefile leaves the choice to the system, all threads must have the same. */
export type Ports = readonly (readonly [server: string, port: number])[]

export type ToServing =
  | {
      readonly kind: 'prepare'
      readonly generation: number
      readonly corefile: Corefile
      /** Number of serving threads of this generation. */
      readonly count: number
      readonly claim: Claim
      /** What other threads have bound already. undefined: set everything up and wait for `open`. */
      readonly ports: Ports | undefined
    }
  /** The first thread has its sockets: those of this one come beside them. */
  | { readonly kind: 'open'; readonly generation: number; readonly ports: Ports }
  /** Other threads will want the addresses that this one has, and will have. Answered by `shared`. */
  | { readonly kind: 'share' }
  /** No other thread has them any more. */
  | { readonly kind: 'unshare' }
  | { readonly kind: 'commit'; readonly generation: number }
  | { readonly kind: 'abort'; readonly generation: number }
  /** Stop accepting, let what is in flight finish (at most `graceMs`), shut plugins down, say `stopped`. */
  | { readonly kind: 'stop'; readonly graceMs: number }
  /** Parts of a source's snapshot or a delta. `number` counts up by one per key; a gap makes the replica subscribe again. */
  | {
      readonly kind: 'source'
      readonly key: string
      readonly number: number
      readonly op: 'begin' | 'apply' | 'swap'
      readonly part: readonly unknown[]
    }
  | { readonly kind: 'log-level'; readonly debug: boolean }
  /** What a plugin of another thread says to its counterparts. */
  | { readonly kind: 'told'; readonly key: string; readonly value: unknown }
  /** Send a heartbeat now. */
  | { readonly kind: 'beat' }

export interface FailureText {
  readonly message: string
  readonly stack: string | undefined
}

export type FromServing =
  /** Sent once, when the thread can take messages. */
  /** `task`: as the kernel numbers the thread, where it does. */
  | { readonly kind: 'online'; readonly task: number | undefined }
  /** `listening`: lines for the start-up banner, in Corefile order ("example.org.:1053", "tls://.:853"). */
  | {
      readonly kind: 'prepared'
      readonly generation: number
      readonly listening: readonly string[]
      readonly warnings: readonly string[]
      readonly ports: Ports
    }
  /** `error`: why this machine or this moment does not allow it. */
  | { readonly kind: 'shared'; readonly error: string | undefined }
  | { readonly kind: 'failed'; readonly generation: number; readonly error: FailureText }
  | { readonly kind: 'committed'; readonly generation: number }
  /** The generation's last query is answered and its plugins are shut down. */
  | { readonly kind: 'retired'; readonly generation: number }
  | { readonly kind: 'subscribe'; readonly key: string }
  | { readonly kind: 'unsubscribe'; readonly key: string }
  /** For all other threads. */
  | { readonly kind: 'tell'; readonly key: string; readonly value: unknown }
  /** At least twice a second. */
  | { readonly kind: 'heartbeat'; readonly notReady: readonly string[]; readonly inFlight: number }
  /** Whole lines, with their line ends. */
  | { readonly kind: 'log'; readonly text: string }
  /** New metric families and children, before their slots are first read. */
  | {
      readonly kind: 'metrics'
      readonly families: readonly FamilyNotice[]
      readonly children: readonly ChildNotice[]
      readonly chunks: readonly SharedArrayBuffer[]
    }
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'stopped' }

export interface FamilyNotice {
  readonly id: number
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly labels: readonly string[]
  readonly buckets: readonly number[]
}
export interface ChildNotice {
  readonly family: number
  readonly values: readonly string[]
  /** First slot; a histogram has one per bucket, one for +Inf, then the sum. */
  readonly slot: number
  /** Out of the text until it is announced again; the slots are kept for it. */
  readonly removed: boolean
}

/** One end of the line between control and a serving thread. */
export interface Channel<Out, In> {
  post(message: Out): void
  onMessage(listener: (message: In) => void): void
  close(): void
}
