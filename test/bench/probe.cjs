/**
 * Loaded into a server by `node --require` (its threads too). On SIGUSR2 every serving thread writes what its event loop was held up since
 * the last time, and each thread its heap, into FILE.THREAD (FILE: CAIRNDNS_PROBE).
 */
const fs = require('node:fs')
const { monitorEventLoopDelay } = require('node:perf_hooks')
const v8 = require('node:v8')
const { BroadcastChannel, isMainThread, threadId } = require('node:worker_threads')

const file = process.env.CAIRNDNS_PROBE
// The histogram takes times between two wake-ups that should be so many ms apart, so this is its floor.
const delay = monitorEventLoopDelay({ resolution: 10 })
delay.enable()

function write() {
  const { used_heap_size: used, total_physical_size: heap, external_memory: external } = v8.getHeapStatistics()
  const ms = (nanoseconds) => Math.round(nanoseconds / 1e4) / 100
  const loop = { p50: ms(delay.percentile(50)), p999: ms(delay.percentile(99.9)), max: ms(delay.max), count: delay.count }
  const spaces = Object.fromEntries(v8.getHeapSpaceStatistics().map((s) => [s.space_name, [s.space_used_size, s.physical_space_size]]))
  const text = JSON.stringify({ threadId, loop, used, heap, external, spaces, memory: process.memoryUsage() })
  fs.writeFileSync(`${file}.${threadId}.new`, text)
  fs.renameSync(`${file}.${threadId}.new`, `${file}.${threadId}`)
  delay.reset()
}

if (file !== undefined) {
  const channel = new BroadcastChannel('cairndns-probe')
  channel.unref()
  if (isMainThread) {
    process.on('SIGUSR2', () => {
      channel.postMessage('')
      write()
    })
  } else channel.onmessage = write
}
