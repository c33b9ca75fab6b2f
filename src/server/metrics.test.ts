import { expect, test } from 'vitest'
import { CHUNK_SLOTS, SlotMetrics } from './metrics.js'
import { MetricsHub } from './scrape.js'

function rig(...threads: number[]) {
  const hub = new MetricsHub()
  const scopes = threads.map((thread) => new SlotMetrics((notice) => hub.take(thread, structuredClone(notice))))
  return {
    hub,
    scopes,
    async text(): Promise<string> {
      for (const scope of scopes) scope.flush()
      const { body } = await hub.text()
      return body.slice(0, body.indexOf('# HELP process_'))
    },
  }
}

test('threads are added up, families sorted, labels as Prometheus sorts them', async () => {
  const { scopes, text } = rig(0, 1)
  for (const [i, scope] of scopes.entries()) {
    scope
      .gauge('b_gauge', 'A gauge.', [])
      .with()
      .set(i + 1)
    const counter = scope.counter('a_total', 'A counter.', ['zone', 'server'])
    counter.with('.', 'dns://:53').inc()
    counter.with('example.org.', 'dns://:53').inc(i * 2)
  }
  expect(await text()).toBe(
    [
      '# HELP a_total A counter.',
      '# TYPE a_total counter',
      'a_total{server="dns://:53",zone="."} 2',
      'a_total{server="dns://:53",zone="example.org."} 2',
      '# HELP b_gauge A gauge.',
      '# TYPE b_gauge gauge',
      'b_gauge 3',
      '',
    ].join('\n'),
  )
})

test('a histogram is cumulative, with bounds as Go prints them', async () => {
  const { scopes, text } = rig(0)
  const histogram = scopes[0]!.histogram('h_seconds', 'H.', ['to'], [0.00008, 0.25, 16_000]).with('x')
  for (const value of [0.00001, 0.25, 0.3, 1e6]) histogram.observe(value)
  expect(await text()).toBe(
    [
      '# HELP h_seconds H.',
      '# TYPE h_seconds histogram',
      'h_seconds_bucket{to="x",le="8e-05"} 1',
      'h_seconds_bucket{to="x",le="0.25"} 2',
      'h_seconds_bucket{to="x",le="16000"} 3',
      'h_seconds_bucket{to="x",le="+Inf"} 4',
      `h_seconds_sum{to="x"} ${0.00001 + 0.25 + 0.3 + 1e6}`,
      'h_seconds_count{to="x"} 4',
      '',
    ].join('\n'),
  )
})

test('the same name is the same family; other labels are refused', () => {
  const scope = new SlotMetrics(() => undefined)
  expect(scope.counter('c', 'C.', ['a'])).toBe(scope.counter('c', 'C.', ['a']))
  expect(() => scope.counter('c', 'C.', ['b'])).toThrow('metric c is registered already')
  expect(() => scope.gauge('c', 'C.', ['a'])).toThrow('metric c is registered already')
  expect(() => scope.counter('c', 'C.', ['a']).with('1', '2')).toThrow('takes 1 label values, not 2')
})

test('odd label values do not spoil the text', async () => {
  const { scopes, text } = rig(0)
  const counter = scopes[0]!.counter('c', 'C.', ['name'])
  for (const value of ['\u00ff', 'a"b', 'a\nb', 'a\\b', '\ud800']) counter.with(value).inc()
  const lines = Buffer.from(await text(), 'utf8')
    .toString('utf8')
    .trim()
    .split('\n')
    .slice(2)
  expect(lines).toHaveLength(5)
  for (const line of lines) expect(line).toMatch(/^c\{name="(?:[^"\\\n]|\\.)*"\} 1$/)
})

test('more children than a chunk holds', async () => {
  const { hub, scopes } = rig(0)
  const histogram = scopes[0]!.histogram('h', 'H.', ['n'], [1, 2, 3])
  const count = Math.ceil(CHUNK_SLOTS / 5) + 10
  for (let i = 0; i < count; i++) histogram.with(String(i)).observe(i)
  scopes[0]!.flush()
  expect(hub.value('h', [String(count - 1)])).toBe(1)
  expect(hub.value('h', ['0'])).toBe(1)
})

test('a removed child is out of the text until it is named again, and starts at zero', async () => {
  const { scopes, text } = rig(0)
  const family = scopes[0]!.gauge('g', 'G.', ['hash'])
  family.with('one').set(5)
  family.remove('one')
  family.with('two').set(1)
  expect(await text()).not.toContain('one')
  family.with('one').inc()
  expect(await text()).toContain('g{hash="one"} 1')
})

test("a dead thread's counts are kept, its gauges go", async () => {
  const { hub, scopes, text } = rig(0, -1)
  const [serving, own] = [scopes[0]!, scopes[1]!]
  serving.counter('c', 'C.', []).with().inc(3)
  serving.gauge('g', 'G.', []).with().set(3)
  serving.histogram('h', 'H.', [], [1]).with().observe(2)
  serving.flush()
  hub.retire(0, own)
  expect(await text()).toMatch(/^c 3$/m)
  expect(hub.value('h', [])).toBe(1)
  expect(hub.value('g', [])).toBeUndefined()
})
