/**
 * Loaded into a server by `node --require` (its threads too). On SIGUSR2 each thread writes how long its event loop was held up since the
 * last time, and its heap, into FILE.THREAD (FILE: CAIRNDNS_PROBE).
 *
 * `loop` is what monitorEventLoopDelay says at 10 ms, which is also its floor. On a machine that does other things as well that is mostly
 * time in which the thread was not let run; `busy` is the time that it really ran between two wake-ups due every 10 ms, likewise with
 * 10 ms as what a busy loop without any long stretch shows.
 */
const fs = require('node:fs')
const { createHistogram, monitorEventLoopDelay } = require('node:perf_hooks')
const v8 = require('node:v8')
const { BroadcastChannel, isMainThread, threadId } = require('node:worker_threads')

const EVERY_MS = 10
const file = process.env.CAIRNDNS_PROBE

function start() {
  const delay = monitorEventLoopDelay({ resolution: EVERY_MS })
  delay.enable()
  const busy = createHistogram()
  const schedstat = fs.openSync('/proc/thread-self/schedstat')
  const buffer = Buffer.alloc(64)
  const ran = () => Number(buffer.toString('latin1', 0, fs.readSync(schedstat, buffer, 0, 64, 0)).split(' ')[0])
  let before = ran()
  setInterval(() => {
    const now = ran()
    busy.record(Math.max(1, now - before))
    before = now
  }, EVERY_MS).unref()
  const shown = (histogram) => {
    const ms = (nanoseconds) => Math.round(nanoseconds / 1e4) / 100
    const { count, max } = histogram
    return { p50: ms(histogram.percentile(50)), p999: ms(histogram.percentile(99.9)), max: ms(max), count }
  }
  return () => {
    const { used_heap_size: used, total_physical_size: heap, external_memory: external } = v8.getHeapStatistics()
    const spaces = Object.fromEntries(v8.getHeapSpaceStatistics().map((s) => [s.space_name, [s.space_used_size, s.physical_space_size]]))
    const text = JSON.stringify({ threadId, loop: shown(delay), busy: shown(busy), used, heap, external, spaces })
    fs.writeFileSync(`${file}.${threadId}.new`, text)
    fs.renameSync(`${file}.${threadId}.new`, `${file}.${threadId}`)
    delay.reset()
    busy.reset()
  }
}

if (file !== undefined) {
  const write = start()
  const channel = new BroadcastChannel('cairndns-probe')
  channel.unref()
  if (isMainThread) {
    process.on('SIGUSR2', () => {
      channel.postMessage('')
      write()
    })
  } else channel.onmessage = write
}
