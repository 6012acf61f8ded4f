import { inspect } from 'node:util';
import { afterEach, expect, test } from 'vitest';
import * as z from 'zod';
import { createTable, insert, isUniqueViolation, list, migration, model, t, type Database } from '../db/index.ts';
import { coreErrors } from '../errors/core-errors.ts';
import { Controller } from '../http/compile/controller.ts';
import { page } from '../http/declare/page.ts';
import { route } from '../http/declare/route.ts';
import { HealthController } from '../middleware/index.ts';
import { allowAny } from '../permissions/built-ins.ts';
import { describeDatabases } from '../testing/databases.ts';
import { createSqliteDatabase } from '../testing/test-database.ts';
import { createApp } from './assemble/create-app.ts';
import { driftOf, migrateApp, pendingOf } from './data/migration-modules.ts';
import type { App } from './declare/module.ts';

const notes = model('notes', { id: t.uuidv7().pk(), title: t.text(20).unique() });
const notesModule = { name: 'notes', models: [notes], migrations: [migration('0001_initial', [createTable('notes', notes.columns)])] };
const Title = z.object({ title: z.string() });

class NoteController extends Controller {
  list = route.get('/', { response: page(notes.output), permission: allowAny }, async ({ db }) => ({
    items: await list(db, notes),
    count: null,
  }));
  create = route.post('/', { body: Title, status: 201, permission: allowAny }, async ({ db, body }) => {
    try {
      await db.transaction((tx) => insert(tx, notes, body));
    } catch (error) {
      if (!isUniqueViolation(error, 'title')) throw error;
      throw coreErrors.conflict({ cause: error });
    }
  });
  half = route.post('/half', { body: Title, permission: allowAny }, ({ db, body }) =>
    db.transaction(async (tx) => {
      await insert(tx, notes, body);
      throw new Error('half way');
    }),
  );
}

describeDatabases('an app', (database) => {
  let app: App | undefined;
  afterEach(() => app?.close());
  const start = async (url: string) => {
    app = createApp({
      database: url,
      modules: [notesModule],
      mount: { '/health': { '/': HealthController }, '/v1': { '/notes': NoteController } },
      log: { level: 'silent' },
    });
    await app.openDatabases();
    await migrateApp(app);
    return app.ready();
  };
  const call = async (method: 'GET' | 'POST', url: string, payload?: object) => {
    const response = await (app as App).inject({ method, url, ...(payload === undefined ? {} : { payload }) });
    return [response.statusCode, response.body === '' ? undefined : response.json<unknown>()] as const;
  };

  test('a model that its migrations do not follow stops the start, before a database is touched', async () => {
    const grown = model('notes', { ...notes.columns, colour: t.text(10).nullable() });
    app = createApp({ database: database.url, modules: [{ ...notesModule, models: [grown] }], mount: {}, log: { level: 'silent' } });
    await expect(app.ready()).rejects.toMatchObject({
      faults: [
        {
          id: 'E023',
          message: 'Column "notes.colour" is in the model but in no migration.',
          hint: 'Run npx kit migrate make <name>, add the migration to its module, then npx kit migrate.',
        },
      ],
    });
    app = createApp({ database: database.url, modules: [{ name: 'elsewhere', models: [grown] }], mount: {}, log: { level: 'silent' } });
    await expect(app.ready()).resolves.toBe(app);
  });

  test('E027: a reference by name to a table that does not exist stops the start; a table that was created elsewhere is enough', async () => {
    const columns = { id: t.uuidv7().pk(), note_id: t.ref('nots') };
    // A module whose migrations are not applied: PostgreSQL would refuse the table itself.
    const pages = {
      name: 'pages',
      models: [model('pages', columns)],
      migrations: [migration('0001_initial', [createTable('pages', columns)])],
    };
    const open = async () => {
      app = createApp({ database: database.url, modules: [notesModule, pages], mount: {}, log: { level: 'silent' } });
      return app.ready();
    };
    await expect(open()).rejects.toMatchObject({
      faults: [
        {
          id: 'E027',
          message: 'Model "pages", column "note_id": references the table "nots", which does not exist.',
          hint: 'Did you mean "notes"?',
        },
      ],
    });
    const other = await database.open();
    await other.query('create table nots (id integer primary key)');
    try {
      await expect(open()).resolves.toBe(app);
    } finally {
      await other.query('drop table nots');
      await other.close();
    }
  });

  test('every database gets the tables of the modules that live in it, and no others', async () => {
    const archive = await createSqliteDatabase();
    app = createApp({
      database: { default: database.url, archive: archive.url, spare: 'sqlite::memory:' },
      modules: [{ ...notesModule, databases: ['default', 'archive'] }],
      mount: {},
      log: { level: 'silent' },
    });
    await app.openDatabases();
    expect(await pendingOf(app)).toEqual([
      'kit/0001_throttles',
      'kit/0002_secrets_and_idempotency',
      'kit/0003_deleted_users',
      'kit/0004_changes',
      'kit/0005_erasures',
      'kit/0006_failed_erasures',
      'kit/0007_erased_subjects',
      'kit/0008_changes_in_order',
      'notes/0001_initial',
      'notes/0001_initial (database archive)',
    ]);
    expect((await migrateApp(app, { dryRun: true })).statements['notes/0001_initial (database archive)']?.join()).toContain('create table');
    const report = await migrateApp(app);
    expect(report.applied).toEqual([
      'kit/0001_throttles',
      'kit/0002_secrets_and_idempotency',
      'kit/0003_deleted_users',
      'kit/0004_changes',
      'kit/0005_erasures',
      'kit/0006_failed_erasures',
      'kit/0007_erased_subjects',
      'kit/0008_changes_in_order',
      'notes/0001_initial',
      'notes/0001_initial (database archive)',
    ]);
    expect(await pendingOf(app)).toEqual([]);
    for (const alias of ['default', 'archive']) await insert(app.databases[alias] as Database, notes, { title: alias });
    await app.db.query('delete from notes');
    await expect(app.databases['archive']?.query('select * from kit_throttles')).rejects.toThrow(/kit_throttles/);
    await expect(app.databases['spare']?.query('select * from kit_migrations')).rejects.toThrow(/kit_migrations/);
    expect(await driftOf(app)).toEqual({ models: [], database: [], additions: [], newer: [] });
    await app.databases['archive']?.query('alter table notes add column extra integer');
    expect((await driftOf(app)).additions).toEqual([expect.stringMatching(/extra.*\(database archive\)$/)]);
    await app.close();
    await archive.remove();
  });

  test('opens the database of its URL, is ready, and writes whole requests or nothing', async () => {
    await start(database.url);
    expect(await call('GET', '/health/ready')).toMatchObject([200, { checks: { database: { status: 'ok' } } }]);
    expect((await call('POST', '/v1/notes', { title: 'kept' }))[0]).toBe(201);
    expect((await call('POST', '/v1/notes/half', { title: 'lost' }))[0]).toBe(500);
    expect(await call('GET', '/v1/notes')).toMatchObject([200, { items: [{ title: 'kept' }] }]);
    expect(await list(database.db, notes)).toHaveLength(1);
  });

  test('a value the database refuses is a 4xx and no partial write', async () => {
    await start(database.url);
    expect((await call('POST', '/v1/notes', { title: 'kept' }))[0]).toBe(409);
    expect((await call('POST', '/v1/notes', { title: 'x'.repeat(21) }))[0]).toBe(422);
    expect(await list(database.db, notes)).toHaveLength(1);
  });

  test('a lost database is a 503 of /ready that names the check and nothing else', async () => {
    const own = await database.open();
    app = createApp({ database: own, mount: { '/health': { '/': HealthController } }, log: { level: 'silent' } });
    await app.ready();
    await own.close();
    expect(await call('GET', '/health/ready')).toEqual([503, { status: 'unavailable', checks: { database: { status: 'failed' } } }]);
    expect((await call('GET', '/health/live'))[0]).toBe(200);
  });

  test('printing an app, its settings or its database shows no password', async () => {
    const databaseUrl = 'postgres://app:hunter2@db.invalid/app';
    const settings = createApp({ settings: { databaseUrl }, mount: {}, log: { level: 'silent' } });
    await start(database.url);
    expect(inspect([settings, settings.settings, app, app?.db], { depth: 12 })).not.toContain('hunter2');
  });
});
