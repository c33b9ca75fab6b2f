import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { root } from '../../support/process.js'

const able = process.platform === 'linux' && existsSync(path.join(root, 'node_modules', 'koffi'))

test.runIf(able)(
  'the bench measures the built server from end to end',
  async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'cairndns-'))
    try {
      const json = path.join(folder, 'report.json')
      const options = ['--only', 'miss', '--quick', '--seconds', '0.3', '--rates', '100', '--subjects', 'cairndns', '--no-build']
      // It ends with 1 if an answer was a SERVFAIL, as when a busy machine does not let the upstream run for long: the report is there all the same.
      await promisify(execFile)(process.execPath, [path.join(root, 'test', 'bench', 'run.mjs'), ...options, '--json', json], {
        cwd: root,
      }).catch((error: Error & { code?: number }) => {
        if (error.code !== 1 || !existsSync(json)) throw error
      })
      const { results, versions } = JSON.parse(readFileSync(json, 'utf8'))
      expect(versions.Node).toBe(process.versions.node)
      expect(results).toMatchObject([{ workload: 'miss', pace: 'saturated', contestant: 'CairnDNS' }, { pace: 100 }])
      for (const { outcomes } of results) {
        expect(outcomes[0].answered).toBeGreaterThan(10)
        expect(outcomes[0].wrong).toBe(0)
        expect(outcomes[0].cpu).toBeGreaterThan(0)
        expect(outcomes[0].rss).toBeGreaterThan(10)
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
  60_000,
)
