import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, inject, test } from 'vitest';
import type { App } from '../../src/app/index.ts';
import { copyAppDatabase } from '../../src/app/data/copy-app-database.ts';
import { dataFaults, migrateApp, modulesIn, outdatedDatabases } from '../../src/app/data/migration-modules.ts';
import { accountsOf, createUser } from '../../src/contrib/accounts/index.ts';
import { createApiKey, verifyApiKey } from '../../src/contrib/apikeys/index.ts';
import { sealEntries } from '../../src/contrib/audit/chain/seal.ts';
import { personalData } from '../../src/contrib/personal/index.ts';
import { createTenant } from '../../src/contrib/tenants/index.ts';
import type { ColumnSettings } from '../../src/db/declare/column.ts';
import { resolveReference } from '../../src/db/declare/column.ts';
import { CrudController, resource } from '../../src/crud/index.ts';
import { createTable, type Database, insert, migration, type Model, model, openDatabase, t } from '../../src/db/index.ts';
import { isAuthenticated } from '../../src/permissions/index.ts';
import { uuidv7 } from '../../src/db/values/uuidv7.ts';
import { verifyDatabase } from '../../src/db/transfer/verify-database.ts';
import { initial as portalMigration } from '../../src/portal/migrations/0001_initial.ts';
import { portalLinks } from '../../src/portal/models.ts';
import { createPostgresDatabase, createSqliteDatabase, type DatabasePlace } from '../../src/testing/index.ts';
import { WAYS, wholeApp, type WayOfLogin } from '../tenants/whole-app.ts';

// Every table of every module, from SQLite to PostgreSQL: a new one is in this test the day it is declared.

// Its changes are logged by triggers, which are in no migration.
const meters = model('meters', { number: t.int().pk(), room: t.text(20) });
class MeterController extends CrudController(resource(meters, { unscoped: true, changes: 'trigger' }), {
  permission: isAuthenticated,
  live: true,
}) {}
const more = [
  personalData(),
  { name: 'portal', models: [portalLinks], migrations: [portalMigration] },
  {
    name: 'meters',
    models: [meters],
    migrations: [migration('0001_initial', [createTable('meters', meters.columns)])],
    mount: { '/v1/meters': MeterController },
  },
];

/** Tables that are not copied, and why. */
const LEFT: Readonly<Record<string, string>> = {
  kit_changes: 'places of live lists are those of one database; clients read their lists again',
};

/** Tables whose rows go on to another one as soon as they are committed. */
const EMPTIED: Readonly<Record<string, string>> = { audit_inbox: 'audit_entries' };

describe.each(WAYS)('with %s', (way) => {
  const folder = mkdtempSync(join(tmpdir(), 'kit-copy-'));
  const places: DatabasePlace[] = [];
  const closing: (() => Promise<void>)[] = [];
  afterAll(async () => {
    for (const close of closing.toReversed()) await close();
    for (const place of places) await place.remove();
    rmSync(folder, { recursive: true, force: true });
  });
  const opened = async (place: DatabasePlace): Promise<Database> => {
    places.push(place);
    const db = await openDatabase(place.url);
    closing.push(() => db.close());
    return db;
  };
  const appOn = (db: Database): App => {
    const app = wholeApp(db, { way, folder, more });
    closing.push(() => app.close());
    return app;
  };

  test('every table is copied with a row in it, compared and verified; the app works there at once', async () => {
    const from = await opened(await createSqliteDatabase());
    const to = await opened(await createPostgresDatabase(inject('postgresUrl')));
    const source = appOn(from);
    await migrateApp(source);
    await source.ready();
    const { raw } = await createApiKey(from, await keyOwner(from, way));
    await sealEntries(from, { wait: true });
    // One that is not sealed yet.
    await source.registry.audit?.record(from, [{ actor: 'a test', action: 'copied', target_type: 'test', target_id: '1' }]);
    const modules = modulesIn(source, 'default');
    const models = modules.flatMap((module) => module.models ?? []);
    for (const each of models) await fillTable(from, each);
    const report = await copyAppDatabase(source, 'default', { from, to });
    const copied = new Map(report.map(({ table, rows }) => [table, rows]));
    for (const { name } of models) {
      expect([name, copied.has(name)]).toEqual([name, !(name in LEFT)]);
      expect([name, (copied.get(name) ?? 0) > 0]).toEqual([name, !(name in LEFT || name in EMPTIED)]);
    }
    expect(await verifyDatabase(to, modules, (db) => dataFaults(source, 'default', db))).toMatchObject({ faults: [] });
    const target = appOn(to);
    await target.openDatabases();
    expect(await outdatedDatabases(target)).toEqual([]);
    await target.ready();
    expect(await verifyApiKey(to, raw)).not.toBeNull();
  }, 300_000);
});

async function keyOwner(db: Database, way: WayOfLogin) {
  if (way === 'accounts') {
    const user = await createUser(db, { username: 'ada' }, accountsOf(db).management(null));
    const tenant = await createTenant(db, { name: 'Studio', slug: 'studio', owner: user.id });
    return { user, name: 'key', scopes: ['*'], tenant: tenant.id };
  }
  const id = crypto.randomUUID();
  await db.query('insert into "user" ("id", "name", "email", "emailVerified", "createdAt", "updatedAt") values ($1, $2, $3, $4, $5, $5)', [
    id,
    'ada',
    'ada@example.com',
    true,
    new Date().toISOString(),
  ]);
  return { user: id, name: 'key', scopes: ['*'], tenant: null };
}

/** A row in a table that has none, and in those that it refers to. */
async function fillTable(db: Database, model: Model): Promise<void> {
  if ((await db.query(`select 1 as found from "${model.name}" limit 1`)).length > 0) return;
  const values: Record<string, unknown> = {};
  for (const [name, { settings }] of Object.entries(model.columns)) {
    const { reference } = settings;
    if (settings.searchOf !== undefined) continue;
    if (reference === undefined) values[name] = valueOf(resolveReference(settings), db);
    else if (settings.nullable) values[name] = null;
    else if (typeof reference.target === 'function') values[name] = await keyOf(db, reference.target() as Model, reference.column);
    else values[name] = valueOf(settings, db);
  }
  await insert(db, model, values as never);
}

async function keyOf(db: Database, model: Model, column = model.primaryKey[0] ?? ''): Promise<unknown> {
  await fillTable(db, model);
  const [row] = await db.query<Record<string, unknown>>(`select "${column}" from "${model.name}" limit 1`);
  return row?.[column];
}

function valueOf({ kind, values, of, scale = 0 }: ColumnSettings, db: Database): unknown {
  switch (kind) {
    case 'uuid':
      return uuidv7(db.clock);
    case 'int':
    case 'float':
      return 1;
    case 'bigint':
      return 1n;
    case 'bool':
      return true;
    case 'decimal':
      return scale === 0 ? '1' : `1.${'5'.padEnd(scale, '0')}`;
    case 'timestamp':
      return db.clock.now();
    case 'date':
      return '2030-01-01';
    case 'json':
      return {};
    case 'bytes':
      return Buffer.from('bytes');
    case 'array':
      return of === undefined ? [] : [valueOf(of, db)];
    case 'enum':
      return values?.[0];
    default:
      return 'x';
  }
}
