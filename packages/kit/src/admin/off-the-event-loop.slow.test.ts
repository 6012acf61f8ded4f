import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import { apiKeys } from '../contrib/apikeys/index.ts';
import { createTable, type Database, migration, model, openDatabase, t } from '../db/index.ts';
import { engineOf } from '../db/engine/handle.ts';
import type { SqliteEngine } from '../db/engine/sqlite/engine.ts';
import { modelResource } from '../screens/screen.ts';

const columns = { id: t.uuidv7().pk(), name: t.text(40), weight: t.int() };
const goods = model('goods', columns);
const shop = {
  name: 'shop',
  models: [goods],
  migrations: [migration('0001_initial', [createTable('goods', columns)])],
  admin: { resources: [modelResource(goods, { singular: 'Good', search: ['name'] })] },
};

describe('the admin site on SQLite', () => {
  let folder: string;
  let db: Database;
  let site: AdminApp;
  let staff: Browser;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'kit-admin-reads-'));
    db = await openDatabase(`sqlite:${join(folder, 'app.db')}`);
    site = await new AdminApp(db, [apiKeys(), shop]).ready();
    staff = await site.browser();
    await db.query(
      `insert into goods (id, name, weight) values ('0190a1b2-0000-7000-8000-000000000001', 'lamp', 1), ('0190a1b2-0000-7000-8000-000000000002', 'desk', 2)`,
    );
  });
  afterEach(async () => {
    await site.close();
    await db.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const readers = () => (engineOf(db) as SqliteEngine).readerPids.length;

  test.each([
    ['a search of a list', 'resources/goods?search=lamp'],
    ['a filter without an index', 'resources/goods?filter.name=lamp'],
    ['an order without an index', 'resources/goods?sort=weight'],
    ['an export', 'lists/goods/export?format=csv'],
    ['an overview', 'overview'],
  ])('%s reads in a process of its own', async (_name, path) => {
    const before = readers();
    expect((await site.get(staff, path)).status).toBe(200);
    expect(before).toBe(0);
    expect(readers()).toBeGreaterThan(0);
  });

  test('a list by its key, and a record, read in this process', async () => {
    expect((await site.get(staff, 'resources/goods')).status).toBe(200);
    expect((await site.get(staff, 'resources/goods/0190a1b2-0000-7000-8000-000000000001')).status).toBe(200);
    expect(readers()).toBe(0);
  });
});
