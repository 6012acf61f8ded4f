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

// Kinds of test, told apart by file name:
//   *.test.ts          fast, in-process or loopback                                       (project unit)
//   *.db.test.ts       on the run's PostgreSQL server, and SQLite                         (project db)
//   *.slow.test.ts     child processes, the built admin site, a real browser              (project integration)
//   *.long.test.ts     soaks, storms, timing, crash loops: a short version                (project integration)
//                      and, with KIT_TEST_LONG=1 as `npm run test:long` sets it, in full  (project long)
// Files of unit and db share two processes, one after the other: an own one for each took 1.2 s, to load and compile what they test.
// Files of integration have their own.
const long = ['**/*.long.test.ts'];
const database = ['**/*.db.test.ts'];
const slow = ['**/*.slow.test.ts', ...long];
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
// One to two minutes each: plans of every list of the admin site on large tables, its screens one by one under axe and with hostile data, and the
// built documentation site, whose pages, links and fragments pages.test.ts checks before the build.
const longOnly = [
  // The whole project of database tests once more.
  'test/pgbouncer.long.test.ts',
  // Tables of millions of rows.
  'packages/kit/src/contrib/webhooks/maintain/large-tables.long.test.ts',
  // A cluster of Patroni, and four failovers.
  'packages/kit/src/db/engine/postgres/failover.long.test.ts',
  // Hovers and completions by the language service of TypeScript 5.9.
  'test/mistakes/editor.long.test.ts',
  'packages/kit/src/admin/plans.long.test.ts',
  'packages/admin-ui/test/accessibility.slow.test.ts',
  'packages/admin-ui/test/hostile-data.slow.test.ts',
  // Keys of killed requests are free when their lease ends: half a minute of waiting.
  'test/clients/killed-server.long.test.ts',
  'docs/site/site.slow.test.ts',
  'test/clients/kitchen-sink-clients.long.test.ts',
  // 10 to 20 s each, of which a short version is no proof: times, memory and growth.
  'packages/kit/src/contrib/apikeys/timing.long.test.ts',
  'packages/kit/src/contrib/accounts/login/login-timing.long.test.ts',
  'packages/kit/src/contrib/uploads/life/large-file.slow.test.ts',
  'packages/kit/src/admin/large-tables.long.test.ts',
  'packages/config-server/test/not-found-timing.long.test.ts',
  // The same start as that of start.long.test.ts, with another login.
  'examples/orders/better-auth/start.slow.test.ts',
  'packages/kit/src/crud/hostile-growth.long.test.ts',
  'packages/kit/src/crud/many-controllers.slow.test.ts',
  'packages/config-server/src/http/stream-churn.long.test.ts',
  'packages/config-server/test/fuzz-files.long.test.ts',
  'packages/config-server/test/soak.long.test.ts',
  'packages/kit/src/contrib/webhooks/publishing/wake-up.long.test.ts',
  'packages/kit/src/contrib/webhooks/delivery/exactly-once.long.test.ts',
  // 10 to 50 s each, most of it for starting processes: kills, restarts and several processes with one database.
  'packages/kit/test/better-auth/processes.slow.test.ts',
  'packages/kit/test/tracing/three-processes.slow.test.ts',
  'packages/kit/test/reference-page.slow.test.ts',
  'packages/kit/src/contrib/jobs/running/crash.long.test.ts',
  'packages/kit/src/contrib/webhooks/delivery/crash.long.test.ts',
  'packages/kit/src/db/engine/sqlite/checkpointer.slow.test.ts',
  'packages/admin-ui/test/elsewhere.slow.test.ts',
  'packages/config-server/test/git-storm.long.test.ts',
  'packages/config-server/test/secret-storm.long.test.ts',
];
const ignored = ['**/node_modules/**', '**/dist/**', '**/.peers/**', '**/.data/**'];

const longProject = {
  resolve,
  ssr,
  test: {
    name: 'long',
    // This one counts its cases by KIT_WHERE_CASES.
    include: [
      ...long,
      ...longOnly,
      'test/kitchen-sink/documented-errors.test.ts',
      'packages/kit/src/db/sql/where/where.db.test.ts',
      'packages/kit/src/crud/non-interference.db.test.ts',
      'packages/kit/src/crud/generated-resources.db.test.ts',
      'packages/kit/test/crud/reading-matrix.db.test.ts',
    ],
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
    reporters: ['default', './test/provision/failed-files.ts'],
    // One more than cores: tests of processes, browsers and timers wait most of their time.
    maxWorkers: 3,
    projects: [
      {
        resolve,
        ssr,
        test: {
          name: 'unit',
          include: ['**/*.test.ts'],
          exclude: [...ignored, ...database, ...slow, ...isolated],
          setupFiles,
          execArgv,
          server,
          isolate: false,
          testTimeout: 60_000,
          hookTimeout: 60_000,
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
      {
        resolve,
        ssr,
        test: {
          name: 'integration',
          include: [...slow, ...isolated],
          exclude: [...ignored, ...longOnly],
          globalSetup,
          setupFiles,
          execArgv,
          server,
          // A test here starts processes, and must hold on a machine ten times busier: only a hang takes as long.
          testTimeout: 600_000,
          hookTimeout: 600_000,
          expect: { poll: { timeout: 60_000 } },
        },
      },
      ...(process.env['KIT_TEST_LONG'] === '1' ? [longProject] : []),
    ],
  },
});
