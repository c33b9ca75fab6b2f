import http from 'node:http'
import net from 'node:net'
import { afterEach, expect, test } from 'vitest'
import type { HttpHandler } from '../plugins/contract.js'
import { HttpEndpoints, HttpPlan, limitConnections } from './http.js'

const errors: string[] = []
const endpoints = new HttpEndpoints((error) => void errors.push(error.message))
const others: net.Server[] = []
afterEach(async () => {
  await endpoints.close()
  for (const server of others.splice(0)) server.close()
  errors.length = 0
})

const say =
  (text: string): HttpHandler =>
  (_request, response) =>
    void response.end(text)

function plan(routes: Readonly<Record<string, HttpHandler>>): HttpPlan {
  const made = new HttpPlan()
  for (const [where, handler] of Object.entries(routes)) {
    const slash = where.indexOf('/')
    made.add(where.slice(0, slash), where.slice(slash), handler)
  }
  return made
}

async function open(routes: Readonly<Record<string, HttpHandler>>): Promise<void> {
  await (await endpoints.stage(plan(routes))).commit()
}

async function get(port: number, path: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`)
  return `${response.status} ${await response.text()}`.trim()
}

async function taken(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1')
  others.push(server)
  await new Promise((resolve) => server.once('listening', resolve))
  return (server.address() as net.AddressInfo).port
}

async function free(): Promise<number> {
  const port = await taken()
  await new Promise((resolve) => others.pop()!.close(resolve))
  return port
}

test('exact paths, folders, and nothing else', async () => {
  await open({ '127.0.0.1:0/health': say('OK'), '127.0.0.1:0/debug/': say('debug') })
  const port = endpoints.port('127.0.0.1:0')!
  expect(await get(port, '/health?x=1')).toBe('200 OK')
  expect(await get(port, '/debug/heap')).toBe('200 debug')
  expect(await get(port, '/')).toBe('404 404 page not found')
})

test('the first handler for an address and path stays', async () => {
  const made = new HttpPlan()
  made.add('127.0.0.1:0', '/ready', say('first'))
  made.add('127.0.0.1:0', '/ready', say('second'))
  await (await endpoints.stage(made)).commit()
  expect(await get(endpoints.port('127.0.0.1:0')!, '/ready')).toBe('200 first')
})

test('a commit swaps routes on a kept address and closes vanished ones', async () => {
  const [kept, gone] = [await free(), await free()]
  await open({ [`127.0.0.1:${kept}/a`]: say('old'), [`127.0.0.1:${gone}/a`]: say('old') })
  await open({ [`127.0.0.1:${kept}/a`]: say('new') })
  expect(await get(kept, '/a')).toBe('200 new')
  await expect(get(gone, '/a')).rejects.toThrow()
})

test('a taken port refuses the plan and the old endpoints keep answering', async () => {
  const [kept, port, fresh] = [await free(), await taken(), await free()]
  await open({ [`127.0.0.1:${kept}/a`]: say('old') })
  await expect(endpoints.stage(plan({ [`127.0.0.1:${fresh}/a`]: say('x'), [`127.0.0.1:${port}/a`]: say('x') }))).rejects.toThrow(
    `listen tcp 127.0.0.1:${port}: bind: address already in use`,
  )
  expect(await get(kept, '/a')).toBe('200 old')
  await expect(get(fresh, '/a')).rejects.toThrow()
})

test('an address may widen or narrow over a port of our own', async () => {
  const port = await free()
  await open({ [`:${port}/a`]: say('wide') })
  await open({ [`127.0.0.1:${port}/a`]: say('narrow') })
  expect(await get(port, '/a')).toBe('200 narrow')
  expect(errors).toEqual([])
})

test('a handler that fails costs one answer', async () => {
  await open({
    '127.0.0.1:0/sync': () => {
      throw new Error('boom')
    },
    '127.0.0.1:0/async': async () => {
      throw new Error('bang')
    },
  })
  const port = endpoints.port('127.0.0.1:0')!
  expect(await get(port, '/sync')).toBe('500')
  expect(await get(port, '/async')).toBe('500')
  expect(errors).toEqual(['HTTP /sync: boom', 'HTTP /async: bang'])
})

test('a client that says nothing does not hold the end up', async () => {
  await open({ '127.0.0.1:0/a': say('a') })
  const socket = net.connect(endpoints.port('127.0.0.1:0')!, '127.0.0.1')
  await new Promise((resolve) => socket.once('connect', resolve))
  socket.write('GET /a HTTP/1.1\r\n')
  const closed = new Promise((resolve) => socket.once('close', resolve))
  await endpoints.close()
  await closed
})

test('connections that say nothing do not keep a probe out', async () => {
  const server = http.createServer((_, response) => void response.end('OK'))
  limitConnections(server, 3)
  others.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as net.AddressInfo
  const silent = await Promise.all(
    [1, 2, 3, 4, 5].map(
      () =>
        new Promise<net.Socket>((resolve) =>
          net.connect(port, '127.0.0.1', function (this: net.Socket) {
            resolve(this)
          }),
        ),
    ),
  )
  for (const socket of silent) socket.on('error', () => undefined)
  expect(await get(port, '/health')).toBe('200 OK')
  for (const socket of silent) socket.destroy()
})
