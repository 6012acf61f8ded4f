import { defineConfig } from 'vitest/config';

// Packages are tested from their sources: the `source` export condition, in Vite's resolver and in Node's own.
// Not `module`: Node does not know that condition, and what packages offer under it is for bundlers.
const resolve = { conditions: ['source', 'node', 'development|production'] };
const ssr = { resolve: { ...resolve, externalConditions: ['source', 'node'] } };
const execArgv = ['--conditions=source'];

// Two kinds of test, told apart by file name:
//   *.test.ts          fast, in-process or loopback                                       (project unit)
//   *.db.test.ts       on the run's PostgreSQL server, and SQLite                         (project integration)
//   *.slow.test.ts     child processes, soaks, crash loops, a real browser                (project integration)
const slow = ['**/*.db.test.ts', '**/*.slow.test.ts'];
// Before every test file: nothing it logs or stores may be a secret.
const setupFiles = ['packages/kit/test/secrecy/watch.ts'];
const ignored = ['**/node_modules/**', '**/dist/**', '**/.peers/**', '**/.data/**'];

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: 2,
    projects: [
      {
        resolve,
        ssr,
        test: {
          name: 'unit',
          include: ['**/*.test.ts'],
          exclude: [...ignored, ...slow],
          globalSetup: ['test/provision/admin-site.ts'],
          setupFiles,
          execArgv,
          testTimeout: 15_000,
        },
      },
      {
        resolve,
        ssr,
        test: {
          name: 'integration',
          include: slow,
          exclude: ignored,
          globalSetup: ['test/provision/admin-site.ts', 'test/provision/global-setup.ts'],
          setupFiles,
          execArgv,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
