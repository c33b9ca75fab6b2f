import { describe, expect, test } from 'vitest'
import * as args from './args.js'
import { quote } from './quote.js'

describe('durations', () => {
  const good: [string, number][] = [
    ['0', 0],
    ['-0', 0],
    ['+5s', 5000],
    ['5s', 5000],
    ['1h2m3s', 3_723_000],
    ['1.5h', 5_400_000],
    ['.5s', 500],
    ['5.s', 5000],
    ['300ms', 300],
    ['-300ms', -300],
    ['1us', 0.001],
    ['1µs', 0.001],
    ['1μs', 0.001],
    ['1ns', 0.000001],
    ['0.9ns', 0],
    ['1m1m', 120_000],
    ['0.100000000000000000000h', 360_000],
    ['2562047h', 9_223_369_200_000],
  ]
  test.each(good)('%s', (text, expected) => expect(args.parseDuration(text)).toBe(expected))

  const bad: [string, string][] = [
    ['', 'time: invalid duration ""'],
    ['-', 'time: invalid duration "-"'],
    ['s', 'time: invalid duration "s"'],
    ['.s', 'time: invalid duration ".s"'],
    ['5', 'time: missing unit in duration "5"'],
    ['5s3', 'time: missing unit in duration "5s3"'],
    ['1d', 'time: unknown unit "d" in duration "1d"'],
    ['1 s', 'time: unknown unit " s" in duration "1 s"'],
    ['1S', 'time: unknown unit "S" in duration "1S"'],
    ['1é"', 'time: unknown unit "\\xc3\\xa9\\"" in duration "1\\xc3\\xa9\\""'],
    ['1constructor', 'time: unknown unit "constructor" in duration "1constructor"'],
    ['3000000h', 'time: invalid duration "3000000h"'],
    ['--1s', 'time: invalid duration "--1s"'],
  ]
  test.each(bad)('%s is refused', (text, message) => expect(() => args.parseDuration(text)).toThrow(new Error(message)))
})

describe('numbers and truth', () => {
  test('integers', () => {
    expect(args.parseInteger('+053')).toBe(53)
    expect(Object.is(args.parseInteger('-0'), 0)).toBe(true)
    expect(args.parseInteger('-7', -7)).toBe(-7)
    expect(() => args.parseInteger('1.5')).toThrow(new Error('strconv.Atoi: parsing "1.5": invalid syntax'))
    expect(() => args.parseInteger('')).toThrow(new Error('strconv.Atoi: parsing "": invalid syntax'))
    expect(() => args.parseInteger('99999999999999999999')).toThrow(
      new Error('strconv.Atoi: parsing "99999999999999999999": value out of range'),
    )
    expect(() => args.parseInteger('0', 1, 9)).toThrow('0 is out of range: 1 to 9')
  })
  test('unsigned', () => {
    expect(args.parseUnsigned('65535', 16)).toBe(65535)
    expect(() => args.parseUnsigned('65536', 16)).toThrow(new Error('strconv.ParseUint: parsing "65536": value out of range'))
    expect(() => args.parseUnsigned('-1', 16)).toThrow(new Error('strconv.ParseUint: parsing "-1": invalid syntax'))
  })
  test('truth', () => {
    expect(['1', 't', 'TRUE', 'true'].map(args.parseBoolean)).toEqual([true, true, true, true])
    expect(['0', 'f', 'FALSE', 'False'].map(args.parseBoolean)).toEqual([false, false, false, false])
    expect(() => args.parseBoolean('yes')).toThrow(new Error('strconv.ParseBool: parsing "yes": invalid syntax'))
  })
})

describe('addresses', () => {
  const good: [string, string][] = [
    ['1.1.1.1', '1.1.1.1:53'],
    ['1.1.1.1:5300', '1.1.1.1:5300'],
    ['1.1.1.1:', '1.1.1.1:53'],
    ['::1', '[::1]:53'],
    ['[::1]:5300', '[::1]:5300'],
    ['fe80::1%eth0', '[fe80::1%eth0]:53'],
  ]
  test.each(good)('%s', (text, expected) => expect(args.parseHostPort(text, 53)).toBe(expected))
  test.each(['', 'localhost', '1.1.1', '[::1]', '1.1.1.1:1:1', '[::1', 'a]:1'])('%s is refused', (text) => {
    expect(() => args.parseHostPort(text, 53)).toThrow('must specify an IP address: ')
  })
  test('taking apart', () => {
    expect(args.splitHostPort('[::1]:53')).toEqual({ host: '::1', port: '53' })
    expect(args.splitHostPort('host:')).toEqual({ host: 'host', port: '' })
    expect(() => args.splitHostPort('::1')).toThrow(new Error('address ::1: too many colons in address'))
    expect(() => args.splitHostPort('host')).toThrow(new Error('address host: missing port in address'))
    expect(() => args.splitHostPort('[::1')).toThrow("missing ']' in address")
    expect(() => args.splitHostPort('[a][b]:1')).toThrow()
    expect(() => args.splitHostPort('a]:1')).toThrow("unexpected ']' in address")
  })
  test('a zone may follow an IPv6 address', () => {
    expect([args.isAddress('1.2.3.4'), args.isAddress('fe80::1%en3'), args.isAddress('a'), args.isAddress('::1%a%b')]).toEqual([
      true,
      true,
      false,
      false,
    ])
  })
})

test('zones of arguments or of the block', () => {
  expect(args.zonesOrDefault([], ['a.'])).toEqual(['a.'])
  const invalid: string[] = []
  expect(args.zonesOrDefault(['B.org', '10.0.0.0/15', 'a..b', 'tls://c:5'], ['a.'], (arg) => invalid.push(arg))).toEqual([
    'b.org.',
    '0.10.in-addr.arpa.',
    '1.10.in-addr.arpa.',
    'c.',
  ])
  expect(invalid).toEqual(['a..b'])
})

test('quoting', () => {
  expect(quote('a"b\\c\n\x01é\u00a0\u{e0001} ')).toBe('"a\\"b\\\\c\\n\\x01é\\u00a0\\U000e0001 "')
})
