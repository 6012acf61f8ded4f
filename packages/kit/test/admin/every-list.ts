import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { modelResource } from '../../src/admin/index.ts';
import type { Module } from '../../src/app/index.ts';
import { createGroup } from '../../src/contrib/accounts/index.ts';
import { apiKeys, createApiKey } from '../../src/contrib/apikeys/index.ts';
import { grant, objectActions, objectGrants } from '../../src/contrib/grants/index.ts';
import { job, jobs, startJob } from '../../src/contrib/jobs/index.ts';
import { diskStore, uploads } from '../../src/contrib/uploads/index.ts';
import { createEndpoint, publish, webhooks } from '../../src/contrib/webhooks/index.ts';
import type { Database } from '../../src/db/engine/db.ts';
import { createTable, insert, migration, model, t } from '../../src/db/index.ts';
import type { FakeClock } from '../../src/testing/fake-clock.ts';
import { AdminApp } from './admin-app.ts';
import { fillAudit, fillGrants, fillJobs, fillKeys, fillUploads, fillUsers, fillWebhooks, settle, withoutIndexes } from './large-tables.ts';

const DAY_MS = 86_400_000;

const columns = {
  id: t.uuidv7().pk(),
  name: t.text(80),
  state: t.enum(['open', 'done']),
  flag: t.bool().dbDefault(false),
  due: t.timestamp().nullable(),
  price: t.decimal(10, 2).nullable(),
  created_at: t.timestamp(),
};
const settings = { indexes: [{ columns: ['state', 'id'] }, { columns: ['created_at'] }], fullText: [{ columns: ['name'] }] };
const tasks = model('tasks', columns, settings);
const taskActions = objectActions(tasks, { actions: ['view', 'share'], sets: { viewer: ['view'] } });
const office: Module = {
  name: 'office',
  models: [tasks],
  migrations: [migration('0001_initial', [createTable('tasks', columns, settings)])],
  admin: { resources: [modelResource(tasks)] },
};
export const nothing = job('nothing', { input: z.object({}), run: () => Promise.resolve() });
const nightly = job('nightly', { input: z.object({}), schedule: { cron: '0 3 * * *', input: {} }, run: () => Promise.resolve() });

/** Tables that `fillEveryList` makes large. */
export const LARGE_TABLES = [
  'api_keys',
  'users',
  'webhook_events',
  'webhook_deliveries',
  'webhook_attempts',
  'audit_entries',
  'jobs',
  'uploads',
  'grants',
  'tasks',
];

/** A site with a list of every module, and one of a model of its own. */
export function everyListApp(db: Database, clock: FakeClock, more: readonly Module[] = []): Promise<AdminApp> {
  const store = diskStore({ folder: mkdtempSync(join(tmpdir(), 'kit-admin-files-')) });
  const modules = [
    apiKeys(),
    webhooks(),
    jobs({ jobs: [nothing, nightly] }),
    uploads({ store }),
    objectGrants({ objects: [taskActions] }),
    office,
    ...more,
  ];
  return new AdminApp(db, modules, { clock }).ready();
}

/** One row of each list, made as the application would; then as many more as are asked for. */
export async function fillEveryList(db: Database, site: AdminApp, clock: FakeClock, rows: number): Promise<void> {
  const user = await site.newUser();
  await createApiKey(db, { user, name: 'template', scopes: ['orders:read'] });
  await createGroup(db, { name: 'template', tenantKey: null });
  await db.transaction(async (tx) => {
    await createEndpoint(tx, { owner: user.id, url: 'https://example.com/hook', events: ['*'] });
    await publish(tx, 'order.paid', {}, { owner: user.id });
    await startJob(tx, nothing, {});
  });
  await db.execute(
    `insert into webhook_attempts (delivery_id, id, started_at, duration_ms, worker) select id, id, created_at, 5, 'worker-1' from webhook_deliveries`,
  );
  await db.execute(
    `insert into uploads (id, owner_id, tenant_key, state, filename, content_type, size, pending_key, created_at, expires_at, complete_by, scan_attempts)
     select id, owner_id, '', 'complete', 'template.txt', 'text/plain', 5, 'template', created_at, created_at, created_at, 0 from api_keys`,
  );
  const task = await insert(db, tasks, { name: 'template', state: 'open', created_at: clock.now() });
  await grant(db, { subject: `user:${user.id}`, set: 'viewer', object: { type: tasks, id: task.id } });
  clock.advance(40 * DAY_MS);
  const size = { rows, after: 0, until: clock.now(), spanMs: 29 * DAY_MS };
  for (const fill of [fillKeys, fillUsers, fillWebhooks, fillAudit, fillJobs, fillUploads, fillGrants]) await fill(db, size);
  await withoutIndexes(db, 'tasks', () =>
    db.execute(
      `insert into tasks (id, name, state, flag, due, price, created_at)
       select id, username, case when is_staff then 'done' else 'open' end, is_staff, case when is_staff then null else created_at end, '1.50', created_at
       from users`,
    ),
  );
  await settle(db);
}
