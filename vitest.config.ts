import { join } from 'node:path';
import process from 'node:process';
import { defineConfig } from 'vitest/config';

// Workers and the programs that tests start compile the same files hundreds of times: V8's code and what is left of TypeScript are kept.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules/.cache/node');

// Packages are tested from their sources: the `source` export condition, in Vite's resolver and in Node's own.
// Not `module`: Node does not know that condition, and what packages offer under it is for bundlers.
const resolve = { conditions: ['source', 'node', 'development|production'] };
const ssr = { resolve: { ...resolve, externalConditions: ['source', 'node'] } };
const execArgv = ['--conditions=source'];
// These packages have TypeScript under `source`, which Node does not run from node_modules.
const server = { deps: { inline: [/@modelcontextprotocol\/client/, /eventsource/] } };

// Kinds of test: the file name says what runs, and when.
//   *.test.ts             fast, in-process or loopback                                     (project unit)
//   *.db.test.ts          on the run's PostgreSQL server, and SQLite                       (project db)
//   *.slow.test.ts        child processes, the built admin site, a real browser            (project integration)
//   *.scaled.test.ts      soaks, crash loops, generated cases: few of them here            (project integration)
//   *.scaled.db.test.ts   the same on both databases                                       (project db)
//                         and all of them with KIT_TEST_LONG=1, as `npm run test:long` sets it: `scaled(short, full)`
//   *.long.test.ts        minutes each, or no proof in a short version                     (project long alone)
//                                                                                        (project isolated: the files in a list below)
// Files share processes, one after the other: an own one for each took 1.2 s, to load and compile what they test.
// Those of long and isolated have their own.
const long = ['**/*.long.test.ts'];
const database = ['**/*.db.test.ts'];
const scaled = ['**/*.scaled.test.ts'];
const slow = ['**/*.slow.test.ts', ...scaled];
// Before every test file: nothing it logs or stores may be a secret.
const setupFiles = [
  'test/provision/clean-process.ts',
  'test/provision/property-seed.ts',
  'packages/kit/test/secrecy/watch.ts',
  // KIT_RECORD=folder keeps what tests ask and get: CONTRIBUTING.md.
  ...(process.env['KIT_RECORD'] === undefined ? [] : ['test/wire/record.ts']),
];
const globalSetup = ['test/provision/admin-site.ts', 'test/provision/global-setup.ts'];
// Mocks of modules only work in a process that has not loaded them yet; pages of all errors have those that other tests declare.
const isolated = ['packages/kit/src/contrib/apikeys/verify/verify.test.ts', 'test/reference-pages.test.ts'];
const ignored = ['**/node_modules/**', '**/dist/**', '**/.peers/**', '**/.data/**'];

const integration = {
  resolve,
  ssr,
  test: {
    name: 'integration',
    include: slow,
    exclude: ignored,
    globalSetup,
    setupFiles,
    execArgv,
    server,
    isolate: false,
    // A test here starts processes, and must hold on a machine ten times busier: only a hang takes as long.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 60_000 } },
  },
};

const longProject = {
  resolve,
  ssr,
  test: {
    name: 'long',
    include: [...long, ...scaled, '**/*.scaled.db.test.ts'],
    exclude: ignored,
    globalSetup,
    setupFiles,
    execArgv,
    server,
    testTimeout: 1_800_000,
    hookTimeout: 1_800_000,
    expect: { poll: { timeout: 60_000 } },
  },
};

export default defineConfig({
  test: {
    pool: 'forks',
    reporters: ['default', './test/provision/test-report.ts'],
    // Twice the cores of CI: with three, a quarter to a third of both was idle, as tests of processes, browsers and timers wait most of their time.
    maxWorkers: 4,
    projects: [
      {
        resolve,
        ssr,
        test: {
          name: 'unit',
          include: ['**/*.test.ts'],
          exclude: [...ignored, ...database, ...slow, ...long, ...isolated],
          setupFiles,
          execArgv,
          server,
          isolate: false,
          // Walks over all files take seconds, and minutes on a machine thirty times busier: only a hang takes as long.
          testTimeout: 300_000,
          hookTimeout: 300_000,
          expect: { poll: { timeout: 30_000 } },
        },
      },
      {
        resolve,
        ssr,
        test: {
          name: 'db',
          include: database,
          exclude: ignored,
          globalSetup,
          setupFiles,
          execArgv,
          server,
          isolate: false,
          testTimeout: 600_000,
          hookTimeout: 600_000,
          expect: { poll: { timeout: 60_000 } },
        },
      },
      integration,
      { ...integration, test: { ...integration.test, name: 'isolated', include: isolated, isolate: true } },
      ...(process.env['KIT_TEST_LONG'] === '1' ? [longProject] : []),
    ],
  },
});
