/** `cairndns check` as a user runs it: exit code, words, JSON. */
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { root } from '../support/process.js'

let folder: string
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairndns-check-'))
})
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

function check(text: string, ...args: string[]): { code: number | null; out: string } {
  const file = path.join(folder, 'Corefile')
  fs.writeFileSync(file, text)
  const ran = spawnSync(process.execPath, [path.join(root, 'dist', 'cli.js'), 'check', ...args, file], { encoding: 'utf8', cwd: folder })
  return { code: ran.status, out: (ran.stdout + ran.stderr).replaceAll(`${folder}/`, '') }
}

test('the example passes, with its chain in order', () => {
  const { code, out } = check(
    fs.readFileSync(path.join(root, 'examples', 'Corefile'), 'utf8').replace('examples/cluster', path.join(root, 'examples', 'cluster')),
  )
  expect(out).toContain('prometheus → errors → loadbalance → cloud_ndots → cache → kubernetes → loop → forward')
  expect(code).toBe(0)
})

test('a typo is named with line, column and what was probably meant', () => {
  const { code, out } = check('.:1053 {\n    errors\n    forwrad . 1.1.1.1\n}\n')
  expect(out).toContain("Corefile:3 - Error during parsing: Unknown directive 'forwrad' (column 5; did you mean 'forward'?)")
  expect(code).toBe(1)
})

test('what this machine lacks is a note: an imported file, a certificate, an interface, a resolv.conf', () => {
  const { code, out } = check(`import /nowhere/extra.conf
tls://.:1853 {
    tls /nowhere/cert.pem /nowhere/key.pem
    bind nosuchif0
    forward . /nowhere/resolv.conf
    import /nowhere/plugins.conf
}
`)
  expect(out.match(/note: /g)?.length, out).toBeGreaterThanOrEqual(4)
  expect(code).toBe(0)
})

test('a snippet that does not exist is an error: no file of that name was meant', () => {
  const { code, out } = check('.:1053 {\n    import comon\n}\n')
  expect(out).toContain('Corefile:2 - Error during parsing: File to import not found: comon')
  expect(code).toBe(1)
})

test("an in-cluster kubernetes block passes, and the article's block for cloud_ndots is told that its queries never reach it", () => {
  const { code, out } = check(`cluster.local {
    cloud_ndots 001.mycloud.io {
        domains ebay.com ebayc3.com
    }
    kubernetes cluster.local {
        pods verified
        fallthrough in-addr.arpa ip6.arpa
    }
    forward . /etc/resolv.conf {
        except cluster.local
    }
    cache 30
    errors
    prometheus :9153
}
`)
  expect(out).toContain('queries for 001.mycloud.io. never reach cloud_ndots')
  expect(code).toBe(0)
})

test('a ConfigMap is looked into', () => {
  const file = path.join(folder, 'coredns.yaml')
  fs.writeFileSync(
    file,
    'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: coredns\ndata:\n  Corefile: |\n    .:53 {\n        errors\n        whoami\n    }\n',
  )
  const ran = spawnSync(process.execPath, [path.join(root, 'dist', 'cli.js'), 'check', '--json', file], { encoding: 'utf8' })
  expect(JSON.parse(ran.stdout)).toMatchObject({
    ok: true,
    files: [{ ok: true, blocks: [{ keys: ['.:53'], plugins: ['errors', 'whoami'] }] }],
  })
  expect(ran.status).toBe(0)
})
