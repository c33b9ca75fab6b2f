import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { EIO, type Libc, loadLibc } from './libc.js'
import { Segments, trySegments } from './segments.js'
import { HEADER, ReceiveRing, SendRing, type SendTally, SLOTS, W_CONTROLLEN } from './slab.js'
import { toSocketAddress } from './sockaddr.js'
import { openConnected, openSocket } from './sockets.js'

const libc: Libc | undefined = await loadLibc().catch(() => undefined)
const native = libc!

/** Texts of few lengths, in no order, 64 of them. */
const TEXTS = Array.from({ length: SLOTS }, (_, i) => `${i}`.padStart(4, '0').padEnd(4 + ((i * 7) % 5), 'x'))

describe.skipIf(libc === undefined)('datagrams in one piece', () => {
  let to: { fd: number; port: number }
  let from = -1
  beforeAll(() => {
    to = openSocket(native, { network: 'udp', address: '127.0.0.1', port: 0 })
    from = openConnected(native, '127.0.0.1', to.port, undefined)
  })
  afterAll(() => {
    for (const fd of [to.fd, from]) native.close(fd)
  })

  function sent(calls: Libc, segments: Segments, texts: readonly string[]): { got: string[]; tally: SendTally; errors: number[] } {
    const ring = new SendRing(calls, { size: 512, names: false, segments })
    const tally: SendTally = { failed: 0, dropped: 0 }
    const errors: number[] = []
    for (const text of texts) {
      ring.slots[ring.count]!.write(text, 2)
      ring.push(text.length, 0)
    }
    ring.flush(from, tally, (errno) => errors.push(errno))
    const receive = new ReceiveRing(native, { slot: 64, longest: 512, names: false })
    const count = Math.max(0, receive.receive(to.fd))
    const got = Array.from({ length: count }, (_, i) => receive.slots[i]!.toString('latin1', 0, receive.length(i)))
    return { got, tally, errors }
  }

  test('come apart as they were, those of a length in their order', () => {
    for (const texts of [TEXTS, TEXTS.slice(0, 4), TEXTS.slice(0, 3), ['a', 'bb', 'a', 'bb', 'c']]) {
      const { got, tally } = sent(native, new Segments(native), texts)
      expect([...got].sort()).toEqual([...texts].sort())
      for (const length of new Set(texts.map((text) => text.length)))
        expect(got.filter((text) => text.length === length)).toEqual(texts.filter((text) => text.length === length))
      expect(tally).toEqual({ failed: 0, dropped: 0 })
    }
  })

  /** The C library of a machine whose kernel says `errno` to every message for which `refuses` holds. */
  function refusing(errno: number, refuses: (header: Uint32Array) => boolean): Libc {
    let last = 0
    return {
      ...native,
      errno: () => (last === 0 ? native.errno() : last),
      sendmmsg: (fd, headers, count, flags) => {
        let taken = 0
        const word = (i: number): Uint32Array => new Uint32Array(headers.buffer, headers.byteOffset + i * HEADER, HEADER / 4)
        while (taken < count && !refuses(word(taken))) taken++
        last = taken === 0 ? errno : 0
        return taken === 0 ? -1 : native.sendmmsg(fd, headers, taken, flags)
      },
    }
  }
  const isPiece = (header: Uint32Array): boolean => header[W_CONTROLLEN]! > 0

  test('leave one by one from then on where the path does not take them', () => {
    const calls = refusing(EIO, isPiece)
    const segments = new Segments(calls)
    for (let i = 0; i < 2; i++) {
      const { got, tally, errors } = sent(calls, segments, TEXTS)
      expect([...got].sort()).toEqual([...TEXTS].sort())
      expect([segments.usable, tally, errors]).toEqual([false, { failed: 0, dropped: 0 }, []])
    }
  })

  test('that are refused for another reason are told of and counted, and the others leave', () => {
    const ECONNREFUSED = 111
    let refusals = 1
    const calls = refusing(ECONNREFUSED, (header) => isPiece(header) && refusals-- > 0)
    const { got, tally, errors } = sent(calls, new Segments(calls), TEXTS)
    expect(got.length).toBeLessThan(SLOTS)
    expect(tally).toEqual({ failed: SLOTS - got.length, dropped: 0 })
    expect(errors).toEqual([ECONNREFUSED])
  })

  test('are tried out on a socket that is connected to itself', () => {
    const { fd, port } = openSocket(native, { network: 'udp', address: '127.0.0.1', port: 0 })
    const { bytes } = toSocketAddress(native, '127.0.0.1', port)
    expect(native.connect(fd, bytes, bytes.length)).toBe(0)
    expect(trySegments(native, fd)).toBeInstanceOf(Segments)
    const calls = refusing(EIO, isPiece)
    expect(trySegments(calls, fd)).toBeUndefined()
    native.close(fd)
  })
})
