/** The READMEs of the plugins: sections in one order, and every example starts. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startServer } from '../../src/server/testing.js'
import { CERT, KEY } from '../fakes/certificate.js'

const SECTIONS = ['Name', 'Description', 'Syntax', 'Metrics', 'Ready', 'Examples', 'Troubleshooting', 'Bugs', 'See also']
const folder = fileURLToPath(new URL('../../src/plugins/', import.meta.url))
const readmes = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && readdirSync(join(folder, entry.name)).includes('README.md'))
  .map((entry) => ({ name: entry.name, text: readFileSync(join(folder, entry.name, 'README.md'), 'utf8') }))

/** Directives by folder, from plugin.cfg. */
const directives = new Map(
  [...readFileSync(join(folder, '../../plugin.cfg'), 'utf8').matchAll(/^(\w+):(\w+)$/gm)].map(([, directive, name]) => [name, directive]),
)

const temp = mkdtempSync(join(tmpdir(), 'cairndns-readme-'))
beforeAll(() => {
  writeFileSync(join(temp, 'cert.pem'), CERT)
  writeFileSync(join(temp, 'key.pem'), KEY)
})
afterAll(() => rmSync(temp, { recursive: true }))

describe.each(readmes)('$name', ({ name, text }) => {
  it('is headed by its directive and has its sections in order', () => {
    expect(text.split('\n')[0]).toBe(`# ${directives.get(name)}`)
    const sections = [...text.matchAll(/^## (.+)$/gm)].map(([, title]) => title!.replace('See Also', 'See also'))
    expect(sections.slice(0, 3)).toEqual(['Name', 'Description', 'Syntax'])
    expect(sections).toEqual(SECTIONS.filter((section) => sections.includes(section)))
  })

  it.each([...text.matchAll(/```corefile\n(.*?)```/gs)].map(([, example], i) => [i + 1, example!] as const))(
    'starts with example %d',
    async (_, example) => {
      const server = await startServer({ corefile: adapted(example), env: {} })
      expect(server.listening.length).toBeGreaterThan(0)
      await server.close()
    },
  )
})

/** Free ports, and certificates where they are. */
const adapted = (example: string): string =>
  example
    .replace(/localhost:\d+/g, 'localhost:0')
    .replace(/^(\S+):\d+ \{$/gm, '$1:0 {')
    .replace(/\b(cert|key)\.pem\b/g, (file) => join(temp, file))
