import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/interop/**/*.test.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    reporters: ['verbose'],
  },
})
