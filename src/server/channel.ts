/** The line between control and a serving thread: over a MessagePort or Worker, or directly where both halves share a thread. */
import type { MessagePort, Worker } from 'node:worker_threads'
import type { Channel } from './protocol.js'

/** Over `parentPort`, a MessagePort or a Worker. */
export function portChannel<Out, In>(port: MessagePort | Worker, close: () => void = () => undefined): Channel<Out, In> {
  return {
    post: (message) => port.postMessage(message),
    onMessage: (listener) => {
      if ('threadId' in port) port.on('message', listener)
      else port.on('message', listener)
    },
    close,
  }
}

class DirectEnd<Out, In> implements Channel<Out, In> {
  peer: DirectEnd<In, Out> | undefined
  #listener: ((message: In) => void) | undefined
  #waiting: In[] = []
  #closed = false

  post(message: Out): void {
    // A copy, as a port makes one: what does not survive cloning fails here too.
    const copy = structuredClone(message)
    queueMicrotask(() => this.peer?.deliver(copy))
  }
  deliver(message: In): void {
    if (this.#closed) return
    if (this.#listener === undefined) this.#waiting.push(message)
    else this.#listener(message)
  }
  onMessage(listener: (message: In) => void): void {
    this.#listener = listener
    const waiting = this.#waiting
    this.#waiting = []
    for (const message of waiting) queueMicrotask(() => this.deliver(message))
  }
  close(): void {
    this.#closed = true
  }
}

/** Two ends in one thread. Messages are copied and arrive in order, never within `post`. */
export function directPair<A, B>(): [Channel<A, B>, Channel<B, A>] {
  const left = new DirectEnd<A, B>()
  const right = new DirectEnd<B, A>()
  left.peer = right
  right.peer = left
  return [left, right]
}
