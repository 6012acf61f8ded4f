import { afterAll, beforeAll, expect, test } from 'vitest';
import { auditLog } from '../../test/audit-log.ts';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import { backfill, createTable, insertMany, migration, model, runBackfills, t, update } from '../db/index.ts';
import { describeDatabases } from '../testing/databases.ts';

const people = model('people', { id: t.int().pk(), name: t.text().nullable() });
const shop = {
  name: 'shop',
  models: [people],
  migrations: [migration('0001_initial', [createTable('people', people.columns)])],
  backfills: [
    backfill('0002_name', {
      model: people,
      batch: 10,
      run: async (tx, rows) => {
        for (const { id } of rows) await update(tx, people, id, { name: 'x' });
      },
    }),
  ],
};

describeDatabases('back-fills in the admin site', (database) => {
  let site: AdminApp;
  let staff: Browser;
  beforeAll(async () => {
    site = await new AdminApp(database.db, [shop]).ready();
    staff = await site.browser();
    await insertMany(
      database.db,
      people,
      Array.from({ length: 40 }, (_, id) => ({ id, name: null })),
    );
  });
  afterAll(() => site.close());

  const listed = async () => (await site.get(staff, 'resources/backfills')).body.items;

  test('are listed with their progress, paused and resumed, and both are recorded', async () => {
    expect(await listed()).toMatchObject([{ id: 'shop/0002_name', values: { state: { value: 'not started' }, done: null } }]);
    const stop = new AbortController();
    await runBackfills(database.db, [shop], { signal: stop.signal, onProgress: () => stop.abort() });
    expect(await listed()).toMatchObject([{ values: { state: { value: 'running' }, done: '25 %, 10 of 40 rows' } }]);
    expect((await site.act(staff, 'backfills', 'pause', ['shop/0002_name'])).body).toMatchObject({ message: '1 back-fill paused.' });
    expect(await listed()).toMatchObject([{ values: { state: { value: 'paused' } } }]);
    await site.act(staff, 'backfills', 'resume', ['shop/0002_name']);
    await runBackfills(database.db, [shop]);
    expect(await listed()).toMatchObject([{ values: { state: { value: 'finished', tone: 'good' }, done: '100 %, 40 of 40 rows' } }]);
    const entries = await auditLog(database.db);
    expect(entries.flatMap(({ action }) => (action.startsWith('backfill.') ? [action] : []))).toEqual([
      'backfill.paused',
      'backfill.resumed',
    ]);
  });
});

describeDatabases('the admin site of an app without back-fills', (database) => {
  test('has no such list', async () => {
    const site = await new AdminApp(database.db, []).ready();
    const staff = await site.browser();
    expect((await site.get(staff, 'resources/backfills')).status).toBe(404);
    await site.close();
  });
});
