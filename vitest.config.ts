import { defineConfig } from 'vitest/config'

/** Tests that load a server to its limits. They run one by one, behind the others: what they measure must not be each other. */
const LOAD = ['test/fuzz/flood.test.ts', 'test/integration/reload-under-load.test.ts', 'test/bench/speed/speed.test.ts']

/** What of the suite knows sockets: it runs over either transport, in batches with memory that is filled after use. */
const TRANSPORT = ['src/server/{dispatch,serving,send}.test.ts', 'src/server/listeners/*.test.ts']

const common = {
  exclude: ['test/e2e/**', 'test/interop/**', 'node_modules/**', 'dist/**'],
  pool: 'forks' as const,
  testTimeout: 20_000,
  hookTimeout: 20_000,
}

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...common,
          name: 'all',
          include: ['src/**/*.test.ts', 'plugins/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: [...common.exclude, ...LOAD],
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...common,
          name: 'batch',
          include: TRANSPORT,
          env: { CAIRNDNS_TEST_TRANSPORT: 'batch', CAIRNDNS_POISON: '1' },
          sequence: { groupOrder: 0 },
        },
      },
      { test: { ...common, name: 'load', include: LOAD, fileParallelism: false, maxWorkers: 1, sequence: { groupOrder: 1 } } },
    ],
  },
})
