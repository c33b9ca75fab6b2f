import { describe, expect, test, vi } from 'vitest'
import { pluginTable } from '../plugins/load.js'
import { checkCorefile } from './check.js'
import { corefilesIn } from './configmap.js'

const plugins = pluginTable()
const checked = (text: string) => checkCorefile({ label: 'Corefile', name: 'Corefile', text }, plugins, '53')

describe('a Corefile', () => {
  test('that would start gives its blocks with their chains', async () => {
    expect(await checked('.:1053 tls://example.org {\n whoami\n log\n}\n')).toMatchObject({
      ok: true,
      blocks: [{ keys: ['.:1053', 'tls://example.org.:853'], plugins: expect.arrayContaining(['log', 'whoami']) }],
    })
  })
  test.each([
    ['.:53 {\n whomai\n}\n', { line: 2, column: 2, hint: 'whoami' }, "Unknown directive 'whomai'"],
    ['.:53 {\n errors {\n  consolidate x y\n }\n}\n', { line: 3 }, 'plugin/errors'],
    ['.:53 {\n whoami\n', {}, 'Corefile'],
    ['.:53 {\n whoami\n}\n.:53 {\n whoami\n}\n', { line: 4, column: 1 }, 'cannot serve dns://.:53'],
    // CoreDNS words these without a place.
    ['.:53 {\n reload 30\n}\n', { line: 2, column: 9 }, 'plugin/reload: time: missing unit in duration "30"'],
    ['.:53 {\n forward . 10.0.0.1 {\n  policy best\n }\n}\n', { line: 3, column: 10 }, "plugin/forward: unknown policy 'best'"],
    ['.:53 {\n kubernetes a.b {\n  pods all\n }\n}\n', { line: 3 }, 'plugin/kubernetes: wrong value for pods'],
  ])('%j is refused with its place', async (text, place, message) => {
    const result = await checked(text)
    expect(result.ok).toBe(false)
    expect(result.error).toMatchObject(place)
    expect(result.error?.message).toContain(message)
  })
  test('what this machine lacks is a note', async () => {
    const result = await checked('.:53 {\n hosts /nowhere/hosts\n bind nosuchif0\n}\n')
    expect(result).toMatchObject({ ok: true })
    expect(result.notes.join('\n')).toMatch(/hosts/)
  })
  test('manifests that are not on this machine, and a cluster that it is not in, are notes', async () => {
    expect((await checked('.:53 {\n kubernetes a.b {\n  manifests /nowhere\n }\n}\n')).notes).toEqual([
      'Corefile:3: plugin/kubernetes: manifests: no such file or folder: /nowhere',
    ])
    vi.stubEnv('KUBERNETES_SERVICE_HOST', '')
    expect((await checked('.:53 {\n kubernetes a.b\n}\n')).notes.join()).toContain('not in a cluster here')
    vi.unstubAllEnvs()
  })
  test('a stray brace or a bad port that became a zone is a warning', async () => {
    expect((await checked('.:53 {\n errors {\n }\n }\n}\n')).warnings).toEqual([
      'Corefile:5: "}." is served as a zone; is it meant to be one?',
    ])
    expect((await checked('a.b:53x 10.0.0.0/8 {\n errors\n}\n')).warnings).toHaveLength(1)
  })
  test('removed directives are warnings', async () => {
    expect((await checked('.:53 {\n proxy . 10.0.0.1\n}\n')).warnings.join()).toContain("write 'forward . 10.0.0.1'")
  })
})

describe('a ConfigMap', () => {
  const yaml = [
    'apiVersion: v1',
    'kind: List',
    'items:',
    '- apiVersion: v1',
    '  kind: ConfigMap',
    '  data:',
    '    Corefile: |',
    '      .:53 {',
    '          whomai',
    '      }',
    '    corp.server: "corp.io:53 {\\n whoami\\n}\\n"',
    '    notes.txt: hello',
    '- kind: Secret',
    '  data: { Corefile: x }',
  ].join('\n')
  test('gives its Corefiles, with the line numbers of the YAML file', async () => {
    const found = corefilesIn(yaml, 'cm.yaml')
    expect(found.map(({ key }) => key)).toEqual(['Corefile', 'corp.server'])
    const result = await checkCorefile({ label: 'cm.yaml#Corefile', name: 'cm.yaml', text: found[0]!.text }, plugins, '53')
    expect(result.error).toMatchObject({ file: 'cm.yaml', line: 9 })
    expect((await checkCorefile({ label: '', name: 'cm.yaml', text: found[1]!.text }, plugins, '53')).ok).toBe(true)
  })
  test('without a Corefile, or broken, says so', () => {
    expect(() => corefilesIn('kind: ConfigMap\n', 'cm.yaml')).toThrow('cm.yaml: no ConfigMap with a Corefile in it')
    expect(() => corefilesIn('a: [\n', 'cm.yaml')).toThrow(/^cm\.yaml: /)
  })
})
