import { expect, test } from 'vitest'
import type { Outcome } from './generator.js'
import type { Measured } from './measure.js'
import { optionsOf } from './options.js'
import { aligned, resultLines, verdictLines } from './table.js'
import { verdictsOf } from './verdicts.js'

const outcome = (cpu: number): Outcome => ({
  ...{ answered: 1000, wrong: 0, lost: 1, stray: 0, qps: 50_000, p50: 0.1, p90: 0.2, p99: 1, p999: 2, cpu, user: 0.5, rss: 80, idle: 0.5 },
})
const measured = (contestant: string, ...cpus: number[]): Measured => ({
  ...{ workload: 'cluster', pace: 'saturated', contestant, outcomes: cpus.map(outcome) },
})

test('a verdict is the ratio of medians, with the lowest and highest of the rounds', () => {
  const results = [measured('CairnDNS', 2, 3, 9), measured('CoreDNS', 15, 15, 15)]
  const [first, ...rest] = verdictsOf(results)
  expect(first).toMatchObject({ value: 0.2, spread: [2 / 15, 9 / 15], most: 0.22, reached: true })
  expect(rest).toEqual([])
  expect(verdictsOf([measured('CairnDNS', 5), measured('CoreDNS', 15)])[0]!.reached).toBe(false)
})

test('what was not measured on both sides has no verdict', () => {
  expect(verdictsOf([measured('CairnDNS', 2)])).toEqual([])
  expect(verdictLines([])).toEqual([])
})

test('tables are as wide as their cells', () => {
  expect(aligned([['a', 'bb'], ['ccc', 'd'], ['e']])).toEqual(['a    bb', 'ccc   d', 'e'])
  const lines = resultLines([measured('CairnDNS', 2, 4), measured('CoreDNS', 15, 15)])
  expect(lines[1]).toMatch(/^cluster, saturated +CPU µs\/q/)
  expect(lines[2]).toMatch(/^CairnDNS +3\.00 +2\.00–4\.00 .* 2 +0$/)
})

test('options: what is not understood is said', () => {
  expect(optionsOf([]).rates).toEqual([20_000, 60_000])
  expect(optionsOf(['--quick']).rounds).toBe(1)
  expect(optionsOf(['--peer', 'CoreDNS=/opt/coredns -x=1']).peers.get('coredns')).toBe('/opt/coredns -x=1')
  expect(() => optionsOf(['--only', 'cluster,all'])).toThrow('no workload "all"')
  expect(() => optionsOf(['--rounds', 'many'])).toThrow('--rounds takes a number above 0')
  expect(() => optionsOf(['--peer', 'coredns'])).toThrow('NAME=COMMAND')
})
