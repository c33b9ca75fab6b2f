/**
 * `npm run test:e2e`: the end-to-end suite, against a real API server. It is found in this order:
 * - KUBEBUILDER_ASSETS, a folder with etcd and kube-apiserver (and kube-controller-manager), as envtest has it;
 * - the folder that test/e2e/control-plane/build.sh fills;
 * - KUBECONFIG, any cluster: tests that stop its parts or change its permissions are left out.
 * Without any of them the suite is skipped, which is said and is no failure. ETCD names another etcd binary.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '..', '..')
const cache = path.join(process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache'), 'cairndns', 'control-plane')
const folders = [process.env.KUBEBUILDER_ASSETS, process.env.CAIRNDNS_CONTROL_PLANE, cache].filter(Boolean)
const binaries = folders.find((folder) => ['etcd', 'kube-apiserver'].every((name) => existsSync(path.join(folder, name))))

const env = { ...process.env, E2E_BINARIES: binaries ?? '' }
if (binaries === undefined && !process.env.KUBECONFIG) {
  const line = '*'.repeat(100)
  console.log(`${line}
END-TO-END TESTS SKIPPED: no API server found. Build one: test/e2e/control-plane/build.sh (needs Go), or set
KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver, or KUBECONFIG to use a cluster that runs.
Looked in: ${folders.join(', ')}
${line}`)
  process.exit(0)
}
console.log(
  binaries === undefined ? `End-to-end tests against the cluster of ${process.env.KUBECONFIG}` : `End-to-end tests with ${binaries}`,
)
const npx = (...args) => spawnSync('npx', args, { cwd: root, stdio: 'inherit', env }).status ?? 1
process.exit(npx('tsc', '-p', 'tsconfig.build.json') || npx('vitest', 'run', '-c', 'test/e2e/vitest.config.ts', ...process.argv.slice(2)))
