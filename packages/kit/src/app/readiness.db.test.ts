import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { CONNECTIONS_ARE_KEPT, isBehindPooler } from '../../../../test/provision/behind-pooler.ts';
import { addColumn, createTable, insert, migrate, migration, model, openDatabase, t, type Database } from '../db/index.ts';
import { Controller } from '../http/compile/controller.ts';
import { route } from '../http/declare/route.ts';
import { HealthController } from '../middleware/health.ts';
import { allowAny } from '../permissions/built-ins.ts';
import { describeDatabases } from '../testing/databases.ts';
import { createApp } from './assemble/create-app.ts';
import { driftOf, migrateApp } from './data/migration-modules.ts';
import type { App } from './declare/module.ts';

const columns = { id: t.int().pk(), title: t.text(40) };
const parcels = model('parcels', columns);
const initial = migration('0001_initial', [createTable('parcels', columns)]);
const module = { name: 'parcels', models: [parcels], migrations: [initial] };

class ParcelController extends Controller {
  list = route.get('/', { permission: allowAny }, async ({ db }) => void (await db.query('select * from parcels')));
  create = route.post('/', { permission: allowAny }, async ({ db }) => void (await insert(db, parcels, { id: 1, title: 'a' })));
}
class ReadController extends Controller {
  list = route.get('/', { permission: allowAny }, async ({ db }) => void (await db.query('select * from parcels')));
}

let app: App | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

function start(database: string | Database, controller: typeof ParcelController | typeof ReadController = ParcelController): App {
  const mount = { '/parcels': controller, '/health': HealthController };
  app = createApp({ database, modules: [module], mount: { '/': mount }, log: { level: 'silent' } });
  return app;
}

/** Applies what a newer version of the module has, as its `kit migrate` does. */
async function upgrade(db: Database, name: string, operation: ReturnType<typeof addColumn>): Promise<void> {
  newer.push(migration(name, [operation]));
  await migrate(db, [{ name: 'parcels', migrations: newer }]);
}
let newer = [initial];

async function ready(of: App): Promise<unknown> {
  const { statusCode, body } = await of.inject('/health/ready');
  const { checks } = JSON.parse(body) as { checks: { database: unknown } };
  return [statusCode, checks.database];
}

const OK = { status: 'ok' };
const TOO_NEW = {
  status: 'failed',
  detail: 'A newer version of the app has changed the tables, and this version cannot write to them. The log names them.',
};
const READ_ONLY = { status: 'failed', detail: 'The database is read-only, and this app writes to it.' };

describeDatabases('an app on tables that a newer version has changed', (database) => {
  test('goes on while it can write to them; it is not ready from the moment it cannot, and ready again when it can', async () => {
    newer = [initial];
    const old = start(database.db);
    await migrateApp(old);
    expect(await ready(old)).toEqual([200, OK]);

    await upgrade(database.db, '0002_note', addColumn('parcels', 'note', t.text(20).nullable()));
    await upgrade(database.db, '0003_weight', addColumn('parcels', 'weight', t.int().dbDefault(0)));
    expect(await ready(old)).toEqual([200, OK]);
    expect((await old.inject({ method: 'POST', url: '/parcels' })).statusCode).toBe(204);
    expect(await driftOf(old)).toEqual({
      models: [],
      database: [],
      additions: [
        'Column "parcels.note" is in the database but in no migration.',
        'Column "parcels.weight" is in the database but in no migration.',
      ],
      newer: ['parcels/0002_note', 'parcels/0003_weight'],
    });

    await upgrade(database.db, '0004_sender', addColumn('parcels', 'sender', t.text(20), { backfill: { sqlite: "'x'", postgres: "'x'" } }));
    expect(await ready(old)).toEqual([503, TOO_NEW]);
    expect((await driftOf(old)).database).toEqual([
      'Column "parcels.sender" is in the database but in no migration, and every new row needs a value for it.',
    ]);
    if (database.dialect === 'sqlite') return;
    await database.db.query(`alter table parcels alter column sender set default ''`);
    expect(await ready(old)).toEqual([200, OK]);
  });
});

describeDatabases('an app whose database takes no changes', (database) => {
  describe.runIf(database.dialect === 'postgres')('on PostgreSQL', () => {
    test('is not ready, and writes get 503 with Retry-After while reads work; an app that only reads is ready', async ({ skip }) => {
      skip(isBehindPooler(), CONNECTIONS_ARE_KEPT);
      await migrateApp(start(database.db));
      await app?.close();
      const name = new URL(database.url).pathname.slice(1);
      await database.db.query(`alter database "${name}" set default_transaction_read_only = on`);
      onTestFinished(async () => {
        await database.db.query('set default_transaction_read_only = off');
        await database.db.query(`alter database "${name}" reset default_transaction_read_only`);
      });
      const writer = start(database.url);
      expect(await ready(writer)).toEqual([503, READ_ONLY]);
      expect((await writer.inject('/parcels')).statusCode).toBe(204);
      const refused = await writer.inject({ method: 'POST', url: '/parcels' });
      expect([refused.statusCode, refused.json<{ code: string }>().code, refused.headers['retry-after']]).toEqual([
        503,
        'database_read_only',
        '5',
      ]);
      await writer.close();
      expect(await ready(start(database.url, ReadController))).toEqual([200, OK]);
    });
  });

  describe.runIf(database.dialect === 'sqlite')('on SQLite', () => {
    test('is not ready when its file is gone, and writes get 503 where SQLite refuses them', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'kit-ready-'));
      onTestFinished(() => rm(folder, { recursive: true, force: true }));
      const own = await openDatabase(`sqlite:${join(folder, 'app.db')}`);
      onTestFinished(() => own.close());
      const writer = start(own);
      await migrateApp(writer);
      expect(await ready(writer)).toEqual([200, OK]);
      await own.query('pragma query_only = on');
      const refused = await writer.inject({ method: 'POST', url: '/parcels' });
      expect([refused.statusCode, refused.json<{ code: string }>().code, refused.headers['retry-after']]).toEqual([
        503,
        'database_read_only',
        '5',
      ]);
      await rm(join(folder, 'app.db'));
      expect(await ready(writer)).toEqual([503, READ_ONLY]);
    });
  });
});
