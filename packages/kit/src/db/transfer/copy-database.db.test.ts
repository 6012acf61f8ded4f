import { createPostgresDatabase, createSqliteDatabase } from 'kit/testing';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { t } from '../declare/column.ts';
import { model } from '../declare/model.ts';
import type { Database } from '../engine/db.ts';
import { checkDrift } from '../migrations/drift.ts';
import { migrate } from '../migrations/migrate.ts';
import { migration } from '../migrations/migration.ts';
import { createTable, sql } from '../migrations/operation.ts';
import { openDatabase } from '../open/open-database.ts';
import { insert, insertMany, list } from '../rows/repository.ts';
import { json } from '../values/json-parameter.ts';
import { copyDatabase } from './copy-database.ts';

const everyKind = {
  id: t.uuidv7().pk(),
  number: t.int().nullable(),
  big: t.bigint(),
  price: t.decimal(20, 6),
  ratio: t.float(),
  flag: t.bool(),
  at: t.timestamp(),
  day: t.date().nullable(),
  doc: t.json(),
  raw: t.bytes(),
  state: t.enum(['draft', "it's"]),
  tags: t.array(t.text()),
  bigs: t.array(t.bigint()),
  times: t.array(t.timestamp()),
  label: t.text(40),
};
const things = model('things', everyKind);
// The two refer to each other, and folders to themselves: no order of tables has every parent first.
const folders = model('folders', {
  id: t.uuidv7().pk(),
  parent_id: t.ref('folders').nullable(),
  cover_id: t.ref('files').nullable(),
});
const files = model(
  'files',
  { id: t.uuidv7().pk(), folder_id: t.ref('folders'), name: t.text(100) },
  { indexes: [{ columns: ['folder_id', 'name'], unique: true }] },
);
const shop = {
  name: 'shop',
  models: [things],
  migrations: [
    migration('0001_initial', [
      createTable('things', everyKind),
      createTable('folders', { id: t.uuidv7().pk(), parent_id: t.ref('folders').nullable(), cover_id: t.uuid().nullable() }),
      createTable('files', files.columns, { indexes: [{ columns: ['folder_id', 'name'], unique: true }] }),
      // As modules create tables of other libraries, with the types that those expect.
      sql({
        sqlite: [
          'create table "session" ("id" text primary key not null, "expiresAt" date not null, "verified" integer not null, "email" text not null)',
          `insert into "session" values ('made by the migration', '2026-01-01T00:00:00.000Z', 1, 'm@example.com')`,
        ],
        postgres: [
          'create table "session" ("id" text primary key not null, "expiresAt" timestamptz not null, "verified" boolean not null, "email" text not null)',
          'create unique index session_email on "session" (lower("email" collate "und-x-icu"))',
          `insert into "session" values ('made by the migration', '2026-01-01T00:00:00.000Z', true, 'm@example.com')`,
          'alter table folders add constraint folders_cover_id_fkey foreign key (cover_id) references files (id)',
        ],
      }),
    ]),
  ],
};

const places: { remove: () => Promise<void> }[] = [];
const open: Database[] = [];
let from: Database;
let to: Database;

async function openAt(place: { readonly url: string; remove: () => Promise<void> }): Promise<Database> {
  places.push(place);
  const database = await openDatabase(place.url);
  open.push(database);
  return database;
}

beforeEach(async () => {
  from = await openAt(await createSqliteDatabase());
  to = await openAt(await createPostgresDatabase(inject('postgresUrl')));
  await migrate(from, [shop]);
});
afterEach(async () => {
  for (const database of open.splice(0)) await database.close();
  for (const place of places.splice(0)) await place.remove();
});

const thing = (index: number) => ({
  number: index % 2 === 0 ? null : -index,
  big: 2n ** 62n + BigInt(index),
  price: `${index}.000001`,
  ratio: index / 7,
  flag: index % 3 === 0,
  at: new Date(Date.UTC(2026, 0, 1) + index * 1001),
  day: index % 2 === 0 ? null : '2026-02-28',
  doc: json({ b: [index, null, 'ä'], a: { deep: 1.5 } }),
  raw: new Uint8Array([0, index % 256, 255]),
  state: index % 2 === 0 ? ('draft' as const) : ("it's" as const),
  tags: ['a,b', '"', '{}', ''],
  bigs: [2n ** 63n - 1n],
  times: [new Date(0)],
  label: `l ${index} 😀`,
});

async function fill(rows: number): Promise<void> {
  await insertMany(
    from,
    things,
    Array.from({ length: rows }, (_, index) => thing(index)),
  );
  const root = await insert(from, folders, { parent_id: null, cover_id: null });
  const child = await insert(from, folders, { parent_id: root.id, cover_id: null });
  const file = await insert(from, files, { folder_id: child.id, name: 'a' });
  await from.query('update folders set cover_id = $1 where id = $2', [file.id, root.id]);
}

const copy = (options: Partial<Parameters<typeof copyDatabase>[0]> = {}) => copyDatabase({ from, to, modules: [shop], ...options });

test('every row arrives with the value that it had, foreign keys are back, and nothing of the copy stays', async () => {
  await fill(600);
  const report = await copy();
  expect(report.map(({ table, rows }) => [table, rows])).toEqual([
    ['files', 1],
    ['folders', 2],
    ['session', 1],
    ['things', 600],
  ]);
  const byId = { orderBy: ['id'] as const };
  expect(await list(to, things, { ...byId, limit: 1000 })).toEqual(await list(from, things, { ...byId, limit: 1000 }));
  expect(await to.query('select "verified", "expiresAt" from "session"')).toEqual([
    { verified: true, expiresAt: new Date('2026-01-01T00:00:00.000Z') },
  ]);
  // The foreign key that the migration adds in SQL of its own, and no other difference.
  expect((await checkDrift([shop], to)).database).toEqual([expect.stringContaining('"folders.cover_id" refers to "files.id"')]);
  await expect(to.query('delete from files')).rejects.toThrow(/folders/);
  expect(await to.query(`select to_regclass('kit_copy') as copy, to_regclass('kit_copy_tables') as tables`)).toEqual([
    { copy: null, tables: null },
  ]);
});

test('a copy that was interrupted anywhere goes on where it was, and no row is there twice', async () => {
  await fill(1300);
  for (let stopAt = 1; stopAt <= 6; stopAt++) {
    let steps = 0;
    const interrupted = copy({
      onProgress: (step) => {
        if (step !== 'check' && ++steps === stopAt) throw new Error('killed');
      },
    });
    await expect(interrupted).rejects.toThrow('killed');
  }
  const seen: number[] = [];
  const report = await copy({ onProgress: (step, rows) => void (step === 'copy' && seen.push(rows)) });
  expect(report.find(({ table }) => table === 'things')?.rows).toBe(1300);
  expect(await to.query('select count(*)::int as rows, count(distinct id)::int as ids from things')).toEqual([{ rows: 1300, ids: 1300 }]);
});

test('every value that does not fit is reported before a row is written, and the copy goes on after the repair', async () => {
  await fill(3);
  await from.query('pragma foreign_keys = off');
  const [broken] = await list(from, things, { orderBy: ['id'], limit: 1 });
  await from.query(`update things set id = 'not a uuid', at = 'yesterday' where id = $1`, [broken?.id]);
  await from.query(
    `insert into "session" values ('a', '2026-01-01T00:00:00.000Z', 2, 'ä@example.com'), ('b', '2026-01-01', 1, 'Ä@example.com')`,
  );
  const error = await copy().then(
    () => undefined,
    (failure: unknown) => failure as Error,
  );
  expect(error?.message).toContain('things, row id = not a uuid: id must be a UUID.');
  expect(error?.message).toContain('things, row id = not a uuid: at must be a Date.');
  expect(error?.message).toContain('session, row id = a: verified must be true or false.');
  expect(await to.query('select count(*)::int as rows from files')).toEqual([{ rows: 0 }]);
  await from.query(`delete from things where id = 'not a uuid'`);
  await from.query(`update "session" set verified = 1 where id = 'a'`);
  await expect(copy()).rejects.toThrow(
    /session: rows are equal for the unique index "session_email" on PostgreSQL: Key .*ä@example.com.* is duplicated/,
  );
  await from.query(`delete from "session" where id = 'a'`);
  expect((await copy()).find(({ table }) => table === 'things')?.rows).toBe(2);
});

test('rows that refer to nothing, and tables that no migration creates, stop the copy by name', async () => {
  await fill(1);
  await from.query('create table notes_by_hand (id integer primary key, text text)');
  await from.query(`insert into notes_by_hand values (1, 'kept')`);
  await expect(copy()).rejects.toThrow('The table "notes_by_hand" has rows, and no migration of the app creates it.');
  await expect(copy({ without: ['notes_by_hnd'] })).rejects.toThrow(
    '--without names the table "notes_by_hnd", which the source does not have.',
  );
  await from.transaction(async (tx) => {
    await tx.query('pragma defer_foreign_keys = on');
    await tx.query('update folders set cover_id = null');
  });
  expect((await copy({ without: ['notes_by_hand'] })).map(({ table }) => table)).not.toContain('notes_by_hand');
});

test('a target that has tables, and a copy of another file, are left alone', async () => {
  const other = await openAt(await createSqliteDatabase());
  await migrate(other, [shop]);
  await expect(
    copy({
      onProgress: () => {
        throw new Error('killed');
      },
    }),
  ).rejects.toThrow('killed');
  await expect(copy({ from: other })).rejects.toThrow(`A copy of ${from.url} into this database is not complete.`);
  await copy();
  await expect(copy()).rejects.toThrow('The target is not empty: it has tables such as');
});

test('a source that changes meanwhile is found by its checksums', async () => {
  await fill(2);
  let changed = false;
  const changing = copy({
    onProgress: (step) => {
      if (step !== 'compare' || changed) return;
      changed = true;
      void from.query(`update things set label = 'changed'`);
    },
  });
  await expect(changing).rejects.toThrow('"things" has other values in the target.\nThe source was changed while it was copied.');
});

test('what the modules find wrong with their data leaves the copy incomplete', async () => {
  await fill(1);
  await expect(copy({ verify: () => Promise.resolve(['The chain of audit entries is broken.']) })).rejects.toThrow(
    'The chain of audit entries is broken.',
  );
  await copy();
});
