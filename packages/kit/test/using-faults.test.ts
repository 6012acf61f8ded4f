import { expect, test } from 'vitest';
import type { Module } from '../src/app/index.ts';
import { createApp, type StartUpError } from '../src/app/index.ts';
import { openDatabase } from '../src/db/index.ts';
import { accounts } from '../src/contrib/accounts/index.ts';
import { audit, AuditController } from '../src/contrib/audit/index.ts';
import { JobController, jobs } from '../src/contrib/jobs/index.ts';
import { WebhookEndpointController, webhooks } from '../src/contrib/webhooks/index.ts';

const ofClass = {
  audit: (using: string) =>
    class Mounted extends AuditController {
      static override readonly using: string = using;
    },
  jobs: (using: string) =>
    class Mounted extends JobController {
      static override readonly using: string = using;
    },
  webhooks: (using: string) =>
    class Mounted extends WebhookEndpointController {
      static override readonly using: string = using;
    },
};
const modules: Readonly<Record<keyof typeof ofClass, (databases: readonly string[]) => Module>> = {
  audit: (databases) => audit({ databases }),
  jobs: (databases) => jobs({ databases }),
  webhooks: (databases) => webhooks({ databases }),
};

/** What ready() rejects with, in an app with the databases `default` and `reports`. */
async function faultsOf(
  name: keyof typeof ofClass,
  using: string,
  databases: readonly string[] = ['default'],
  others: readonly Module[] = [],
): Promise<readonly string[]> {
  const reports = await openDatabase('sqlite::memory:', { name: 'reports' });
  const app = createApp({
    database: { default: 'sqlite::memory:', reports },
    modules: [accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }), modules[name](databases), ...others],
    mount: { '/v1': { '/mounted': ofClass[name](using) } },
    log: { level: 'silent' },
  });
  try {
    await app.ready();
    return [];
  } catch (error) {
    return (error as StartUpError).faults.filter(({ id }) => id === 'E013').map(({ message, hint }) => `${message} ${hint}`);
  } finally {
    await app.close();
    await reports.close();
  }
}

test.each(['audit', 'jobs', 'webhooks'] as const)(
  'a controller of %s with a database that the app does not have stops the start, and names the nearest',
  async (name) => {
    expect(await faultsOf(name, 'report')).toEqual([
      'Mounted: using is "report", a database that the app does not have. The app has reports, default. Did you mean "reports"?',
    ]);
    expect(await faultsOf(name, 'reports')).toEqual([
      `Mounted: using is "reports", a database where ${name}() has no tables. Use ${name}({ databases: ["default","reports"] }).`,
    ]);
    expect(await faultsOf(name, 'reports', ['default', 'reports'])).toEqual([]);
  },
);

test('jobs of a database without the tables of audit() cannot be cancelled: the app does not start', async () => {
  const databases = ['default', 'reports'];
  expect(await faultsOf('jobs', 'reports', databases, [audit()])).toEqual([
    'Mounted: using is "reports", a database where audit() has no tables: no change could be saved. Use audit({ databases: ["default","reports"] }).',
  ]);
  expect(await faultsOf('jobs', 'reports', databases, [audit({ databases })])).toEqual([]);
});
