/** Log lines as CoreDNS prints them: `[LEVEL] plugin/NAME: text`, no date. Text only; where it goes is the sink's business. */
import type { Logger } from '../plugins/contract.js'

export interface LogSink {
  /** One or more whole lines, with their line ends. */
  write(text: string): void
  /** Hands on what is kept back. */
  flush(): void
}

/** One per process half: makes loggers that share a sink and the debug switch. */
export class Loggers {
  readonly #sink: LogSink
  #debug = false

  constructor(sink: LogSink) {
    this.#sink = sink
  }
  /** Lines of level DEBUG are printed from now on, or no more. */
  setDebug(on: boolean): void {
    this.#debug = on
  }
  flush(): void {
    this.#sink.flush()
  }
  /** Whole lines that were formatted elsewhere. */
  lines(text: string): void {
    this.#sink.write(text)
  }
  /** A line without a level, as the start-up banner has them. */
  raw(text: string): void {
    this.#sink.write(`${text}\n`)
  }
  /** With '' the server's own lines, without a prefix. */
  for(plugin: string): Logger {
    const prefix = plugin === '' ? '' : `plugin/${plugin}: `
    const line = (level: string, text: string): void =>
      this.#sink.write(`[${level}] ${text.endsWith('\n') ? text.replace(/\n+$/, '') : text}\n`)
    return {
      debug: (text) => {
        if (this.#debug) line('DEBUG', prefix + text)
      },
      info: (text) => line('INFO', prefix + text),
      warning: (text) => line('WARNING', prefix + text),
      error: (text) => line('ERROR', prefix + text),
      plain: (level, text) => {
        if (level !== 'DEBUG' || this.#debug) line(level, text)
      },
    }
  }
}

/** Keeps lines for up to `ms`, or until `limit` characters have come together, and hands them on in one piece. */
export class BufferedSink implements LogSink {
  readonly #post: (text: string) => void
  readonly #ms: number
  readonly #limit: number
  #lines = ''
  #timer: NodeJS.Timeout | undefined

  constructor(post: (text: string) => void, ms = 10, limit = 64 * 1024) {
    this.#post = post
    this.#ms = ms
    this.#limit = limit
  }
  write(text: string): void {
    this.#lines += text
    if (this.#lines.length >= this.#limit) this.flush()
    else if (this.#timer === undefined) {
      this.#timer = setTimeout(() => this.flush(), this.#ms)
      this.#timer.unref()
    }
  }
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#lines === '') return
    const lines = this.#lines
    this.#lines = ''
    this.#post(lines)
  }
}

/** Octets that may wait for whoever reads standard output. */
const MAX_UNREAD = 4 << 20

/** What of standard output a sink uses. */
type Output = Pick<NodeJS.WriteStream, 'write' | 'writableLength' | 'on'>

/**
 * Standard output. A reader that went away (EPIPE) must not end a DNS server, and one that has stopped reading must not fill its memory:
 * what finds no room is dropped, and how much that was is said once there is room again.
 */
export function stdoutSink(output: Output = process.stdout): LogSink {
  let dropped = 0
  output.on('error', () => undefined)
  const write = (text: string): void => {
    if (output.writableLength + text.length > MAX_UNREAD) {
      dropped += text.length
      return
    }
    if (dropped > 0) output.write(`[WARNING] ${dropped} characters of log were dropped: standard output was not read\n`)
    dropped = 0
    output.write(text)
  }
  return { write, flush: () => undefined }
}
